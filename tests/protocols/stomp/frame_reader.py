"""Decoder of the frames that a client receives: checks that they are well formed, and formats each as one line.

The lines are those of the tables: ``CONNECTED 1.2``, ``RECEIPT r``, ``MESSAGE s /queue/q 'hi'`` with ``again`` if it is
redelivered and followed by the publisher's own headers, ``ERROR Missing destination`` with ``of r`` if it has a
receipt-id, and ``closed``. The decoder is independent of the product's codec.
"""

from dataclasses import dataclass, field
from typing import Final

_ESCAPES: Final = {
    "1.0": {},
    "1.1": {"\\n": "\n", "\\c": ":", "\\\\": "\\"},
    "1.2": {"\\n": "\n", "\\c": ":", "\\\\": "\\", "\\r": "\r"},
}

#: Headers of MESSAGE that the line shows in another form, or omits.
_SHOWN_OTHERWISE: Final = frozenset(
    {"subscription", "destination", "message-id", "ack", "redelivered", "content-length"}
)


@dataclass(frozen=True)
class ReceivedFrame:
    """One received frame, its headers unescaped. ``lines`` are its header lines unchanged; comparisons ignore them."""

    verb: str
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    lines: tuple[str, ...] = field(default=(), compare=False)

    def __getitem__(self, name: str) -> str:
        return self.headers[name]

    def __str__(self) -> str:
        headers = self.headers
        match self.verb:
            case "CONNECTED":
                return f"CONNECTED {headers['version']}"
            case "RECEIPT":
                return f"RECEIPT {headers['receipt-id']}"
            case "ERROR":
                return f"ERROR {headers['message']}" + (
                    f" of {headers['receipt-id']}" if "receipt-id" in headers else ""
                )
            case "MESSAGE":
                id = [headers["subscription"]] if "subscription" in headers else []
                again = ["again"] if headers["redelivered"] == "true" else []
                own = [f"{name}={value}" for name, value in headers.items() if name not in _SHOWN_OTHERWISE]
                body = repr(self.body)[1:]
                return " ".join(["MESSAGE", *id, headers["destination"], body, *again, *own])
        return self.verb


CLOSED: Final = ReceivedFrame("closed")


class FrameReader:
    """Decodes the machine's output; an invalid frame fails the test. ``version`` is that of the connection."""

    def __init__(self, version: str) -> None:
        self.version = version
        self._unread = b""

    def feed(self, data: bytes) -> list[ReceivedFrame]:
        """Return the frames that ``data`` completes; skip ends of lines between them."""
        self._unread = (self._unread + data).lstrip(b"\n")
        received = []
        while (frame := self._frame()) is not None:
            received.append(frame)
            self._unread = self._unread.lstrip(b"\n")
        return received

    @property
    def is_complete(self) -> bool:
        """Whether no frame is incomplete."""
        return not self._unread

    def _frame(self) -> ReceivedFrame | None:
        """Remove the first frame from the unread bytes; return ``None`` if it is incomplete."""
        head, blank, rest = self._unread.partition(b"\n\n")
        if not blank:
            return None
        verb, *lines = head.decode().split("\n")
        headers = self._headers(verb, lines)
        length = int(headers["content-length"]) if "content-length" in headers else rest.find(b"\0")
        if not 0 <= length < len(rest):
            return None
        assert rest[length] == 0, "no NUL after the body"
        self._unread = rest[length + 1 :]
        return ReceivedFrame(verb, headers, rest[:length], tuple(lines))

    def _headers(self, verb: str, lines: list[str]) -> dict[str, str]:
        escapes = {} if verb == "CONNECTED" else _ESCAPES[self.version]
        headers: dict[str, str] = {}
        for line in lines:
            name, colon, value = line.partition(":")
            assert colon, f"{line!r} is not a header"
            assert not escapes or ":" not in value, f"a colon that is not escaped: {line!r}"
            name = _unescaped(name, escapes)
            assert name not in headers, f"a repeated header: {line!r}"
            headers[name] = _unescaped(value, escapes)
        return headers


def _unescaped(text: str, escapes: dict[str, str]) -> str:
    unescaped, at = "", 0
    while at < len(text):
        escape = text[at : at + 2] if escapes and text[at] == "\\" else ""
        unescaped += escapes[escape] if escape else text[at]
        at += len(escape) or 1
    return unescaped
