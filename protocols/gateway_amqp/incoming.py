"""Bytes of a peer that do not make up a whole frame yet."""


class IncomingBytes:
    """Keeps a rest until enough has come to go on; joins once, however many reads that takes."""

    __slots__ = ("_pieces", "_wanted", "size")

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._wanted = 0
        self.size = 0

    def add(self, data: bytes) -> bytes | None:
        """Return the rest and ``data`` as one, or ``None`` while that is less than what is wanted."""
        if not self.size:
            return data
        self._pieces.append(data)
        self.size += len(data)
        return None if self.size < self._wanted else self.take()

    def release(self, data: bytes) -> bytes | None:
        """Return the rest and ``data`` as one, however much is wanted; ``None`` when that is nothing."""
        self.append(data)
        return self.take()

    def append(self, data: bytes) -> None:
        """Keep more bytes behind the rest."""
        if data:
            self._pieces.append(data)
            self.size += len(data)

    def keep(self, data: bytes, position: int, wanted: int) -> None:
        """Keep what stands at ``position`` until ``wanted`` bytes of it are there."""
        rest = data[position:]
        self._pieces = [rest] if rest else []
        self.size = len(rest)
        self._wanted = wanted

    def take(self) -> bytes | None:
        """Return everything that is kept, and forget it; ``None`` when that is nothing."""
        if not self.size:
            return None
        data = b"".join(self._pieces)
        self._pieces, self.size = [], 0
        return data
