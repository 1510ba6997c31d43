"""The histories of all subjects, and how many samples each of them may keep."""

from collections.abc import Callable, Iterator
from typing import Final

from gateway.management.statistics.history import RETENTION_S, Counts, History
from gateway.management.statistics.subjects import BROKER, NODE, Key

#: Maximum and minimum number of samples of one subject, and of all together that change: with many of them each has
#: fewer. A subject that does not change has one. The broker and the node always have the maximum.
_MAX_SAMPLES: Final = 122
_MIN_SAMPLES: Final = 3
_SAMPLE_BUDGET: Final = 100_000

#: Histories that are looked at in one step of a clearance.
_STEP: Final = 256


class Histories:
    """Owns the histories. ``now_s`` is the time of the present sample, ``before_s`` that of the one before."""

    def __init__(self) -> None:
        self.by_key: dict[Key, History] = {}
        self.now_s = self.before_s = 0.0
        self._changing = 0  # subjects with more than one sample
        self._keep = _MAX_SAMPLES

    def begin(self, now_s: float) -> None:
        """Begin a sample."""
        self.before_s, self.now_s = self.now_s, now_s
        self._keep = max(_MIN_SAMPLES, min(_MAX_SAMPLES, _SAMPLE_BUDGET // (self._changing + 1)))

    def record(self, key: Key, counts: Counts) -> None:
        """Add the counts of a subject to its history. If some samples were left out, it had not changed."""
        history = self.by_key.get(key)
        if history is None:
            history = self.by_key[key] = History()
        changed = len(history) > 1
        history.record(self.now_s, counts, self._most(key), RETENTION_S, self.before_s)
        self._changing += (len(history) > 1) - changed

    def _most(self, key: Key) -> int:
        return _MAX_SAMPLES if key in (BROKER, NODE) else self._keep

    def latest(self, key: Key) -> Counts:
        """Return the counts of a subject's last sample; empty without one."""
        history = self.by_key.get(key)
        return {} if history is None else history.latest()

    def forget(self, key: Key) -> None:
        """Remove the history of a subject, if it has one."""
        history = self.by_key.pop(key, None)
        if history is not None and len(history) > 1:
            self._changing -= 1

    def clear(self) -> None:
        """Remove all histories."""
        self.by_key = {}
        self._changing = 0

    def clearing(self, exists: Callable[[Key], bool]) -> Iterator[None]:
        """Remove the histories of subjects that do not exist any more, and old samples of the others, in steps."""
        for number, key in enumerate(list(self.by_key), 1):
            history = self.by_key.get(key)
            if history is None:
                continue
            if not exists(key):
                self.forget(key)
            elif len(history) > 1:
                history.trim(self.now_s, self._most(key), RETENTION_S)
                self._changing -= len(history) <= 1
            if number % _STEP == 0:
                yield
