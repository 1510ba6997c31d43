"""Purges, deletions and cancellations: the messages that they concern get no event of their own."""

from typing import Final, NamedTuple

#: The places that are remembered for each word, the latest.
_MOST: Final = 10_000


class TracedPlace(NamedTuple):
    """A queue, or an exchange that delays or drops messages; the other name is empty."""

    queue: str = ""
    exchange: str = ""


class Departures:
    """The latest time at which all messages left a place, by place and ``word``, such as ``purged``."""

    def __init__(self) -> None:
        self._last_by_place: dict[tuple[TracedPlace, str], tuple[int, int]] = {}

    def note(self, place: TracedPlace, word: str, position: int, at_ms: int) -> None:
        """Note that the messages up to a position left a place at a time."""
        last = self._last_by_place
        last.pop((place, word), None)
        last[place, word] = position, at_ms
        if len(last) > _MOST:
            del last[next(iter(last))]

    def word_for(self, place: TracedPlace, words: tuple[str, ...], position: int, since_ms: int) -> str:
        """Return the word for a message that came to a place at ``since_ms``; "" if it did not leave since."""
        for word in words:
            last_position, last_ms = self._last_by_place.get((place, word), (0, 0))
            if position <= last_position and since_ms <= last_ms:
                return word
        return ""
