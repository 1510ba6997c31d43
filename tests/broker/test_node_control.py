"""Changes of a running node over HTTP: settings, the log, maintenance, the stop, and streams of events."""

import json
import socket
import urllib.request
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.error import HTTPError

import pika.exceptions
import pytest

from tests.broker.conftest import Connect
from tests.management_client import get, put, request
from tests.running import Gateway
from tests.waiting import wait_until


@contextmanager
def stream(gateway: Gateway, path: str) -> Iterator[Any]:
    """Open a stream below ``/api/``; the first line has arrived."""
    host, port = gateway.addresses["management"]
    asked = urllib.request.Request(
        f"http://{host}:{port}/api/{path}", headers={"Authorization": f"Basic {b64encode(b'guest:guest').decode()}"}
    )
    with urllib.request.urlopen(asked, timeout=10) as answer:
        assert answer.readline() == b"\n"
        yield answer


def test_a_watermark_changed_at_run_time_raises_and_clears_the_alarm(gateway: Gateway) -> None:
    gateway.start()
    node = get(gateway, "overview")["node"]
    put(gateway, "settings/memory_high_watermark", {"value": 1024})
    assert get(gateway, f"nodes/{node}")["mem_alarm"] is True
    assert get(gateway, f"nodes/{node}")["mem_limit"] == 1024
    request(gateway, "DELETE", "settings/memory_high_watermark")
    assert get(gateway, f"nodes/{node}")["mem_alarm"] is False
    assert "user=guest" in gateway.log_has("setting.restored")


def test_a_refused_change_gives_the_reason(gateway: Gateway) -> None:
    gateway.start()
    with pytest.raises(HTTPError) as refused:
        put(gateway, "settings/amqp.port", {"value": 1})
    assert json.load(refused.value)["reason"].startswith("amqp.port: cannot be changed at run time")


def test_the_effective_settings_are_listed_under_rabbitmqs_path_too(gateway: Gateway) -> None:
    gateway.start("mqtt.prefetch=7")
    rows = {row["key"]: row for row in get(gateway, "config/effective")}
    assert rows["mqtt.prefetch"] == {"key": "mqtt.prefetch", "value": 7, "origin": "command line"}


def test_the_log_file_is_rotated_and_old_files_are_limited(gateway: Gateway) -> None:
    log = gateway.directory / "own.log"
    gateway.start(f"log.file={log}", "log.kept_files=2")
    for _ in range(3):
        assert request(gateway, "POST", "log/rotate") == {"file": str(log), "renamed": f"{log}.1"}
    assert sorted(path.name for path in log.parent.glob("own.log*")) == ["own.log", "own.log.1", "own.log.2"]
    assert "log.rotated" in log.read_text()


def test_the_latest_lines_of_the_log_are_returned(gateway: Gateway) -> None:
    gateway.start()
    put(gateway, "settings/log.level", {"value": "debug"})
    shown = get(gateway, "log?lines=2")
    assert shown["files"] == ["<stderr>"]
    assert len(shown["lines"]) == 2
    assert "setting.changed" in "".join(get(gateway, "log?lines=100")["lines"])


def test_a_log_line_is_streamed_when_it_is_written(gateway: Gateway) -> None:
    gateway.start()
    with stream(gateway, "log/stream") as lines:
        put(gateway, "settings/log.level", {"value": "debug"})
        assert any(b"setting.changed" in line for line in lines)


def test_events_are_streamed_as_json_lines(gateway: Gateway, connect: Connect) -> None:
    gateway.start()
    with stream(gateway, "events/stream?duration=2") as lines:
        connect().channel().queue_declare("orders")
        events = [json.loads(line) for line in lines if line.strip()]
    by_name = {event["event"]: event for event in events}
    assert by_name["queue.created"]["name"] == "orders"
    assert by_name["connection.created"]["user"] == "guest"
    assert by_name["channel.created"]["timestamp_in_ms"] > 1.7e12


def test_a_drained_node_closes_listeners_and_connections_and_says_so(gateway: Gateway, connect: Connect) -> None:
    gateway.start()
    connection = connect()
    assert request(gateway, "PUT", "maintenance")["is_under_maintenance"] is True
    with pytest.raises(pika.exceptions.ConnectionClosedByBroker, match="Node was put into maintenance mode"):
        connection.process_data_events(5)
    wait_until(lambda: get(gateway, "maintenance")["connections_left"] == 0, "a connection is left")
    for listener in ("amqp", "mqtt", "stomp"):
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(gateway.addresses[listener], timeout=5)
    for check in ("is-in-service", "ready-to-serve-clients", "protocol-listener/amqp"):
        with pytest.raises(HTTPError, match="503"):
            get(gateway, f"health/checks/{check}")
    node = get(gateway, "overview")["node"]
    assert get(gateway, f"nodes/{node}")["being_drained"] is True


def test_a_revived_node_serves_clients_at_the_same_ports(gateway: Gateway, connect: Connect) -> None:
    gateway.start()
    connect().channel().queue_declare("q", durable=True)
    request(gateway, "PUT", "maintenance")
    request(gateway, "DELETE", "maintenance")
    connect().channel().queue_declare("q", passive=True)
    assert get(gateway, "health/checks/is-in-service") == {"status": "ok"}


def test_suspended_listeners_keep_their_connections(gateway: Gateway, connect: Connect) -> None:
    gateway.start()
    connection = connect()
    assert "amqp" in request(gateway, "PUT", "maintenance/listeners")["suspended_listeners"]
    connection.channel().queue_declare("q", exclusive=True)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(gateway.addresses["amqp"], timeout=5)
    request(gateway, "DELETE", "maintenance/listeners")
    connect().channel().queue_declare("r", exclusive=True)


def test_a_port_taken_meanwhile_keeps_the_node_drained(gateway: Gateway) -> None:
    gateway.start()
    request(gateway, "PUT", "maintenance")
    with (
        socket.create_server(gateway.addresses["amqp"]),
        pytest.raises(HTTPError) as refused,
    ):
        request(gateway, "DELETE", "maintenance")
    assert "Address already in use" in json.load(refused.value)["reason"]
    assert get(gateway, "maintenance")["is_under_maintenance"] is True
    request(gateway, "DELETE", "maintenance")
    assert get(gateway, "maintenance")["suspended_listeners"] == []


def test_an_operator_stops_the_node(gateway: Gateway) -> None:
    gateway.start()
    child = gateway.child
    assert request(gateway, "POST", "stop") == {"status": "stopping"}
    assert child.wait(10) == 0


def test_only_administrators_control_the_node(gateway: Gateway) -> None:
    gateway.start()
    put(gateway, "users/mon", {"password": "p", "tags": "monitoring"})
    host, port = gateway.addresses["management"]
    for method, path in (("GET", "settings"), ("POST", "reload"), ("GET", "events/stream"), ("POST", "stop")):
        asked = urllib.request.Request(f"http://{host}:{port}/api/{path}", method=method)
        asked.add_header("Authorization", "Basic bW9uOnA=")
        with pytest.raises(HTTPError, match="401"):
            urllib.request.urlopen(asked, timeout=5)
