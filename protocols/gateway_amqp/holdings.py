"""The memory that one connection uses outside of queues: unfinished bodies and open transactions."""

from typing import Final

from gateway.kernel.errors import PreconditionFailed
from gateway_amqp.errors import ContentTooLarge

#: Approximate size of a held publish or settlement without its body, in bytes.
OVERHEAD: Final = 512


class Holdings:
    """Counts the bytes against ``limit``. A single message of any size is always accepted."""

    __slots__ = ("_limit", "_size")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._size = 0

    @property
    def size(self) -> int:
        """The approximate number of bytes held."""
        return self._size

    def add_received(self, size: int, of_same: int) -> None:
        """Count received bytes of a body; ``of_same`` are the earlier bytes of the same body.

        :raises ContentTooLarge: when the other holdings are too large. The bytes are counted.
        """
        others = self._size - of_same
        self._size += size
        if others and self._size > self._limit:
            raise ContentTooLarge(f"unfinished contents exceed the connection's limit of {self._limit} bytes")

    def hold(self, size: int) -> None:
        """Count a publish or settlement that waits for its commit.

        :raises PreconditionFailed: when the holdings would exceed the limit.
        """
        size += OVERHEAD
        if self._size and self._size + size > self._limit:
            raise PreconditionFailed(
                f"open transactions exceed the connection's limit of {self._limit} bytes: commit smaller ones"
            )
        self._size += size

    def release(self, size: int) -> None:
        """Count bytes that were released."""
        self._size -= size
