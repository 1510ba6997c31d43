"""Memory that all queues of a broker share, for messages beyond those that each of them keeps anyway."""

from typing import Final


class MemoryBudget:
    """A budget of ``size`` bytes. Whoever takes some of it gives back as much; ``taken`` is what is out.

    Nobody gets to hold more than is left for others: a long queue that nobody consumes from would else have all of it
    for as long as it is there. One may hold half, two a third each, and so on.
    """

    __slots__ = ("size", "taken")

    def __init__(self, size: int) -> None:
        self.size = size
        self.taken = 0

    def take(self, room: int, held: int) -> bool:
        """Take that many bytes for somebody who holds so many already; return whether there is room for them."""
        taken = self.taken + room
        if held + room > self.size - taken:
            return False
        self.taken = taken
        return True

    def give_back(self, room: int) -> None:
        """Return bytes that were taken."""
        self.taken -= room


#: The reserve of a queue that has none.
NO_RESERVE: Final = MemoryBudget(0)
