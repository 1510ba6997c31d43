"""Messages that came back from consumers: each waits in the place it was taken from."""

from heapq import heappop, heappush
from itertools import takewhile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gateway.kernel.queued_message import QueuedMessage


class Returned:
    """Messages by position, and in the order they came back.

    ``first`` is the lowest position; while nothing is there it means nothing.
    """

    __slots__ = ("_numbered", "_positions", "first")

    def __init__(self) -> None:
        self._numbered: dict[int, tuple[int, QueuedMessage]] = {}  # the latest return last
        self._positions: list[int] = []  # a heap; whose message was taken out of the middle is passed over
        self.first = 0

    def __len__(self) -> int:
        return len(self._numbered)

    def __iter__(self) -> "Iterator[QueuedMessage]":
        """Iterate over the messages in the order they came back."""
        for _, entry in self._numbered.values():  # a generator expression would be a list once compiled
            yield entry

    def add(self, entry: "QueuedMessage", number: int) -> None:
        """Take a message in; ``number`` says which return it is, and rises."""
        self._numbered[entry.position] = number, entry
        heappush(self._positions, entry.position)
        self.first = self._positions[0]

    def peek(self) -> "QueuedMessage":
        """Return the message at the first position."""
        return self._numbered[self.first][1]

    def find(self, position: int) -> "QueuedMessage | None":
        """Return the message at a position, ``None`` if there is none."""
        numbered = self._numbered.get(position)
        return None if numbered is None else numbered[1]

    def pop(self, position: int) -> "QueuedMessage | None":
        """Remove and return the message at a position, ``None`` if there is none."""
        numbered = self._numbered.pop(position, None)
        if numbered is None:
            return None
        positions = self._positions
        while positions and positions[0] not in self._numbered:
            heappop(positions)
        if positions:
            self.first = positions[0]
        return numbered[1]

    def since(self, number: int) -> list[int]:
        """Return the positions of what came back after the return of this number."""
        latest_first = reversed(self._numbered.values())
        return [entry.position for _, entry in takewhile(lambda each: each[0] > number, latest_first)]
