"""The bytes of a body in Avro's binary encoding, read with bounds.

The reader of ``fastavro`` is for data of a trusted writer: nested records of 16 KiB end the process, an array of nulls
takes memory without limit, and negative indexes of enums and unions are accepted.
"""

from typing import Final

from gateway.columnar.bodies.body_schema import BodyRefused

#: The levels of records, arrays, maps and unions of a body.
_DEEPEST: Final = 100


class AvroBody:
    """The bytes of a body, and the position and depth of the reader. ``items_left`` bounds items of no bytes."""

    __slots__ = ("at", "data", "depth", "items_left")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0
        self.depth = 0
        self.items_left = len(data)

    def take(self, size: int) -> bytes:
        """Return the next ``size`` bytes."""
        end = self.at + size
        if size < 0:
            raise BodyRefused(f"a size of {size} bytes")
        if end > len(self.data):
            raise BodyRefused(f"{size} bytes expected, {len(self.data) - self.at} left")
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
                raise BodyRefused(f"an integer of more than {bits} bits")
        if raw >> bits:
            raise BodyRefused(f"an integer of more than {bits} bits")
        return (raw >> 1) ^ -(raw & 1)

    def items(self) -> int:
        """Return the number of items in the next block of an array or a map; 0 after the last."""
        count = self.number()
        if count < 0:
            count = -count
            self.number()  # the size of the block in bytes, for readers that skip it
        self.items_left -= count
        if self.items_left < 0:
            raise BodyRefused("more items than bytes")
        return count

    def enter(self) -> None:
        """Count one more level."""
        self.depth += 1
        if self.depth > _DEEPEST:
            raise BodyRefused(f"nested deeper than {_DEEPEST} levels")

    def leave(self) -> None:
        """Count one level less."""
        self.depth -= 1

    def finish(self) -> None:
        """Check that nothing is left."""
        if left := len(self.data) - self.at:
            raise BodyRefused(f"{left} bytes follow the value")
