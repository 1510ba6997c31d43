"""The bytes of a packet or frame of which the rest has not come yet."""


class PartialUnit:
    """Owns the beginning of a unit that is kept until it is whole, or the number of bytes left of one that is not.

    A large unit passes in pieces. ``is_cut``: a part of one has passed, and the rest has not come.
    """

    def __init__(self) -> None:
        self._kept = bytearray()
        self._missing = 0
        self._left = 0

    @property
    def is_cut(self) -> bool:
        """See the class."""
        return self._left > 0

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
        return self.take() if self._missing <= 0 else None

    def keep(self, data: bytes, missing: int = 0) -> None:
        """Keep the beginning of a unit until so many bytes more have come."""
        self._kept = bytearray(data)
        self._missing = missing

    def pass_in_pieces(self, left: int) -> None:
        """Pass a unit on as it comes; so many bytes of it are left."""
        self._left = left

    def take(self) -> bytes:
        """Remove and return what is kept."""
        kept = bytes(self._kept)
        self._kept.clear()
        self._missing = self._left = 0
        return kept
