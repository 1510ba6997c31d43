"""Answers that hold for a time each."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class KeptAnswer(Generic[V]):
    """An answer, and the time in seconds until which it holds."""

    answer: V
    until_s: float


@dataclass(frozen=True, slots=True)
class AnswerCounts:
    """The number of kept answers, and of those that were found (hits) and not found (misses)."""

    kept: int
    hits: int
    misses: int


class KeptAnswers(Generic[K, V]):
    """At most ``most`` answers by key; if there are more, the oldest is dropped. ``now`` is the time in seconds.

    ``hits`` counts the answers that were found, ``misses`` those that were not.
    """

    def __init__(self, most: int, now: Callable[[], float]) -> None:
        self._most = most
        self._now = now
        self._kept: OrderedDict[K, KeptAnswer[V]] = OrderedDict()
        self.hits = 0
        self.misses = 0

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def counts(self) -> AnswerCounts:
        """The numbers of answers."""
        return AnswerCounts(len(self._kept), self.hits, self.misses)

    def find(self, key: K) -> KeptAnswer[V] | None:
        """Return an answer that still holds; ``None`` if there is none."""
        kept = self._kept.get(key)
        if kept is not None and self._now() >= kept.until_s:
            del self._kept[key]
            kept = None
        if kept is None:
            self.misses += 1
        else:
            self.hits += 1
        return kept

    def keep(self, key: K, answer: V, ttl_s: float) -> None:
        """Keep an answer for ``ttl_s`` seconds; if that is not above 0, not at all."""
        if ttl_s <= 0:
            return
        self._kept.pop(key, None)
        self._kept[key] = KeptAnswer(answer, self._now() + ttl_s)
        if len(self._kept) > self._most:
            self._kept.popitem(last=False)

    def clear(self) -> None:
        """Drop all answers."""
        self._kept.clear()
