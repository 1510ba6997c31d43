"""WebSocket: what a client sends. The protocol inside is masked by its own grammar."""

from typing import Final

from gateway.recording.masking.http import head_grammar
from gateway.recording.parsing import ByteFilter, Grammar, Nested, Read, Skip

_MASKED: Final = 0x80
_RESERVED: Final = 0x70
_CONTROL: Final = 0x08


def client_grammar(inner: ByteFilter) -> Grammar:
    """Return the grammar of a client's handshake and frames (RFC 6455, 5.2); ``inner`` gets their payload."""
    yield from head_grammar()
    while True:
        first, second = yield Read(2)
        size = second & 0x7F
        if first & _RESERVED or not second & _MASKED:
            return
        if size >= 126:
            size = int.from_bytes((yield Read(2 if size == 126 else 8)))
        key = yield Read(4)
        if first & _CONTROL:
            yield Skip(size, hides=True)
        else:
            yield Nested(size, key, inner)
