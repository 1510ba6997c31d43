"""WebSocket: an outline of what the broker sends. The protocol inside has its own."""

from typing import Final

from gateway.recording.parsing import Grammar, Nested, Read, ReadUntil, Skip, StreamParser

_CONTROL: Final = 0x08
_LONGEST_LINE: Final = 64 * 1024


def outline_grammar(inner: Grammar) -> Grammar:
    """Return the grammar of the broker's handshake and frames (RFC 6455, 5.2)."""
    parser = StreamParser(inner)
    while (yield ReadUntil(b"\n", _LONGEST_LINE)).strip():
        pass  # the head of the answer
    while True:
        first, second = yield Read(2)
        size = second & 0x7F
        if size >= 126:
            size = int.from_bytes((yield Read(2 if size == 126 else 8)))
        yield Skip(size) if first & _CONTROL else Nested(size, b"", parser)
