"""MQTT clients that send DISCONNECT get everything first that was sent for them."""

import socket
from collections.abc import Iterator
from typing import Final

import pytest

from tests.protocols.mqtt.packets import FOUR
from tests.running import Gateway

CONNACK: Final = b"\x20\x02\x00\x00"
DISCONNECT: Final = b"\xe0\x00"
PINGRESP: Final = b"\xd0\x00"

#: More than the buffers of a connection on loopback hold.
MUCH: Final = 24 * 1024 * 1024


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    gateway = Gateway(tmp_path_factory.mktemp("disconnected"))
    gateway.start()
    try:
        yield gateway
    finally:
        gateway.stop()


def connected(gateway: Gateway) -> socket.socket:
    return socket.create_connection(gateway.addresses["mqtt"], timeout=20.0)


def read(client: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size and (piece := client.recv(size - len(found))):
        found += piece
    return found


def read_to_end(client: socket.socket) -> bytes:
    pieces = []
    while piece := client.recv(1024 * 1024):
        pieces.append(piece)
    return b"".join(pieces)


def test_answers_of_the_same_segment_are_sent_first(gateway: Gateway) -> None:
    with connected(gateway) as client:
        client.sendall(FOUR.connect("leaves") + 100 * FOUR.pingreq() + DISCONNECT)
        assert read_to_end(client) == CONNACK + 100 * PINGRESP


def test_deliveries_that_the_client_has_not_read_are_sent_first(gateway: Gateway) -> None:
    body = bytes(512 * 1024)
    message = FOUR.publish("much", body)
    with connected(gateway) as client, connected(gateway) as publisher:
        client.sendall(FOUR.connect("reads-late") + FOUR.subscribe(("much", 0)))
        assert read(client, 4) == CONNACK
        assert read(client, 5)[:1] == b"\x90"
        publisher.sendall(FOUR.connect("publishes") + message * (MUCH // len(body)) + FOUR.pingreq())
        assert read(publisher, 6) == CONNACK + PINGRESP
        client.sendall(DISCONNECT)
        received = read_to_end(client)
    assert received, "nothing was delivered"
    assert received == (message * (MUCH // len(body)))[: len(received)]
    assert len(received) % len(message) == 0, "a delivery was cut"
