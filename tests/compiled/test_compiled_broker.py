"""A compiled broker starts, serves each protocol, reloads and stops like the interpreted one."""

import re
import signal
import socket
import time
from collections.abc import Mapping
from pathlib import Path

import paho.mqtt.client as paho
import pika
import pytest

from tests.compiled.building import COMPILED
from tests.running import Gateway

TIMEOUT_S = 10.0

#: Compiling takes a minute or two, unless another test has done it.
pytestmark = pytest.mark.timeout(900)


def by_amqp(gateway: Gateway) -> bytes:
    """Publish a message with confirms, and fetch it."""
    host, port = gateway.addresses["amqp"]
    connection = pika.BlockingConnection(pika.ConnectionParameters(host, port, stack_timeout=TIMEOUT_S))
    channel = connection.channel()
    channel.confirm_delivery()
    channel.queue_declare("q", durable=True)
    channel.basic_publish("", "q", b"by amqp", pika.BasicProperties(delivery_mode=2))
    body = next(channel.consume("q", auto_ack=True, inactivity_timeout=TIMEOUT_S))[2]
    connection.close()
    return bytes(body or b"")


def by_mqtt(gateway: Gateway) -> bytes:
    """Publish a message with QoS 1 to a topic that the same client subscribes to."""
    received: list[bytes] = []
    client = paho.Client(paho.CallbackAPIVersion.VERSION2, protocol=paho.MQTTv5)
    client.on_connect = lambda *_: client.subscribe("t", 1)
    client.on_subscribe = lambda *_: client.publish("t", b"by mqtt", 1)
    client.on_message = lambda client, data, message: received.append(message.payload)
    client.connect(*gateway.addresses["mqtt"])
    deadline = time.monotonic() + TIMEOUT_S
    while not received and time.monotonic() < deadline:
        client.loop(0.1)
    client.disconnect()
    return b"".join(received)


def by_stomp(gateway: Gateway) -> bytes:
    """Send a message to a queue that the same client subscribes to."""
    with socket.create_connection(gateway.addresses["stomp"], timeout=TIMEOUT_S) as peer:
        peer.sendall(b"CONNECT\naccept-version:1.2\nhost:/\nlogin:guest\npasscode:guest\n\n\0")
        peer.sendall(b"SUBSCRIBE\nid:1\ndestination:/queue/s\n\n\0SEND\ndestination:/queue/s\n\nby stomp\0")
        received = b""
        while b"by stomp\0" not in received:
            data = peer.recv(4096)
            assert data, f"the broker closed the connection: {received!r}"
            received += data
    return received.partition(b"MESSAGE")[2].partition(b"\n\n")[2].partition(b"\0")[0]


def test_a_compiled_broker_starts_serves_reloads_and_stops(environment: Mapping[str, str], tmp_path: Path) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text("[limits]\nqueues_per_vhost = 100\n")
    gateway = Gateway(tmp_path / "gateway")
    gateway.environment = dict(environment)
    gateway.options = ("--config", str(file))
    try:
        gateway.start()
        mapped = Path(f"/proc/{gateway.child.pid}/maps").read_text()
        assert f"{COMPILED}/gateway/kernel/queueing/queue." in mapped, "the kernel is not compiled"
        assert [by_amqp(gateway), by_mqtt(gateway), by_stomp(gateway)] == [b"by amqp", b"by mqtt", b"by stomp"]
        file.write_text("[limits]\nqueues_per_vhost = 200\n")
        gateway.child.send_signal(signal.SIGHUP)
        assert "applied=limits.queues_per_vhost" in gateway.log_has("info reloaded")
        assert by_amqp(gateway) == b"by amqp"
        assert gateway.stop() == 0
        assert not re.search(r"Traceback|\berror\b", gateway.log), gateway.log
    finally:
        gateway.end()
