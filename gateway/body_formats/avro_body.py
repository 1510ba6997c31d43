"""The bytes of a body in Avro's binary encoding, read with bounds.

The reader of ``fastavro`` is for data of a trusted writer: nested records of 16 KiB end the process, an array of nulls
takes memory without limit, and negative indexes of enums and unions are accepted.
"""

from collections.abc import Callable
from typing import Final

#: The levels of records, arrays, maps and unions of a body.
_DEEPEST: Final = 100


class AvroBody:
    """The bytes of a body, and the position and depth of the reader. ``items_left`` bounds items of no bytes.

    :param refusal: makes the exception for bytes that are no such body from its reason; every method may raise it.
    """

    __slots__ = ("_refusal", "at", "data", "depth", "items_left")

    def __init__(self, data: bytes, refusal: Callable[[str], Exception]) -> None:
        self._refusal = refusal
        self.data = data
        self.at = 0
        self.depth = 0
        self.items_left = len(data)

    def take(self, size: int) -> bytes:
        """Return the next ``size`` bytes."""
        end = self.at + size
        if size < 0:
            raise self._refusal(f"a size of {size} bytes")
        if end > len(self.data):
            raise self._refusal(f"{size} bytes expected, {len(self.data) - self.at} left")
        taken = self.data[self.at : end]
        self.at = end
        return taken

    def number(self, bits: int = 64) -> int:
        """Return the next integer, in zigzag encoding."""
        raw = shift = 0
        while True:
            (byte,) = self.take(1)
            raw |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
            if shift >= bits:
                raise self._refusal(f"an integer of more than {bits} bits")
        if raw >> bits:
            raise self._refusal(f"an integer of more than {bits} bits")
        return (raw >> 1) ^ -(raw & 1)

    def items(self) -> int:
        """Return the number of items in the next block of an array or a map; 0 after the last."""
        count = self.number()
        if count < 0:
            count = -count
            self.number()  # the size of the block in bytes, for readers that skip it
        self.items_left -= count
        if self.items_left < 0:
            raise self._refusal("more items than bytes")
        return count

    def enter(self) -> None:
        """Count one more level."""
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self._refusal(f"nested deeper than {_DEEPEST} levels")

    def leave(self) -> None:
        """Count one level less."""
        self.depth -= 1

    def finish(self) -> None:
        """Check that nothing is left."""
        if left := len(self.data) - self.at:
            raise self._refusal(f"{left} bytes follow the value")
