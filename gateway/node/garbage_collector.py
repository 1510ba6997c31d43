"""Garbage collection in bounded pieces: young objects often, old ones a few at a time, and never all of them at once.

Python's own full collections walk every object there is: with 100,000 queues that stops everybody for 0.65 s. Here they
are off. What survives the young generations is collected once more, some 60,000 objects at a time, and then frozen: no
later collection walks it. Entities and connections that end leave no cycles, so what is frozen is freed by its
reference counts; the few cycles that are frozen all the same wait for ``collect_all``.
"""

import gc
import time
from collections.abc import Callable
from typing import Any, Final

from gateway.logs import StructuredLog

_log: Final = StructuredLog("collector")

#: Objects between two collections of the youngest generation. A long queue makes many objects that live long; with
#: the default of 700 the collector walks them again and again (measured: stalls of 136 to 342 ms).
_YOUNG: Final = 10_000

#: Collections of the youngest generation to one of the middle: so one of the middle walks 30,000 objects at most.
_MIDDLE: Final = 2

#: No collection of the oldest generation by itself.
_NEVER: Final = 2**31 - 1

#: Collections of the middle generation after which the oldest is collected and frozen, 30,000 objects and as many young
#: ones; and after which it is frozen as it is, because it grew before that: 100,000 queues may come in a few turns.
_DUE: Final = 1
_TOO_MANY: Final = 2

#: The longest time between two collections of everything when memory is short, in seconds.
FULL_INTERVAL_S: Final = 60.0

#: While there are no more objects than this, everything is collected now and then: it takes less than 100 ms.
_FEW: Final = 200_000
_IDLE_INTERVAL_S: Final = 600.0


class Collector:
    """Decides when the process collects garbage. ``longest_ms`` is its longest pause since the start.

    ``frozen`` is about how many objects no collection walks; ``full_collections`` counts those of everything.
    """

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._began_s = 0.0
        self._is_due = False
        self._full_at_s = now_s()
        self.longest_ms = 0.0
        self.frozen = 0
        self.full_collections = 0

    def start(self) -> None:
        """Freeze what a running broker keeps anyway, and take the collections over."""
        gc.collect()
        gc.freeze()
        self.frozen = gc.get_freeze_count()
        gc.set_threshold(_YOUNG, _MIDDLE, _NEVER)
        gc.callbacks.append(self._watch)

    def stop(self) -> None:
        """Leave the collections to Python again."""
        gc.callbacks.remove(self._watch)
        gc.unfreeze()

    def facts(self) -> dict[str, Any]:
        """Return what listings show: the longest pause, and how often everything was collected."""
        return {"gc_longest_pause_ms": round(self.longest_ms, 1), "gc_full_collections": self.full_collections}

    def tick(self) -> None:
        """Collect what is due; called about twice a second, between turns."""
        if self._is_due:
            self._is_due = False
            old = _grown_old()
            gc.collect()
            gc.freeze()
            self.frozen += old
        if self._now_s() - self._full_at_s >= _IDLE_INTERVAL_S:
            self._full_at_s = self._now_s()
            self.frozen = gc.get_freeze_count()
            if self.frozen <= _FEW:
                self._collect_all()

    def collect_all(self) -> bool:
        """Collect everything, what is frozen too, if that was not done a minute ago; return whether it was done now.

        It may stop everybody for a second: for when memory is short.
        """
        if self._now_s() - self._full_at_s < FULL_INTERVAL_S and self.full_collections:
            return False
        began_s = self._now_s()
        found = self._collect_all()
        self._full_at_s = self._now_s()
        _log.warning("collected everything", objects=found, pause_ms=round((self._full_at_s - began_s) * 1000))
        return True

    def _collect_all(self) -> int:
        gc.unfreeze()
        found = gc.collect()
        gc.freeze()
        self.frozen = gc.get_freeze_count()
        self.full_collections += 1
        return found

    def _watch(self, phase: str, info: dict[str, Any]) -> None:
        """Measure a collection, and see how many objects grew old; called by Python at its start and at its end."""
        if phase == "start":
            self._began_s = time.perf_counter()
            return
        self.longest_ms = max(self.longest_ms, (time.perf_counter() - self._began_s) * 1000)
        if info["generation"] == 1:
            middle_collections = gc.get_count()[2]
            self._is_due = _DUE <= middle_collections < _TOO_MANY
            if middle_collections >= _TOO_MANY:
                self.frozen += _grown_old()
                gc.freeze()


def _grown_old() -> int:
    """Return about how many objects survived the middle generation since the oldest was collected or frozen."""
    return gc.get_count()[2] * _YOUNG * (_MIDDLE + 1)
