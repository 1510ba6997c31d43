"""STOMP: an outline of what one side sends."""

from collections.abc import Callable
from typing import Final

from gateway.recording.parsing import Grammar, Read, ReadUntil, Skip, SkipUntil

#: The header of each frame that its outline shows.
_SHOWN: Final = {
    b"MESSAGE": b"destination",
    b"RECEIPT": b"receipt-id",
    b"ERROR": b"message",
    b"CONNECT": b"login",
    b"STOMP": b"login",
    b"SEND": b"destination",
    b"SUBSCRIBE": b"destination",
}

_LONGEST: Final = 64 * 1024


def outline_grammar(emit: Callable[[str], None]) -> Grammar:
    """Return the grammar of one side's bytes."""
    while True:
        verb = yield ReadUntil(b"\n\0", _LONGEST)
        verb = verb.strip(b"\r\n\0")
        if not verb:
            continue  # a heart-beat
        length, shown = -1, b""
        while line := (yield ReadUntil(b"\n", _LONGEST)).strip(b"\r\n"):
            name, _, value = line.partition(b":")
            if name == b"content-length":
                length = int(value) if value.isdigit() else -1
            elif name == _SHOWN.get(verb):
                shown = b" " + value
        if length < 0:
            yield SkipUntil(b"\0")
        else:
            yield Skip(length)
            yield Read(1)
        emit((verb + shown).decode(errors="replace"))
