"""Framing between the broker and its columnar worker: a JSON head and a payload of bytes, in both directions.

A frame is two lengths of four bytes, big-endian, then the head in JSON, then the payload.
"""

import json
from collections.abc import Iterator
from struct import Struct
from typing import Any, Final, NamedTuple, TypeAlias

from gateway.kernel.errors import ProtocolViolation

Head: TypeAlias = dict[str, Any]
"""The JSON head of a request or answer; each kind of request defines its fields."""

_LENGTHS: Final = Struct(">II")


class Frame(NamedTuple):
    """One request or answer."""

    head: Head
    payload: bytes


def encode_frame(head: Head, payload: bytes = b"") -> bytes:
    """Return the bytes of a frame."""
    encoded = json.dumps(head, separators=(",", ":")).encode()
    return b"".join((_LENGTHS.pack(len(encoded), len(payload)), encoded, payload))


class FrameReader:
    """Splits a byte stream into frames."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size = 0
        self._wanted = _LENGTHS.size

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Feed bytes; yield each frame they complete. :raises ProtocolViolation: if a head is not a JSON object."""
        self._pieces.append(data)
        self._size += len(data)
        while self._size >= self._wanted:
            gathered = b"".join(self._pieces)
            head_size, payload_size = _LENGTHS.unpack_from(gathered)
            payload_at = _LENGTHS.size + head_size
            end = payload_at + payload_size
            if len(gathered) < end:
                self._pieces, self._wanted = [gathered], end
                return
            self._pieces, self._size, self._wanted = [gathered[end:]], len(gathered) - end, _LENGTHS.size
            yield Frame(_head(gathered[_LENGTHS.size : payload_at]), gathered[payload_at:end])


def _head(encoded: bytes) -> Head:
    try:
        head = json.loads(encoded.decode())
    except (ValueError, RecursionError) as error:
        raise ProtocolViolation(f"the head of a frame is not JSON: {error}") from None
    if not isinstance(head, dict):
        raise ProtocolViolation("the head of a frame is not a JSON object")
    return head
