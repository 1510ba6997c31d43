"""A device: it publishes one message by MQTT 3.1.1 and leaves."""

import socket
from typing import Final

TIMEOUT_S: Final = 10.0

_CONNECT: Final = 0x10
_PUBLISH_QOS_1: Final = 0x32
_DISCONNECT: Final = b"\xe0\x00"

#: What the broker answers: a CONNACK without an error, and the PUBACK of packet 1.
_CONNACK: Final = b"\x20\x02\x00\x00"
_PUBACK: Final = b"\x40\x02\x00\x01"

_CLEAN_WITH_LOGIN: Final = 0xC2


class DeviceRefused(Exception):
    """The broker refused the login or the message."""


def publish_once(address: tuple[str, int], client_id: str, login: tuple[str, str], topic: str, payload: bytes) -> None:
    """Publish a message with QoS 1, and return when the broker has acknowledged it.

    :raises DeviceRefused: if the broker refuses it.
    :raises OSError: if the connection fails.
    """
    with socket.create_connection(address, TIMEOUT_S) as connection:
        connection.sendall(_connect(client_id, *login))
        _expect(connection, _CONNACK, "the login")
        connection.sendall(_packet(_PUBLISH_QOS_1, _text(topic) + b"\x00\x01" + payload))
        _expect(connection, _PUBACK, "the message")
        connection.sendall(_DISCONNECT)


def _connect(client_id: str, user: str, password: str) -> bytes:
    head = _text("MQTT") + bytes((4, _CLEAN_WITH_LOGIN, 0, 30))  # level 4 is 3.1.1; keep alive of 30 s
    return _packet(_CONNECT, head + _text(client_id) + _text(user) + _text(password))


def _expect(connection: socket.socket, answer: bytes, what: str) -> None:
    received = b""
    while len(received) < len(answer):
        if not (more := connection.recv(len(answer) - len(received))):
            break
        received += more
    if received != answer:
        raise DeviceRefused(f"the broker refused {what} of the device")


def _packet(kind: int, content: bytes) -> bytes:
    length, size = bytearray(), len(content)
    while True:
        size, digit = divmod(size, 128)
        length.append(digit | (0x80 if size else 0))
        if not size:
            return bytes((kind, *length)) + content


def _text(text: str) -> bytes:
    encoded = text.encode()
    return len(encoded).to_bytes(2, "big") + encoded
