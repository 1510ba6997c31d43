"""Frames on their way to one peer: collected during a turn, taken as one at its end."""

from collections.abc import Callable
from typing import Final

#: Bytes that may wait for a peer before its consumers are passed over. Larger than one read brings in, so that a
#: consumer as fast as the publisher never notices; small enough that a slow one holds little memory.
HIGH_WATER: Final = 512 * 1024


class Outbox:
    """Owns the pieces to send. ``wake`` asks for a flush at the end of this turn.

    The hot path adds to ``pieces`` and ``size`` itself. ``barrier`` is a log position before which nothing may leave:
    an answer that promises durability goes out after the store kept it, and order among frames is kept with it.
    """

    __slots__ = ("_wake", "barrier", "is_awake", "is_congested", "is_open", "pieces", "size")

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self.pieces: list[bytes] = []
        self.size = 0
        self.is_open = True
        self.is_congested = False
        self.is_awake = False
        self.barrier = 0

    def write(self, frame: bytes) -> None:
        """Add one frame."""
        self.pieces.append(frame)
        self.size += len(frame)
        self.wake()

    def wake(self) -> None:
        """Make sure that the outbox is taken from at the end of this turn."""
        if not self.is_awake:
            self.is_awake = True
            self._wake()

    def take(self) -> list[bytes]:
        """Return everything that waits, and forget it."""
        pieces, self.pieces = self.pieces, []
        self.size = 0
        return pieces

    def weigh(self) -> bool:
        """Decide anew whether deliveries may go in; return whether they may again after they might not."""
        was_open = self.is_open
        self.is_open = not self.is_congested and self.size < HIGH_WATER
        return self.is_open and not was_open
