"""Resources of clients are released however their connections end: connections, channels, consumers, queues."""

import socket
import struct
from collections.abc import Callable
from itertools import count
from typing import Final

import pika
import pytest

from tests.broker.conftest import Connect
from tests.broker.raw import CLOSE, CLOSED, CONSUMING, HEADER, LOGIN, QUEUE_AND_CONSUMER, frame, read_until
from tests.interop.amqp_clients.pika_client import fetch, parameters
from tests.interop.broker import Broker
from tests.running import Gateway

#: Allowed growth: caches that fill, memory the allocator reuses, and reference cycles that Python collects in
#: batches. Peaks over several collections are compared.
TOLERANCE: Final = 3 * 2**20

Visit = Callable[[Broker], None]


def orderly(broker: Broker) -> None:
    with socket.create_connection((broker.host, broker.port), timeout=30) as peer:
        peer.sendall(LOGIN + QUEUE_AND_CONSUMER)
        read_until(peer, CONSUMING)
        peer.sendall(CLOSE)
        read_until(peer, CLOSED)


def abrupt(broker: Broker) -> None:
    """Reset the connection in the middle of a publish."""
    with socket.create_connection((broker.host, broker.port), timeout=30) as peer:
        peer.sendall(LOGIN + QUEUE_AND_CONSUMER)
        read_until(peer, CONSUMING)
        peer.sendall(frame(b"\x00\x3c\x00\x28\x00\x00\x00\x04none\x00", channel=1)[:-3])
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def silent(broker: Broker) -> None:
    """Send the protocol header and disconnect."""
    with socket.create_connection((broker.host, broker.port), timeout=30) as peer:
        peer.sendall(HEADER)
        peer.recv(4096)


def growth(gateway: Gateway, visit: Callable[[], None], visits: int) -> int:
    """Return by how many bytes the peak of the broker's memory grows in a second series of visits."""

    def peak() -> int:
        return max(_memory_after(gateway, visit, visits // 20) for _ in range(20))

    return -peak() + peak()


def _memory_after(gateway: Gateway, visit: Callable[[], None], visits: int) -> int:
    for _ in range(visits):
        visit()
    return gateway.private_memory()


@pytest.mark.parametrize("visit", [orderly, abrupt, silent], ids=lambda visit: visit.__name__)
def test_connections_leave_nothing_behind(visit: Visit, gateway: Gateway) -> None:
    broker = gateway.start("log.level=warning").broker
    assert growth(gateway, lambda: visit(broker), 2400) < TOLERANCE


def test_channels_and_consumers_leave_nothing_behind(gateway: Gateway, connect: Connect) -> None:
    gateway.start()
    connection = connect()

    def visit() -> None:
        channel = connection.channel()
        queue = channel.queue_declare("", exclusive=True).method.queue
        channel.queue_bind(queue, "amq.topic", f"key.{queue}")
        channel.basic_publish("", queue, b"x" * 1000)
        channel.basic_consume(queue, lambda *delivery: None, auto_ack=False)
        channel.close()
        kept = connection.channel()
        kept.queue_delete(queue)
        kept.close()

    assert growth(gateway, visit, 1200) < TOLERANCE


def test_messages_leave_nothing_behind(gateway: Gateway, connect: Connect) -> None:
    gateway.start()
    channel = connect().channel()
    channel.queue_declare("q", durable=True)
    numbers = count()

    def visit() -> None:
        for _ in range(100):  # no two headers are alike
            properties = pika.BasicProperties(delivery_mode=2, message_id=f"message {next(numbers)}")
            channel.basic_publish("", "q", bytes(1000), properties)
        fetch(channel, "q", 100)

    assert growth(gateway, visit, 60) < TOLERANCE


def test_exclusive_queues_are_deleted_with_their_connection(gateway: Gateway, connect: Connect) -> None:
    gateway.start()
    watching = connect()
    with pika.BlockingConnection(parameters(gateway.broker)) as connection:
        connection.channel().queue_declare("mine", exclusive=True)
    channel = watching.channel()
    assert channel.queue_declare("mine", exclusive=True).method.message_count == 0
