"""What one connection holds in memory before it is any queue's: bodies on their way in, and open transactions."""

from typing import Final

from gateway.kernel.errors import PreconditionFailed
from gateway_amqp.errors import ContentTooLarge

#: About what a held publish or settlement takes besides a body, in bytes.
OVERHEAD: Final = 512


class Holdings:
    """Counts the bytes and refuses what goes beyond ``limit``. A single message, however large, always finds room."""

    __slots__ = ("_limit", "_size")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._size = 0

    @property
    def size(self) -> int:
        """How many bytes are held, about."""
        return self._size

    def take_in(self, size: int, of_same: int) -> None:
        """Count bytes of a body that is on its way; ``of_same`` are those of it that came before.

        :raises ContentTooLarge: when the connection now holds too much besides this body. The bytes are counted.
        """
        others = self._size - of_same
        self._size += size
        if others and self._size > self._limit:
            raise ContentTooLarge(f"contents on their way in exceed the {self._limit} bytes that a connection may hold")

    def hold(self, size: int) -> None:
        """Count a publish or settlement that waits for its commit.

        :raises PreconditionFailed: when the connection would hold too much.
        """
        size += OVERHEAD
        if self._size and self._size + size > self._limit:
            raise PreconditionFailed(
                f"open transactions exceed the {self._limit} bytes that a connection may hold: commit smaller ones"
            )
        self._size += size

    def let_go(self, size: int) -> None:
        """Count bytes that are not held any more."""
        self._size -= size
