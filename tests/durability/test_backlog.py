"""A long queue without consumers: memory stays bounded, a restart is quick, and disk space is reused."""

import socket
import time
from typing import Final

from tests.broker.conftest import Connect
from tests.broker.raw import CONSUMING, DECLARED, LOGIN, consume, declare, delivery_size, publish, read_until
from tests.running import Gateway

MESSAGES: Final = 100_000
BODY: Final = bytes(1024)
BATCH: Final = 2_000

MOST_MEMORY: Final = 200 * 2**20
FIRST_DELIVERY_S: Final = 3.0


def fill(gateway: Gateway) -> None:
    """Publish the backlog, and wait until it is on disk."""
    with socket.create_connection(gateway.addresses["amqp"], timeout=60) as peer:
        peer.sendall(LOGIN + declare("q"))
        read_until(peer, DECLARED)
        some = publish("q", BODY) * BATCH
        for _ in range(MESSAGES // BATCH):
            peer.sendall(some)
        peer.sendall(declare("after"))
        read_until(peer, DECLARED)


def drain(gateway: Gateway) -> float:
    """Consume all messages; return the seconds until the first delivery."""
    with socket.create_connection(gateway.addresses["amqp"], timeout=60) as peer:
        began = time.monotonic()
        peer.sendall(LOGIN + consume("q"))
        rest = MESSAGES * delivery_size("q", BODY)
        answer = read_until(peer, CONSUMING)
        rest -= len(answer.split(CONSUMING, 1)[1]) - len(b"\x01c\xce")
        first_s = time.monotonic() - began
        while rest > 0:
            data = peer.recv(1 << 20)
            assert data, "the broker closed the connection"
            rest -= len(data)
        assert rest == 0
    return first_s


def test_a_long_queue_stays_on_disk(gateway: Gateway, connect: Connect) -> None:
    gateway.start()
    fill(gateway)
    assert gateway.resident_memory() < MOST_MEMORY
    size = (gateway.data / "data.mdb").stat().st_size
    assert size > MESSAGES * len(BODY)

    began = time.monotonic()
    gateway.restart()
    assert connect().channel().queue_declare("q", passive=True).method.message_count == MESSAGES
    assert drain(gateway) < FIRST_DELIVERY_S
    assert time.monotonic() - began < 60
    assert gateway.resident_memory() < MOST_MEMORY

    assert connect().channel().queue_declare("q", passive=True).method.message_count == 0
    fill(gateway)
    assert (gateway.data / "data.mdb").stat().st_size < 1.1 * size
    assert gateway.resident_memory() < MOST_MEMORY
