"""The pauses between attempts to connect."""

from collections.abc import Callable


class Backoff:
    """Rising pauses with jitter, so that many clients of a server that restarts do not come back together.

    ``random`` returns numbers from 0 to 1.
    """

    def __init__(self, first_s: float, longest_s: float, random: Callable[[], float]) -> None:
        self._first_s = first_s
        self._longest_s = longest_s
        self._random = random
        self._failures = 0

    def next_s(self) -> float:
        """Return the next pause, in seconds: between half of and the whole doubled time."""
        whole_s: float = min(self._longest_s, self._first_s * 2 ** min(self._failures, 20))
        self._failures += 1
        return whole_s * (0.5 + 0.5 * self._random())

    def reset(self) -> None:
        """Begin anew, after a success."""
        self._failures = 0
