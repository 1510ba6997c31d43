"""Activities: what each does over and over, in a thread of its own, until the soak ends."""

import traceback
from collections.abc import Callable, Mapping
from itertools import count
from threading import Event, Thread
from typing import TypeAlias

from benchmarks.soak.place import Place

#: One round of an activity. It raises when something is not as it is owed.
Work: TypeAlias = Callable[[], None]

#: By name what prepares each activity, and the pause between two rounds of it, in seconds.
Activities: TypeAlias = Mapping[str, tuple[Callable[[Place], Work], float]]


class Bodies:
    """Bodies that are all different: the name and a number, filled up to 200 bytes."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._numbers = count()

    def some(self, number: int) -> list[bytes]:
        """Return so many new ones."""
        return [f"{self._name} {next(self._numbers)} ".ljust(200, ".").encode() for _ in range(number)]


class Crew:
    """The threads of some activities. What each holds open stays open until the process ends."""

    def __init__(self, place: Place, activities: Activities) -> None:
        self._place = place
        self._is_over = Event()
        self._work_by_name = {name: prepare(place) for name, (prepare, _) in activities.items()}
        self._threads = [
            Thread(target=self._run, args=(name, prepare, pause_s), daemon=True, name=name)
            for name, (prepare, pause_s) in activities.items()
        ]

    def start(self) -> None:
        """Start all."""
        for thread in self._threads:
            thread.start()

    def stop(self, timeout_s: float) -> list[str]:
        """Let each end its round; return the names of those that did not within the time."""
        self._is_over.set()
        for thread in self._threads:
            thread.join(timeout_s)
        return [thread.name for thread in self._threads if thread.is_alive()]

    def _run(self, name: str, prepare: Callable[[Place], Work], pause_s: float) -> None:
        is_broken = False
        while not self._is_over.wait(pause_s):
            try:
                if is_broken:
                    self._work_by_name[name] = prepare(self._place)
                    is_broken = False
                self._work_by_name[name]()
                self._place.ledger.ended(name)
            except Exception as failure:  # the verdict tells it; the next round starts anew
                where = traceback.extract_tb(failure.__traceback__)[-1]
                told = f"{type(failure).__name__}: {failure} ({where.name}, line {where.lineno})"
                self._place.ledger.ended(name, told)
                is_broken = True
