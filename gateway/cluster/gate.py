"""Back pressure: a reader that has enough to do closes its gate, and what brings more waits until it opens."""

from collections import deque
from collections.abc import Callable


class Gate:
    """Open at first. Owns the calls that wait until it opens."""

    def __init__(self) -> None:
        self._is_open = True
        self._waiting: deque[Callable[[], None]] = deque()

    @property
    def is_open(self) -> bool:
        """Whether more may come."""
        return self._is_open

    def close(self) -> None:
        """Hold back what brings more; harmless while it is closed."""
        self._is_open = False

    def open(self) -> None:
        """Make the calls that wait, in order, unless one of them closes the gate again."""
        self._is_open = True
        while self._is_open and self._waiting:
            self._waiting.popleft()()

    def when_open(self, call: Callable[[], None]) -> None:
        """Call now if the gate is open, else once it is."""
        if self._is_open:
            call()
        else:
            self._waiting.append(call)
