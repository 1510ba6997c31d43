"""CPU of the archive for each message of a queue, and the lag of its files."""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from statistics import median
from threading import Event
from typing import Any, Final

from benchmarks.load.amqp.client import connected
from benchmarks.load.amqp.filling import fill_correlated
from benchmarks.load.figure import Figure, at_most
from benchmarks.load.gateway import MANAGEMENT
from benchmarks.load.management import Management
from benchmarks.load.processes import cpu_seconds
from benchmarks.load.running import Broker
from benchmarks.load.workloads import AMQP

PLAIN, ARCHIVED = "bench.plain", "bench.archived"
#: Each queue keeps few messages, so that its backlog costs nothing.
KIND: Final[Mapping[str, str | int]] = {"x-max-length": 1000}
BODY_BYTES: Final = 100

#: Required CPU of all processes of the broker for a message; the oldest message outside a file, in seconds.
COST_US, LAG_S = 3.0, 5.0

#: Settings of the broker: files are written as soon as possible.
SETTINGS: Final[Mapping[str, str]] = {"archive.segment_age_s": "1"}

#: How long the worker may take to write what is left, and the pause between two looks at the archive, in seconds.
FILED_S, LOOK_S = 120.0, 0.1


def measure_archiving(broker: Broker, messages: int, rounds: int) -> Sequence[Figure]:
    """Publish to a queue with an archive and to one without, in turns, until everything is in files."""
    port, archive = broker.ports[AMQP], ArchiveState(Management(broker.ports[MANAGEMENT]))
    with connected(port) as control:
        control.declare_queue(PLAIN, durable=True, arguments=KIND)
        control.declare_queue(ARCHIVED, durable=True, arguments=KIND)
    archive.begin()
    costs: dict[str, list[float]] = {PLAIN: [], ARCHIVED: []}
    rates: list[float] = []
    lags: list[float] = []
    for _ in range(rounds):
        for queue, each in costs.items():
            before = cpu_seconds(broker.pid)
            with archive.watched() as seen:
                rate = fill_correlated(port, queue, messages, BODY_BYTES)
                archive.wait_for_files()
            each.append((cpu_seconds(broker.pid) - before) * 1e6 / messages)
            if queue == ARCHIVED:
                rates.append(rate)
                lags.append(max(seen))
    plain, archived = median(costs[PLAIN]), median(costs[ARCHIVED])
    return [
        at_most("CPU of a message for its archive, all processes, µs", archived - plain, COST_US, 2),
        Figure("CPU of the same message without an archive, µs", f"{plain:.2f}"),
        Figure("messages a second into the archived queue", f"{median(rates):,.0f}"),
        at_most("the longest lag of its files meanwhile, s", max(lags), LAG_S, 1),
    ]


class ArchiveState:
    """The state of the queue's archive, by the management API."""

    def __init__(self, management: Management) -> None:
        self._management = management

    def begin(self) -> None:
        """Archive the queue from now on."""
        self._management.put_policy("keep", f"^{ARCHIVED}$", {"archive": True})

    def wait_for_files(self) -> None:
        """Wait until every message is in a file."""
        deadline = time.monotonic() + FILED_S
        while time.monotonic() < deadline:
            found = self._found()
            if found["filed_offset"] == found["next_offset"]:
                return
            time.sleep(LOOK_S)
        raise RuntimeError(f"not in files after {FILED_S:.0f} s: {found}")

    @contextmanager
    def watched(self) -> Iterator[list[float]]:
        """Look at the lag during the block; the list has its values in seconds.

        An error of a look is raised at the end of the block.
        """
        seen: list[float] = [0.0]
        is_over = Event()

        def look() -> None:
            while not is_over.wait(LOOK_S):
                seen.append(self._found()["lag_ms"] / 1000)

        with ThreadPoolExecutor(1) as other:
            looking = other.submit(look)
            try:
                yield seen
            finally:
                is_over.set()
            looking.result()

    def _found(self) -> Mapping[str, Any]:
        (found,) = json.loads(self._management.ask("GET", "/api/archives"))
        return dict(found)
