"""Decoder of the frames that a peer receives: checks that they are well formed, and formats each as one line.

The lines are those in the tables of the conformance tests: ``Queue.PurgeOk(message_count=2)``, a close as
``Channel.Close 404 NOT_FOUND - ... (60,40)``, a content after its method, and `` ch=2`` for channels above 1.
"""

from dataclasses import dataclass, field
from typing import Final

from pamqp import commands
from pamqp.base import Frame

from gateway_amqp.content import BODY, FRAME_END, FRAME_HEAD, HEADER, HEARTBEAT, METHOD
from gateway_amqp.methods import decode_method
from gateway_amqp.properties import decode_properties
from gateway_amqp.tuning import PROTOCOL_HEADER

CARRIES_CONTENT: Final = (commands.Basic.Deliver, commands.Basic.GetOk, commands.Basic.Return)


@dataclass(frozen=True)
class ReceivedFrame:
    """One received method, with its content. ``body_sizes`` are those of the body frames, in order."""

    channel: int
    method: Frame | None = None
    properties: bytes = b""
    body: bytes = b""
    body_sizes: tuple[int, ...] = ()
    note: str = ""

    def __str__(self) -> str:
        where = f" ch={self.channel}" if self.channel > 1 else ""
        if self.method is None:
            return self.note + where
        carried = f" {self.body!r}" if isinstance(self.method, CARRIES_CONTENT) else ""
        return spelled(self.method) + carried + where

    @property
    def headers(self) -> dict[str, object]:
        """The headers property, empty if there is none."""
        return dict(decode_properties(self.properties).headers or {})


EOF: Final = ReceivedFrame(0, note="EOF")


def spelled(method: Frame) -> str:
    """Format a method as in the tables."""
    if isinstance(method, commands.Channel.Close | commands.Connection.Close):
        return f"{method.name} {method.reply_code} {method.reply_text} ({method.class_id},{method.method_id})"
    arguments = ", ".join(f"{name}={getattr(method, name)!r}" for name in method.attributes() if name != "ticket")
    return f"{method.name}({arguments})"


@dataclass
class _Arriving:
    """A content whose frames are not complete yet."""

    method: Frame
    properties: bytes | None = None
    missing: int = 0
    pieces: list[bytes] = field(default_factory=list)

    def received(self, channel: int) -> ReceivedFrame:
        assert self.properties is not None
        return ReceivedFrame(
            channel, self.method, self.properties, b"".join(self.pieces), tuple(len(piece) for piece in self.pieces)
        )


class FrameReader:
    """Decodes the machine's output; an invalid frame fails the test. ``frame_max`` is the negotiated one."""

    def __init__(self) -> None:
        self.frame_max = 131_072
        self._unread = b""
        self._arriving: dict[int, _Arriving] = {}

    def feed(self, data: bytes) -> list[ReceivedFrame]:
        """Return the frames that ``data`` completes."""
        self._unread += data
        received: list[ReceivedFrame] = []
        while len(self._unread) >= 8:
            if self._unread.startswith(b"AMQP"):
                assert self._unread[:8] == PROTOCOL_HEADER
                received.append(ReceivedFrame(0, note="AMQP 0-9-1"))
                self._unread = self._unread[8:]
                continue
            kind, channel, size = FRAME_HEAD.unpack_from(self._unread)
            assert size + 8 <= self.frame_max, (
                f"a frame of {size + 8} bytes, the negotiated maximum is {self.frame_max}"
            )
            if len(self._unread) < size + 8:
                break
            assert self._unread[size + 7] == FRAME_END
            received += self._frame(kind, channel, self._unread[7 : size + 7])
            self._unread = self._unread[size + 8 :]
        return received

    @property
    def is_complete(self) -> bool:
        """Return whether no frame is incomplete."""
        return not self._unread and not self._arriving

    def _frame(self, kind: int, channel: int, payload: bytes) -> list[ReceivedFrame]:
        if kind == HEARTBEAT:
            assert not channel
            assert not payload
            return [ReceivedFrame(0, note="heartbeat")]
        arriving = self._arriving.get(channel)
        if arriving is None:
            assert kind == METHOD
            return self._method(channel, decode_method(payload))
        if arriving.properties is None:
            assert kind == HEADER
            assert payload[:4] == b"\x00\x3c\x00\x00"
            arriving.missing = int.from_bytes(payload[4:12], "big")
            arriving.properties = payload[12:]
        else:
            assert kind == BODY
            assert 0 < len(payload) <= arriving.missing
            arriving.pieces.append(payload)
            arriving.missing -= len(payload)
        if arriving.missing:
            return []
        del self._arriving[channel]
        return [arriving.received(channel)]

    def _method(self, channel: int, method: Frame) -> list[ReceivedFrame]:
        if isinstance(method, CARRIES_CONTENT):
            self._arriving[channel] = _Arriving(method)
            return []
        return [ReceivedFrame(channel, method)]
