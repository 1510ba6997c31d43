"""Decoder of the frames that a client receives: checks that they are well formed, and formats each as one line.

The lines are those of the tables: ``CONNECTED 1.2``, ``RECEIPT r``, ``MESSAGE s /queue/q 'hi'`` with ``again`` if it is
redelivered and followed by the publisher's own headers, ``ERROR Missing destination`` with ``of r`` if it has a
receipt-id, and ``closed``. The decoder is independent of the product's codec.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tests.protocols.stomp import dialogue

_ESCAPES: Final = {
    "1.0": {},
    "1.1": {"\\n": "\n", "\\c": ":", "\\\\": "\\"},
    "1.2": {"\\n": "\n", "\\c": ":", "\\\\": "\\", "\\r": "\r"},
}

#: Headers of MESSAGE that the line shows in another form, or omits.
_TOLD: Final = frozenset({"subscription", "destination", "message-id", "ack", "redelivered", "content-length"})


@dataclass(frozen=True)
class Heard(dialogue.Heard):
    """One received frame; ``lines`` are its header lines unchanged."""

    lines: tuple[str, ...] = ()

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
                own = [f"{name}={value}" for name, value in headers.items() if name not in _TOLD]
                body = repr(self.body)[1:]
                return " ".join(["MESSAGE", *id, headers["destination"], body, *again, *own])
        return self.verb


class FrameReader:
    """Decodes the machine's output; an invalid frame fails the test."""

    def __init__(self, version: str) -> None:
        self.version = version
        self._unread = b""

    def listen(self, data: bytes) -> Iterator[Heard]:
        """Yield the frames that ``data`` completes; skip ends of lines between them."""
        self._unread += data
        while self._unread:
            if self._unread.startswith(b"\n"):
                self._unread = self._unread[1:]
                continue
            head, blank, rest = self._unread.partition(b"\n\n")
            assert blank, "a head without an end"
            yield self._frame(head.decode().split("\n"), rest)

    def _frame(self, head: list[str], rest: bytes) -> Heard:
        verb, *lines = head
        escapes = {} if verb == "CONNECTED" else _ESCAPES[self.version]
        headers: dict[str, str] = {}
        for line in lines:
            name, colon, value = line.partition(":")
            assert colon, f"{line!r} is not a header"
            assert not escapes or ":" not in value, f"a colon that is not escaped: {line!r}"
            headers.setdefault(_unescaped(name, escapes), _unescaped(value, escapes))
        length = int(headers["content-length"]) if "content-length" in headers else rest.index(b"\0")
        assert rest[length : length + 1] == b"\0", "no NUL after the body"
        self._unread = rest[length + 1 :]
        return Heard(verb, headers, rest[:length], tuple(lines))


def _unescaped(text: str, escapes: dict[str, str]) -> str:
    unescaped, at = "", 0
    while at < len(text):
        escape = text[at : at + 2] if escapes and text[at] == "\\" else ""
        unescaped += escapes[escape] if escape else text[at]
        at += len(escape) or 1
    return unescaped
