"""Log entries of connections: user, address, virtual host and end; no password, no health probes."""

import json
import re
import runpy
import socket
from pathlib import Path
from typing import Any

import pika
import pytest
from pika.adapters.blocking_connection import BlockingConnection
from pika.exceptions import AMQPConnectionError, ChannelClosedByBroker

from tests.broker.conftest import Connect
from tests.interop.amqp_clients.pika_client import parameters
from tests.running import Gateway

#: In the order of a connection. The first is for debugging.
EVENTS = ("connection opened", "connection authenticated", "connection in use", "connection closed")

#: The check of the container.
HEALTHY = Path(__file__).parents[2] / "etc" / "container" / "healthy.py"
LISTENERS = ("amqp", "mqtt", "stomp", "web_mqtt", "web_stomp", "management", "prometheus")
FREE = tuple(f"{name}.port=0" for name in LISTENERS)


def about(gateway: Gateway, connection: BlockingConnection) -> list[str]:
    """Return the lines about a connection that has ended."""
    host, port = connection._impl._transport._sock.getsockname()
    name = f"{host}:{port} -> "
    connection.close()
    gateway.log_has("connection closed")
    return [line for line in gateway.log.splitlines() if name in line]


def test_each_step_of_a_connection_is_logged(gateway: Gateway, connect: Connect) -> None:
    gateway.start("log.level=debug")
    lines = about(gateway, connect())
    steps = [line for line in lines if any(event in line for event in EVENTS)]
    assert [next(event for event in EVENTS if event in line) for line in steps] == list(EVENTS)
    assert "user=guest vhost=/" in steps[2]
    assert re.search(r'user=guest vhost=/ reason="closed by the client: 200 Normal shutdown"$', steps[3])


def test_json_lines_are_objects_with_the_same_fields(gateway: Gateway, connect: Connect) -> None:
    gateway.start("log.format=json", "log.level=debug")
    about(gateway, connect())
    entries: list[dict[str, Any]] = [json.loads(line) for line in gateway.log.splitlines()]
    by_event = {entry["event"]: entry for entry in entries}
    closed = by_event["connection closed"]
    assert (closed["user"], closed["vhost"], closed["level"]) == ("guest", "/", "info")
    assert closed["reason"] == "closed by the client: 200 Normal shutdown"
    assert closed["connection"] == by_event["connection opened"]["connection"]
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", entry["time"]) for entry in entries)


def test_an_error_is_logged_as_it_was_sent_to_the_client(gateway: Gateway, connect: Connect) -> None:
    gateway.start()
    channel = connect().channel()
    with pytest.raises(ChannelClosedByBroker) as closed:
        channel.queue_declare("absent", passive=True)
    assert closed.value.reply_text in gateway.log_has("channel error")


def test_a_lost_connection_has_a_last_line(gateway: Gateway) -> None:
    gateway.start()
    connection = pika.BlockingConnection(parameters(gateway.broker))
    connection._impl._transport._sock.shutdown(socket.SHUT_RDWR)
    assert "user=guest vhost=/ reason=" in gateway.log_has("connection closed")


def test_no_password_is_ever_written(gateway: Gateway, connect: Connect, tmp_path: Any) -> None:
    definitions = tmp_path / "definitions.json"
    definitions.write_text('{"users": [{"name": "orders", "password": "Xy-secret-1", "tags": []}]}')
    gateway.start(f"load_definitions={definitions}", "default_pass=Xy-secret-2", "log.level=debug")
    attempts = (("guest", "Xy-secret-2"), ("guest", "Xy-secret-3"), ("orders", "Xy-secret-1"), ("none", "Xy-secret-4"))
    for user, password in attempts:
        try:
            connect(credentials=pika.PlainCredentials(user, password))
        except AMQPConnectionError:
            continue
    with socket.create_connection(gateway.addresses["amqp"], timeout=5) as raw:
        raw.sendall(b"AMQP\x00\x00\x09\x01")
        raw.recv(4096)
        raw.sendall(
            b"\x01\x00\x00\x00\x00\x00\x20\x00\x0a\x00\x0b" + b"\x00guest\x00Xy-secret-5 not a start-ok" + b"\xce"
        )
        raw.recv(4096)
    gateway.log_has("authentication refused")
    gateway.log_has("reason=")
    gateway.stop()
    assert "Xy-secret" not in gateway.log
    assert "Xy-secret" not in gateway.output


def probe(gateway: Gateway, listener: str) -> None:
    """Connect and close, and wait until the gateway has closed its side."""
    with socket.create_connection(gateway.addresses[listener], timeout=10) as peer:
        peer.shutdown(socket.SHUT_WR)
        while peer.recv(4096):
            pass


def failed_login(gateway: Gateway, connect: Connect) -> str:
    """Log in with a wrong password; return the log after the gateway has handled it."""
    with pytest.raises(AMQPConnectionError):
        connect(credentials=pika.PlainCredentials("guest", "wrong"))
    gateway.log_has("connection closed")
    return gateway.log


def test_probes_of_all_listeners_write_nothing(gateway: Gateway, connect: Connect) -> None:
    gateway.start(*FREE)
    before = gateway.log
    for listener in LISTENERS:
        probe(gateway, listener)
    lines = failed_login(gateway, connect).removeprefix(before).splitlines()
    events = [re.sub(r"^\S+ \S+ +\w+ (.*?)( \w+=.*)?$", r"\1", line) for line in lines]
    assert events == ["authentication refused", "connection closed"]
    assert "peer=127.0.0.1" in lines[0]
    assert "connection=127.0.0.1:" in lines[1].replace('"', "")


def test_the_check_of_the_container_writes_nothing(gateway: Gateway, connect: Connect) -> None:
    """It begins a connection, so that it knows whether the broker serves clients."""
    gateway.start()
    before = gateway.log
    fault = runpy.run_path(str(HEALTHY))["fault"]
    host, port = gateway.addresses["amqp"]
    assert fault(host, str(port)) == ""
    assert failed_login(gateway, connect).removeprefix(before).count("connection closed") == 1


def test_probes_are_written_for_debugging(gateway: Gateway) -> None:
    gateway.start("log.level=debug")
    probe(gateway, "amqp")
    opened, closed = (gateway.log_has(event) for event in ("connection opened", "connection closed"))
    assert " debug " in opened
    assert " debug " in closed


@pytest.mark.parametrize("listener", ["amqp", "mqtt", "stomp"])
def test_a_client_that_does_not_log_in_is_written_with_its_address(gateway: Gateway, listener: str) -> None:
    gateway.start(f"{listener}.port=0", f"{listener}.login_timeout_s=1")
    with socket.create_connection(gateway.addresses[listener], timeout=10) as silent:
        address = "{}:{}".format(*silent.getsockname())
        line = gateway.log_has('reason="handshake timeout"')
    assert "connection closed" in line
    assert f"{address} -> " in line


@pytest.mark.parametrize(
    ("listener", "sent"),
    [("amqp", b"AMQP\0\0\x09\x01\x01"), ("mqtt", b"\x10\x18\x00\x04MQTT\x04\xc2"), ("stomp", b"CONNECT\naccept-")],
)
def test_a_client_that_closes_within_its_login_is_written_with_its_address(
    gateway: Gateway, listener: str, sent: bytes
) -> None:
    gateway.start(f"{listener}.port=0")
    with socket.create_connection(gateway.addresses[listener], timeout=10) as peer:
        address = "{}:{}".format(*peer.getsockname())
        peer.sendall(sent)
        peer.shutdown(socket.SHUT_WR)
        assert f"{address} -> " in gateway.log_has("connection closed")


@pytest.mark.parametrize(
    ("listener", "sent"),
    [
        ("amqp", b"GET / HTTP/1.1\r\n\r\n"),
        ("mqtt", b"\x00\x00"),
        ("stomp", b"GET / HTTP/1.1\n\n\x00"),
        ("mqtt", b"\x10\x18\x00\x04MQTT\x04\xc2\x00\x3c\x00\x01c\x00\x02no\x00\x05wrong"),
        ("stomp", b"CONNECT\naccept-version:1.2\nhost:/\nlogin:no\npasscode:wrong\n\n\x00"),
    ],
    ids=["not AMQP", "not MQTT", "not STOMP", "MQTT", "STOMP"],
)
def test_a_client_that_is_refused_is_written_with_its_address(gateway: Gateway, listener: str, sent: bytes) -> None:
    gateway.start(f"{listener}.port=0")
    with socket.create_connection(gateway.addresses[listener], timeout=10) as peer:
        address = "{}:{}".format(*peer.getsockname())
        peer.sendall(sent)
        assert f"{address} -> " in gateway.log_has("connection closed")
