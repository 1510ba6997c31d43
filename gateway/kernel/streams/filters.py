"""Stream filtering: the filter value of a message, the filter of a consumer, and the Bloom filter of a segment.

The value of each message is matched exactly. A segment's *bloom* saves reading: a set of values in a fixed number of
bytes, with false positives but no false negatives.
"""

from collections.abc import Iterable
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from gateway.kernel.caches import remember
from gateway.kernel.messages.chunks import LONGEST_FILTER

if TYPE_CHECKING:
    from gateway.kernel.messages.message import Header

#: The header with the filter value of a publisher.
VALUE_HEADER: Final = "x-stream-filter-value"

#: The default size of a Bloom filter in bytes: 128 bits distinguish a dozen values.
DEFAULT_BLOOM_SIZE: Final = 16

#: The number of bits set for each value.
_BITS_PER_VALUE: Final = 4

#: The flag in the first byte: the segment also holds messages without a value.
_UNFILTERED: Final = 1

_MOST_MASKS: Final = 4096

_VALUE_HEADER_BYTES: Final = VALUE_HEADER.encode()


def filter_value_of(header: "Header") -> bytes:
    """Return the filter value of a message, empty for none; cached in its header.

    A header that does not contain the name as bytes is not decoded, because each message may have another header. A
    value that is no string, or too long to be stored with a message, is ignored.
    """
    value = b""
    if _VALUE_HEADER_BYTES in header.raw:
        text = header.properties.headers.get(VALUE_HEADER)
        if isinstance(text, str) and len(encoded := text.encode("utf-8", "surrogatepass")) <= LONGEST_FILTER:
            value = encoded
    header.filter_value = value
    return value


class Bloom:
    """Collects the filter values of one segment, in ``size`` bytes of bits."""

    __slots__ = ("_bits", "_masks", "_size", "holds_unfiltered")

    def __init__(self, size: int = DEFAULT_BLOOM_SIZE) -> None:
        self._size = size
        self._bits = 0
        self._masks: dict[bytes, int] = {}
        self.holds_unfiltered = False

    def add(self, value: bytes) -> None:
        """Add a value, which must not be empty."""
        mask = self._masks.get(value)
        self._bits |= self.mask(value) if mask is None else mask

    def mask(self, value: bytes) -> int:
        """Return the bits of a value."""
        mask = self._masks.get(value)
        if mask is None:
            mask = remember(self._masks, value, mask_of(value, self._size), _MOST_MASKS)
        return mask

    def add_part(self, bits: int, holds_unfiltered: bool) -> None:
        """Add the bits of the values of some messages, of which some may have no value."""
        self._bits |= bits
        if holds_unfiltered:
            self.holds_unfiltered = True

    def packed(self) -> bytes:
        """Return the Bloom filter as bytes: flags, then the bits."""
        return bytes([_UNFILTERED if self.holds_unfiltered else 0]) + self._bits.to_bytes(self._size)

    def clear(self) -> None:
        """Clear the Bloom filter for the next segment."""
        self._bits = 0
        self.holds_unfiltered = False


def mask_of(value: bytes, size: int) -> int:
    """Return the bits of a value, among ``8 * size`` bits."""
    digest = blake2b(value, digest_size=16).digest()
    start, step = int.from_bytes(digest[:8]), int.from_bytes(digest[8:])
    mask = 0
    for index in range(_BITS_PER_VALUE):
        mask |= 1 << (start + index * step) % (8 * size)
    return mask


class Filter:
    """A consumer's filter: messages with one of these values and, optionally, those without a value."""

    __slots__ = ("_masks", "_values", "takes_unfiltered")

    def __init__(self, values: Iterable[str], takes_unfiltered: bool = False) -> None:
        self._values = frozenset(value.encode("utf-8", "surrogatepass") for value in values)
        self._masks: dict[int, tuple[int, ...]] = {}
        self.takes_unfiltered = takes_unfiltered

    def takes(self, value: bytes) -> bool:
        """Return whether a message with this value matches; an empty value means that it has none."""
        return value in self._values if value else self.takes_unfiltered

    def may_match(self, bloom: bytes) -> bool:
        """Return whether a segment may hold matching messages; without the bits of a Bloom filter it may."""
        if len(bloom) < 2:
            return True
        if self.takes_unfiltered and bloom[0] & _UNFILTERED:
            return True
        size = len(bloom) - 1
        masks = self._masks.get(size)
        if masks is None:
            masks = self._masks[size] = tuple(mask_of(value, size) for value in self._values)
        bits = int.from_bytes(bloom[1:])
        return any(bits & mask == mask for mask in masks)
