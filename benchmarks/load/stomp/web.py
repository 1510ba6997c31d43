"""STOMP in WebSocket frames (RFC 6455) for the load generator: one STOMP frame in each."""

import struct
from typing import Final

from benchmarks.load.client_rig import BrokerRefused
from benchmarks.load.stomp import wire
from benchmarks.load.stomp.client import Client

#: The first octet of a whole text message.
_TEXT: Final = 0x81
_MASKED: Final = 0x80
#: A masking key without effect: client frames must be masked (RFC 6455, 5.3), but a zero key costs the generator
#: nothing.
_KEY: Final = bytes(4)

_LONG, _HUGE = 126, 127

_UPGRADE: Final = (
    b"GET /ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Protocol: v12.stomp\r\n\r\n"
)


def framed(payload: bytes) -> bytes:
    """Return a client's WebSocket frame with a 16-bit length."""
    size = len(payload)
    if size < _LONG:
        return bytes((_TEXT, _MASKED | size)) + _KEY + payload
    return struct.pack(">BBH", _TEXT, _MASKED | _LONG, size) + _KEY + payload


class WebClient(Client):
    """A client over WebSocket. Owns the octets of incomplete WebSocket frames."""

    def open(self) -> None:
        """Upgrade to WebSocket, then open as any STOMP client."""
        self._octets = bytearray()
        self.socket.sendall(_UPGRADE)
        while b"\r\n\r\n" not in self._octets:
            self._octets += self.received()
        answer, _, rest = bytes(self._octets).partition(b"\r\n\r\n")
        if b" 101 " not in answer.partition(b"\r\n")[0]:
            raise BrokerRefused(answer.decode("latin-1"))
        self._octets = bytearray(rest)
        super().open()

    def send(self, frame: bytes) -> None:
        """Send a STOMP frame in one WebSocket frame."""
        self.socket.sendall(framed(frame))

    def receive(self) -> None:
        """Wait for more data from the broker, and extract it from its WebSocket frames."""
        self._octets += self.received()
        while (payload := self._payload()) is not None:
            self.unread += payload

    def _payload(self) -> bytes | None:
        """Extract the next whole frame; return ``None`` if there is none."""
        octets = self._octets
        if len(octets) < 2:
            return None
        size, start = octets[1], 2
        if size in (_LONG, _HUGE):
            start = 4 if size == _LONG else 10
            size = int.from_bytes(octets[2:start], "big")
        if len(octets) < start + size:
            return None
        payload = bytes(octets[start : start + size])
        del octets[: start + size]
        return payload


class WebFrames:
    """Counts deliveries by the end of the body and its NUL, because WebSocket headers may contain NULs too."""

    def __init__(self) -> None:
        self.delivered = 0
        self.is_whole = True
        self._last = b""

    def feed(self, data: memoryview) -> None:
        """Count ends; only line ends may stand between one and the next frame."""
        octets = self._last + bytes(data)
        self.delivered += octets.count(wire.BODY_END)
        end = octets.rfind(wire.BODY_END)
        rest = octets[end + len(wire.BODY_END) :] if end >= 0 else octets
        self.is_whole = not rest.strip(b"\n") and (end >= 0 or self.is_whole)
        self._last = octets[-1:]
