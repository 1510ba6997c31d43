"""The publishes of one channel that wait for their confirms, and the numbers that client and leader give them.

The client counts the publishes of its channel, and so does each leader, from one. Publishes without a confirm are
published again on the next leader, in their order, before any later one.
"""

from collections import deque
from typing import Final

#: A larger message is not kept, in bytes: its channel is closed when the leader changes.
MOST_OF_A_MESSAGE: Final = 16 * 2**20


class UnconfirmedPublish:
    """A publish that is not confirmed. ``frames`` is ``None`` if it is too large to be kept.

    ``number`` is the client's; ``place`` is its place among the requests of the channel.
    """

    __slots__ = ("frames", "number", "place", "size")

    def __init__(self, number: int, place: int, frames: list[bytes] | None, size: int) -> None:
        self.number = number
        self.place = place
        self.frames = frames
        self.size = size


class Kept:
    """The number of bytes that a connection keeps to be published again, on all of its channels."""

    __slots__ = ("size",)

    def __init__(self) -> None:
        self.size = 0


class Unconfirmed:
    """Owns the publishes of one channel that wait; counts in ``kept`` what it keeps of them."""

    __slots__ = ("_first", "_kept", "_last", "_window", "has_changed_leader")

    def __init__(self, kept: Kept) -> None:
        self._kept = kept
        self.has_changed_leader = False
        self._last = 0  # the client's number of the last publish
        self._first = 1  # the leader's number of the first one in the window
        self._window: deque[UnconfirmedPublish | None] = deque()  # None: confirmed before an earlier one

    def published(self, place: int, frames: list[bytes] | None, size: int) -> None:
        """Add a publish, which was just passed to the leader."""
        self._last += 1
        self._window.append(UnconfirmedPublish(self._last, place, frames, size))
        self._kept.size += size

    def waiting(self) -> list[UnconfirmedPublish]:
        """Return what waits, in order."""
        return [each for each in self._window if each is not None]

    def begin_again(self) -> list[UnconfirmedPublish]:
        """Return what another leader gets again, in order; it counts from one."""
        waiting = self.waiting()
        self._window = deque(waiting)
        self._first = 1
        self.has_changed_leader = True
        return waiting

    def forget(self) -> None:
        """Drop everything that waits."""
        self._all()

    def confirmed(self, number: int, *, is_multiple: bool) -> UnconfirmedPublish | None:
        """Remove what the leader confirmed; return the last of it, ``None`` if that is nothing."""
        index = number - self._first
        if not 0 <= index < len(self._window):
            return self._all() if is_multiple and number == 0 else None
        if is_multiple:
            return self._before(index + 1)
        found = self._window[index]
        self._window[index] = None
        if found is not None:
            self._kept.size -= found.size
        self._drop_confirmed()
        return found

    def _all(self) -> UnconfirmedPublish | None:
        return self._before(len(self._window))

    def _before(self, count: int) -> UnconfirmedPublish | None:
        last = None
        for _ in range(count):
            found = self._window.popleft()
            self._first += 1
            if found is not None:
                self._kept.size -= found.size
                last = found
        self._drop_confirmed()
        return last

    def _drop_confirmed(self) -> None:
        while self._window and self._window[0] is None:
            self._window.popleft()
            self._first += 1
