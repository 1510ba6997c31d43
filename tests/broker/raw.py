"""AMQP by prebuilt bytes, for tests that need speed or send invalid sequences."""

import socket
import struct
from typing import Final

HEADER: Final = b"AMQP\x00\x00\x09\x01"


def frame(method: bytes, channel: int = 0) -> bytes:
    """Return a method frame."""
    return struct.pack(">BHI", 1, channel, len(method)) + method + b"\xce"


#: A whole login in one write: start-ok, tune-ok, open of the virtual host, open of channel 1.
LOGIN: Final = HEADER + b"".join(
    (
        frame(b"\x00\x0a\x00\x0b" + bytes(4) + b"\x05PLAIN" + b"\x00\x00\x00\x0c\x00guest\x00guest" + b"\x05en_US"),
        frame(b"\x00\x0a\x00\x1f" + struct.pack(">HIH", 2047, 131072, 0)),
        frame(b"\x00\x0a\x00\x28" + b"\x01/\x00\x00"),
        frame(b"\x00\x14\x00\x0a\x00", channel=1),
    )
)
#: An exclusive server-named queue with a consumer.
QUEUE_AND_CONSUMER: Final = frame(b"\x00\x32\x00\x0a\x00\x00\x00\x04" + bytes(4), channel=1) + frame(
    b"\x00\x3c\x00\x14\x00\x00\x00\x00\x00" + bytes(4), channel=1
)
CLOSE: Final = frame(b"\x00\x0a\x00\x32\x00\xc8\x00\x00\x00\x00\x00")
CONSUMING: Final = b"\x00\x3c\x00\x15"
CLOSED: Final = b"\x00\x0a\x00\x33"

DECLARED: Final = b"\x00\x32\x00\x0b"


def read_until(peer: socket.socket, answer: bytes) -> bytes:
    """Read until the broker has sent this answer; return everything received."""
    received = b""
    while answer not in received:
        data = peer.recv(65536)
        assert data, "the broker closed the connection"
        received += data
    return received


def declare(queue: str) -> bytes:
    """Declare a durable queue; declare-ok arrives when the declaration is on disk."""
    return frame(b"\x00\x32\x00\x0a\x00\x00" + _short(queue) + b"\x02" + bytes(4), channel=1)


def publish(queue: str, body: bytes) -> bytes:
    """Publish a persistent message to a queue."""
    method = frame(b"\x00\x3c\x00\x28\x00\x00\x00" + _short(queue) + b"\x00", channel=1)
    header = struct.pack(">HHQHB", 60, 0, len(body), 0x1000, 2)
    return method + _framed(2, header) + _framed(3, body)


def consume(queue: str) -> bytes:
    """Consume without acknowledgements, with the tag ``c``."""
    return frame(b"\x00\x3c\x00\x14\x00\x00" + _short(queue) + b"\x01c" + b"\x02" + bytes(4), channel=1)


def delivery_size(queue: str, body: bytes) -> int:
    """Return the size of a delivery to the tag ``c``, of a message with only a delivery mode."""
    method = 4 + len(_short("c")) + 8 + 1 + len(_short("")) + len(_short(queue))
    return 8 + method + 8 + 15 + 8 + len(body)


def _framed(kind: int, payload: bytes) -> bytes:
    return struct.pack(">BHI", kind, 1, len(payload)) + payload + b"\xce"


def _short(text: str) -> bytes:
    return bytes((len(text),)) + text.encode()
