"""Incremental garbage collection: young objects often, old objects in small groups, never everything in one pause.

Python's full collections traverse every object: with 100,000 queues they stop the broker for 0.65 s. They are
disabled here. Objects that survive the young generations are collected once more, some 30,000 at a time, and then
frozen: no later collection traverses them. Entities and connections leave no cycles when they end, so frozen
objects are freed by their reference counts; the few frozen cycles are freed by ``collect_all``.
"""

import gc
import time
from collections.abc import Callable
from typing import Any, Final

from gateway.logs import StructuredLog

_log: Final = StructuredLog("collector")

#: Allocations between two collections of the youngest generation. A long queue creates many long-lived objects; with
#: the default of 700 the collector traverses them again and again (measured: pauses of 136 to 342 ms).
_YOUNG: Final = 5_000

#: Young collections for each collection of the middle generation, which then traverses 15,000 objects at most.
_MIDDLE: Final = 2

#: Disables automatic collections of the oldest generation.
_NEVER: Final = 2**31 - 1

#: After the first number of middle collections the oldest generation is collected and frozen: 15,000 objects and as
#: many young ones. After the second it is frozen without a collection, because 100,000 queues may be declared in a
#: few turns.
_DUE: Final = 1
_TOO_MANY: Final = 2

#: Shortest time between two full collections when memory is short, in seconds.
FULL_INTERVAL_S: Final = 60.0

#: Shortest time between two full collections while no client is connected, not even one of the HTTP API or of the
#: metrics, in seconds. With clients there are none: a broker with few entities was paused for 130 to 260 ms.
IDLE_INTERVAL_S: Final = 600.0


class GarbageCollector:
    """Decides when the process collects garbage. ``longest_ms`` is its longest pause since the start.

    ``frozen`` is the approximate number of frozen objects; ``full_collections`` counts full collections. ``collect``
    collects everything, also frozen objects, and returns how many were garbage.
    """

    def __init__(
        self, now_s: Callable[[], float] = time.monotonic, collect: Callable[[], int] = lambda: _collect_frozen()
    ) -> None:
        self._now_s = now_s
        self._collect = collect
        self._began_s = 0.0
        self._is_due = False
        self._has_collected = False
        self._full_at_s = now_s()
        self.longest_ms = 0.0
        self.frozen = 0
        self.full_collections = 0

    def start(self) -> None:
        """Freeze the permanent objects of a running broker and disable automatic collections."""
        gc.collect()
        gc.freeze()
        self.frozen = gc.get_freeze_count()
        gc.set_threshold(_YOUNG, _MIDDLE, _NEVER)
        gc.callbacks.append(self._watch)

    def stop(self) -> None:
        """Restore Python's automatic collections."""
        gc.callbacks.remove(self._watch)
        gc.unfreeze()

    def info(self) -> dict[str, Any]:
        """Return the longest pause and the number of full collections, for listings."""
        return {"gc_longest_pause_ms": round(self.longest_ms, 1), "gc_full_collections": self.full_collections}

    def tick(self, is_idle: bool = False) -> bool:
        """Run the collections that are due; called between turns, several times a second while it returns true.

        ``is_idle``: no client is connected, so that a long pause delays none.

        :return: whether Python has collected since the last call, so that more may soon be due.
        """
        has_collected, self._has_collected = self._has_collected, False
        if self._is_due:
            self._is_due = False
            old = _grown_old()
            gc.collect()
            gc.freeze()
            self.frozen += old
        if is_idle and self._now_s() - self._full_at_s >= IDLE_INTERVAL_S:
            self._collect_all()
            self._full_at_s = self._now_s()
        return has_collected

    def collect_all(self) -> bool:
        """Collect everything, also frozen objects, unless done within the last minute; return whether it ran.

        It may pause the broker for a second; use it only when memory is short.
        """
        if self._now_s() - self._full_at_s < FULL_INTERVAL_S and self.full_collections:
            return False
        began_s = self._now_s()
        found = self._collect_all()
        self._full_at_s = self._now_s()
        _log.warning("collected everything", objects=found, pause_ms=round((self._full_at_s - began_s) * 1000))
        return True

    def _collect_all(self) -> int:
        found = self._collect()
        self.frozen = gc.get_freeze_count()
        self.full_collections += 1
        return found

    def _watch(self, phase: str, info: dict[str, Any]) -> None:
        """Measure a collection and count the objects that grew old; Python calls it at the start and at the end."""
        if phase == "start":
            self._began_s = time.perf_counter()
            self._has_collected = True
            return
        self.longest_ms = max(self.longest_ms, (time.perf_counter() - self._began_s) * 1000)
        if info["generation"] == 1:
            middle_collections = gc.get_count()[2]
            self._is_due = _DUE <= middle_collections < _TOO_MANY
            if middle_collections >= _TOO_MANY:
                self.frozen += _grown_old()
                gc.freeze()


def _collect_frozen() -> int:
    gc.unfreeze()
    found = gc.collect()
    gc.freeze()
    return found


def _grown_old() -> int:
    """Return the approximate number of objects that survived the middle generation since the last freeze."""
    return gc.get_count()[2] * _YOUNG * (_MIDDLE + 1)
