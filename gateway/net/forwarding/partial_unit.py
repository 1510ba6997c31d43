"""The bytes of a packet or frame of which the rest has not come yet."""

from re import Pattern
from typing import Final

#: The longest end of a unit or of its head, in bytes.
_LONGEST_END: Final = 3


class PartialUnit:
    """Owns the beginning of a unit that is kept until it is whole, or the number of bytes left of one that is not.

    A large unit passes in pieces. ``is_cut``: a part of one has passed, and the rest has not come. ``size`` is the
    number of bytes that are kept.
    """

    def __init__(self) -> None:
        self._kept = bytearray()
        self._missing = 0
        self._left = 0
        self._end: Pattern[bytes] | None = None
        self._sought = 0
        self._most = 0

    @property
    def is_cut(self) -> bool:
        """See the class."""
        return self._left > 0

    @property
    def size(self) -> int:
        """See the class."""
        return len(self._kept)

    def piece(self, data: bytes) -> bytes:
        """Return the bytes at the beginning that belong to the large unit; empty if there is none."""
        piece = data[: self._left]
        self._left -= len(piece)
        return piece

    def add(self, data: bytes) -> bytes | None:
        """Return the kept bytes and these as one, or ``None`` while some are missing."""
        if not self._kept:
            return data
        self._kept += data
        self._missing -= len(data)
        return self.take() if self._missing <= 0 and self._has_end() else None

    def _has_end(self) -> bool:
        """Whether the end that is sought has come, or too much without it. What was searched is not searched again."""
        if self._end is None or len(self._kept) > self._most or self._end.search(self._kept, self._sought):
            return True
        self._sought = max(self._sought, len(self._kept) - _LONGEST_END + 1)
        return False

    def keep(self, data: bytes, missing: int = 0) -> None:
        """Keep the beginning of a unit until so many bytes more have come."""
        self._kept = bytearray(data)
        self._missing = missing
        self._end = None

    def keep_until(self, end: Pattern[bytes], data: bytes, sought: int, most: int) -> None:
        """Keep the beginning of a unit of unknown size until its end has come, or more than ``most`` bytes.

        ``sought`` bytes at the beginning do not have the end.
        """
        self.keep(data)
        self._end, self._sought, self._most = end, sought, most

    def pass_in_pieces(self, left: int) -> None:
        """Pass a unit on as it comes; so many bytes of it are left."""
        self._left = left

    def take(self) -> bytes:
        """Remove and return what is kept."""
        kept = bytes(self._kept)
        self._kept.clear()
        self._missing = self._left = 0
        return kept
