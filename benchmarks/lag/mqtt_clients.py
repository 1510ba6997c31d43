"""MQTT clients of the scenarios: many connections, retained messages, subscribers."""

import struct
from socket import create_connection, socket
from typing import Final

TIMEOUT_S: Final = 120.0


class MqttClients:
    """Clients of one broker, with persistent sessions and wills."""

    def __init__(self, port: int) -> None:
        self._port = port

    def connect(self, count: int) -> list[socket]:
        """Connect clients simultaneously; return them when all are accepted."""
        peers = [create_connection(("127.0.0.1", self._port), TIMEOUT_S) for _ in range(count)]
        for number, peer in enumerate(peers):
            peer.sendall(connect_packet(f"lag-{number}", has_will=True))
        for peer in peers:
            if len(peer.recv(4)) < 4:
                raise ConnectionError("a client was not accepted")
        return peers

    def retain(self, count: int) -> None:
        """Publish retained messages; return when all are acknowledged."""
        with create_connection(("127.0.0.1", self._port), TIMEOUT_S) as peer:
            peer.sendall(connect_packet("lag-retainer", has_will=False))
            peer.recv(4)
            for start in range(0, count, 500):
                some = range(start, min(start + 500, count))
                peer.sendall(b"".join(_retain(f"lag/{number % 100}/{number}", number % 65535 + 1) for number in some))
                missing = 4 * len(some)
                while missing:
                    missing -= len(peer.recv(missing))


def connect_packet(client_id: str, *, has_will: bool) -> bytes:
    """Return a CONNECT of MQTT 3.1.1 as guest: with a will and a persistent session, or with neither."""
    flags = 0xC0 | (0x04 if has_will else 0x02)
    will = _text(f"lag/wills/{client_id}") + _text("gone") if has_will else b""
    body = _text("MQTT") + bytes([4, flags, 0, 0]) + _text(client_id) + will + _text("guest") + _text("guest")
    return b"\x10" + bytes([len(body)]) + body


def subscribe_to_all(port: int, subscribers: int, count: int) -> None:
    """Subscribe clients to all retained messages; return when each has received all."""
    peers = [create_connection(("127.0.0.1", port), TIMEOUT_S) for _ in range(subscribers)]
    for number, peer in enumerate(peers):
        peer.sendall(connect_packet(f"lag-subscriber-{number}", has_will=False))
        peer.recv(4)
        peer.sendall(b"\x82\x0a\x00\x01\x00\x05lag/#\x00")
    size = sum(len(_retain(f"lag/{number % 100}/{number}", 0)) for number in range(count)) + 5
    for peer in peers:
        missing = size
        while missing > 0:
            data = peer.recv(1 << 20)
            if not data:
                raise ConnectionError("the broker closed a subscriber's connection")
            missing -= len(data)
        peer.close()


def _retain(topic: str, packet_id: int) -> bytes:
    """Return a retained publish: QoS 1 with an identifier, QoS 0 without."""
    body = _text(topic) + (struct.pack(">H", packet_id) if packet_id else b"") + b"retained"
    return bytes([0x33 if packet_id else 0x31, len(body)]) + body


def _text(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode()
