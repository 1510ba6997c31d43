"""Buffer of received bytes that do not make up a whole frame yet."""


class IncomingBytes:
    """Keeps bytes until enough were received to continue; joins the pieces once, however many reads there were."""

    __slots__ = ("_pieces", "_wanted", "size")

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._wanted = 0
        self.size = 0

    @property
    def awaited(self) -> int:
        """The wanted size, if a part of it is there."""
        return self._wanted if self.size else 0

    def add(self, data: bytes) -> bytes | None:
        """Return the kept bytes and ``data`` as one, or ``None`` while that is less than the wanted size."""
        if not self.size:
            return data
        self._pieces.append(data)
        self.size += len(data)
        return None if self.size < self._wanted else self.take()

    def release(self, data: bytes) -> bytes | None:
        """Return the kept bytes and ``data`` as one, whatever the wanted size; ``None`` if that is empty."""
        self.append(data)
        return self.take()

    def append(self, data: bytes) -> None:
        """Append bytes to the buffer."""
        if data:
            self._pieces.append(data)
            self.size += len(data)

    def keep(self, data: bytes, position: int, wanted: int) -> None:
        """Keep the bytes from ``position`` on until ``wanted`` of them are there."""
        rest = data[position:]
        self._pieces = [rest] if rest else []
        self.size = len(rest)
        self._wanted = wanted

    def take(self) -> bytes | None:
        """Remove and return the kept bytes; ``None`` if there are none."""
        if not self.size:
            return None
        data = b"".join(self._pieces)
        self._pieces, self.size = [], 0
        return data
