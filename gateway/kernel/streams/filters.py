"""Filters of streams: the value a publisher gives a message, what a reader wants of them, and what a segment may hold.

A value is exact for each message. What spares reading is the *bloom* of a segment: a set of values in a fixed number of
bytes, which never denies one that it holds.
"""

from collections.abc import Iterable
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from gateway.kernel.messages.chunks import LONGEST_FILTER

if TYPE_CHECKING:
    from gateway.kernel.messages.message import Header

#: The header a publisher writes the value into.
VALUE_HEADER: Final = "x-stream-filter-value"

#: The bytes of a bloom of which nobody says how large it is to be: 128 bits keep a dozen values apart.
DEFAULT_BLOOM_SIZE: Final = 16

#: How many bits stand for a value.
_BITS_PER_VALUE: Final = 4

#: The flag byte before the bits: messages without a value are there too.
_UNFILTERED: Final = 1

_MOST_MASKS: Final = 4096

_VALUE_HEADER_BYTES: Final = VALUE_HEADER.encode()


def filter_value_of(header: "Header") -> bytes:
    """Return the value a publisher gave its message, empty for none; found once for each header.

    Headers that do not even contain the name are not decoded: a publisher may send another one with each message. What
    is no text, or too long to be kept beside a message, is no value.
    """
    value = b""
    if _VALUE_HEADER_BYTES in header.raw:
        said = header.properties.headers.get(VALUE_HEADER)
        if isinstance(said, str) and len(encoded := said.encode("utf-8", "surrogatepass")) <= LONGEST_FILTER:
            value = encoded
    header.filter_value = value
    return value


class Bloom:
    """Gathers the filter values of one segment, in ``size`` bytes of bits."""

    __slots__ = ("_bits", "_masks", "_size", "holds_unfiltered")

    def __init__(self, size: int = DEFAULT_BLOOM_SIZE) -> None:
        self._size = size
        self._bits = 0
        self._masks: dict[bytes, int] = {}
        self.holds_unfiltered = False

    def add(self, value: bytes) -> None:
        """Take in a value that is not empty."""
        mask = self._masks.get(value)
        if mask is None:
            if len(self._masks) >= _MOST_MASKS:
                self._masks.clear()
            mask = self._masks[value] = mask_of(value, self._size)
        self._bits |= mask

    def packed(self) -> bytes:
        """Return what was gathered as bytes: flags, then the bits."""
        return bytes([_UNFILTERED if self.holds_unfiltered else 0]) + self._bits.to_bytes(self._size)

    def begin_anew(self) -> None:
        """Forget what was gathered: another segment begins."""
        self._bits = 0
        self.holds_unfiltered = False


def mask_of(value: bytes, size: int) -> int:
    """Return the bits that stand for a value among ``8 * size``."""
    digest = blake2b(value, digest_size=16).digest()
    start, step = int.from_bytes(digest[:8]), int.from_bytes(digest[8:])
    mask = 0
    for turn in range(_BITS_PER_VALUE):
        mask |= 1 << (start + turn * step) % (8 * size)
    return mask


class Filter:
    """What one reader wants: messages with one of these values and, if it says so, those without any."""

    __slots__ = ("_masks", "_values", "takes_unfiltered")

    def __init__(self, values: Iterable[str], takes_unfiltered: bool = False) -> None:
        self._values = frozenset(value.encode("utf-8", "surrogatepass") for value in values)
        self._masks: dict[int, tuple[int, ...]] = {}
        self.takes_unfiltered = takes_unfiltered

    def takes(self, value: bytes) -> bool:
        """Tell whether a message with this value is wanted; an empty one means that it has none."""
        return value in self._values if value else self.takes_unfiltered

    def may_find(self, bloom: bytes) -> bool:
        """Tell whether a segment may hold anything that is wanted; without a bloom it may hold everything."""
        if not bloom:
            return True
        if self.takes_unfiltered and bloom[0] & _UNFILTERED:
            return True
        size = len(bloom) - 1
        masks = self._masks.get(size)
        if masks is None:
            masks = self._masks[size] = tuple(mask_of(value, size) for value in self._values)
        bits = int.from_bytes(bloom[1:])
        return any(bits & mask == mask for mask in masks)
