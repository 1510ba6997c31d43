"""Activities: work that is repeated in a thread until the soak ends."""

import traceback
from collections.abc import Callable, Iterator, Mapping
from itertools import count, cycle
from threading import Event, Thread
from typing import TypeAlias

from benchmarks.soak.broker_under_test import BrokerUnderTest

#: One round of an activity. It raises an exception on any unexpected result.
Work: TypeAlias = Callable[[], None]

#: The preparation of each activity by its name, and the pause between two rounds, in seconds.
Activities: TypeAlias = Mapping[str, tuple[Callable[[BrokerUnderTest], Work], float]]


class Bodies:
    """Unique bodies: the name and a number, padded to 200 bytes."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._numbers = count()

    def some(self, number: int) -> list[bytes]:
        """Return this many new bodies."""
        return [f"{self._name} {next(self._numbers)} ".ljust(200, ".").encode() for _ in range(number)]


def name_numbers() -> Iterator[int]:
    """Return the numbers in the names of entities: they recur, as names of devices, queues and topics do.

    With new names in each round the bounded caches of names would take an hour and a half to fill, and memory would
    rise as long. A hundred rounds take longer than a session needs to expire.
    """
    return cycle(range(100))


class ActivityThreads:
    """The threads of some activities. Their connections stay open until the process ends."""

    def __init__(self, broker: BrokerUnderTest, activities: Activities) -> None:
        self._broker = broker
        self._is_over = Event()
        self._work_by_name = {name: prepare(broker) for name, (prepare, _) in activities.items()}
        self._threads = [
            Thread(target=self._run, args=(name, prepare, pause_s), daemon=True, name=name)
            for name, (prepare, pause_s) in activities.items()
        ]

    def start(self) -> None:
        """Start all."""
        for thread in self._threads:
            thread.start()

    def stop(self, timeout_s: float) -> list[str]:
        """Let each thread finish its round; return the names of those that did not in time."""
        self._is_over.set()
        for thread in self._threads:
            thread.join(timeout_s)
        return [thread.name for thread in self._threads if thread.is_alive()]

    def _run(self, name: str, prepare: Callable[[BrokerUnderTest], Work], pause_s: float) -> None:
        is_broken = False
        while not self._is_over.wait(pause_s):
            try:
                if is_broken:
                    self._work_by_name[name] = prepare(self._broker)
                    is_broken = False
                self._work_by_name[name]()
                self._broker.ledger.ended(name)
            except Exception as failure:  # the verdict reports it; the next round starts from the beginning
                where = traceback.extract_tb(failure.__traceback__)[-1]
                reason = f"{type(failure).__name__}: {failure} ({where.name}, line {where.lineno})"
                self._broker.ledger.ended(name, reason)
                is_broken = True
