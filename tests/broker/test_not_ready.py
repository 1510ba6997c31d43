"""During a long recovery each port answers within a second that the broker is not ready, and a signal stops it.

Rules: R154.
"""

import json
import shutil
import socket
import time
from http.client import HTTPConnection
from pathlib import Path

import paho.mqtt.client as paho
import pika
import pytest
from pika.exceptions import IncompatibleProtocolError

from tests.broker.conftest import Connect
from tests.broker.many_queues import fill
from tests.ports import free_port
from tests.running import HOST, Gateway, connected_when_it_listens

QUEUES = 60_000

#: Maximum time until an answer, in seconds: one second, plus a margin for a busy machine.
ANSWER_S = 3.0

#: The beginning of every answer.
STARTING = "the broker is starting, "


@pytest.fixture(scope="module")
def many_queues(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a data directory whose recovery takes some seconds."""
    data = tmp_path_factory.mktemp("many") / "data"
    fill(data, QUEUES)
    return data


@pytest.fixture
def ports(gateway: Gateway, many_queues: Path) -> dict[str, int]:
    """Return the ports of a gateway that has just started on that data and recovers."""
    shutil.copytree(many_queues, gateway.data)
    ports = {name: free_port() for name in ("amqp", "mqtt", "stomp", "management")}
    gateway._spawn(tuple(f"{name}.port={port}" for name, port in ports.items()))
    connected_when_it_listens(ports["management"]).close()
    return ports


def exchange(port: int, request: bytes) -> bytes:
    """Send bytes; return the answer up to the end of the connection, or until a second without data."""
    with socket.create_connection((HOST, port), timeout=ANSWER_S) as peer:
        peer.sendall(request)
        answer = b""
        while data := peer.recv(4096):
            answer += data
        return answer


def health(port: int) -> tuple[int, str | None, dict[str, object]]:
    """Request a health check; return status, ``Retry-After`` and body."""
    connection = HTTPConnection(HOST, port, timeout=ANSWER_S)
    connection.request("GET", "/api/health/checks/ready-to-serve-clients")
    response = connection.getresponse()
    return response.status, response.getheader("Retry-After"), json.loads(response.read())


def test_each_port_answers_that_the_broker_is_not_ready(
    gateway: Gateway, ports: dict[str, int], connect: Connect
) -> None:
    status, retry_after, body = health(ports["management"])
    assert (status, retry_after, body["status"], body["of"]) == (503, "1", "starting", 2 * QUEUES + 3)
    assert str(body["reason"]).startswith(STARTING)

    stomp = exchange(ports["stomp"], b"CONNECT\naccept-version:1.2\nhost:/\n\n\0")
    assert stomp.startswith(b"ERROR\nmessage:Broker not ready\n")
    assert STARTING.encode() in stomp

    parameters = pika.ConnectionParameters(HOST, ports["amqp"], socket_timeout=ANSWER_S)
    with pytest.raises(IncompatibleProtocolError, match=f"\\(320\\).*CONNECTION_FORCED - {STARTING}"):
        pika.BlockingConnection(parameters)

    codes: list[object] = []
    client = paho.Client(paho.CallbackAPIVersion.VERSION2, protocol=paho.MQTTv5)
    client.on_connect = lambda client, data, flags, reason, properties: codes.append(
        (reason.value, properties.ReasonString.startswith(STARTING))
    )
    client.connect(HOST, ports["mqtt"])
    deadline = time.monotonic() + ANSWER_S
    while not codes and time.monotonic() < deadline:
        client.loop(0.1)
    assert codes == [(0x88, True)]

    assert gateway.output == "", "the listeners are announced before the broker is ready"
    gateway.log_has("recovered", timeout_s=60)
    gateway.wait_until_ready()
    assert connect().channel().queue_declare(f"q{QUEUES - 1}", passive=True).method.message_count == 0


def test_pika_connects_with_retries_when_the_broker_is_ready(gateway: Gateway, ports: dict[str, int]) -> None:
    parameters = pika.ConnectionParameters(HOST, ports["amqp"], connection_attempts=100, retry_delay=0.5)
    connection = pika.BlockingConnection(parameters)
    assert connection.channel().queue_declare("q0", passive=True).method.queue == "q0"
    connection.close()


def test_a_signal_stops_the_recovery_and_the_next_start_finds_everything(
    gateway: Gateway, ports: dict[str, int], connect: Connect
) -> None:
    assert health(ports["management"])[0] == 503
    started = time.monotonic()
    assert gateway.stop() == 0
    assert time.monotonic() - started < ANSWER_S
    assert "recovered vhosts" not in gateway.log
    assert "Traceback" not in gateway.log
    gateway.start()
    assert connect().channel().queue_declare("q0", passive=True).method.queue == "q0"
