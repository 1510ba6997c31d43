"""Memory shared by all queues of a broker, for messages beyond the fixed number that each queue keeps."""

from typing import Final


class MemoryBudget:
    """A budget of ``size`` bytes; ``taken`` is in use.

    A queue may hold no more than what remains for others. Otherwise one long queue without consumers could
    use all of it indefinitely. One alone may hold a half, each of two a third, and so on.
    """

    __slots__ = ("size", "taken")

    def __init__(self, size: int) -> None:
        self.size = size
        self.taken = 0

    def take(self, room: int, held: int) -> bool:
        """Take ``room`` bytes for a user that already holds ``held``; return whether they are available."""
        taken = self.taken + room
        if held + room > self.size - taken:
            return False
        self.taken = taken
        return True

    def give_back(self, room: int) -> None:
        """Return bytes that were taken."""
        self.taken -= room


#: The empty budget of a queue without one.
NO_RESERVE: Final = MemoryBudget(0)
