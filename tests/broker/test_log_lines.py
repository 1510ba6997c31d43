"""Log entries of connections: user, address, virtual host and reason of the end; never a password."""

import json
import re
import socket
from typing import Any

import pika
import pytest
from pika.adapters.blocking_connection import BlockingConnection
from pika.exceptions import AMQPConnectionError, ChannelClosedByBroker

from tests.broker.conftest import Connect
from tests.interop.amqp_clients.pika_client import parameters
from tests.running import Gateway

EVENTS = ("connection opened", "connection authenticated", "connection in use", "connection closed")


def about(gateway: Gateway, connection: BlockingConnection) -> list[str]:
    """Return the lines about a connection that has ended."""
    host, port = connection._impl._transport._sock.getsockname()
    name = f"{host}:{port} -> "
    connection.close()
    gateway.log_has("connection closed")
    return [line for line in gateway.log.splitlines() if name in line]


def test_each_step_of_a_connection_is_logged(gateway: Gateway, connect: Connect) -> None:
    gateway.start()
    lines = about(gateway, connect())
    steps = [line for line in lines if any(event in line for event in EVENTS)]
    assert [next(event for event in EVENTS if event in line) for line in steps] == list(EVENTS)
    assert "user=guest vhost=/" in steps[2]
    assert re.search(r'user=guest vhost=/ reason="closed by the client: 200 Normal shutdown"$', steps[3])


def test_json_lines_are_objects_with_the_same_fields(gateway: Gateway, connect: Connect) -> None:
    gateway.start("log.format=json")
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
