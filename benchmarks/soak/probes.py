"""One probe client for each protocol, in a process of its own: ``python -m benchmarks.soak.probes PID amqp=5672``.

It sends requests until its standard input ends. For each line that it reads it prints the waits since the last one
as JSON, in milliseconds: the count, the 99th percentile, the longest, and the longest without the time in which
client or broker (PID) were ready to run without a processor. Another thread of either process counts too: it may hold
the interpreter's lock while it has no processor.
"""

import json
import os
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread, get_native_id
from typing import Final

from benchmarks.lag.probes import PROBES, Request

#: Pause between an answer and the next request, in seconds.
PAUSE_S: Final = 0.1


@dataclass(frozen=True, slots=True)
class Wait:
    """One wait in milliseconds; ``starved`` is the part spent waiting for a processor."""

    all: float
    starved: float

    @property
    def own(self) -> float:
        """The wait without the part spent waiting for a processor."""
        return max(self.all - self.starved, 0.0)


def main() -> int:
    """Send requests until standard input ends."""
    broker, *words = sys.argv[1:]
    ports = {name: int(port) for name, _, port in (word.partition("=") for word in words)}
    waits: list[Wait] = []
    is_over = Event()
    with ExitStack() as stack:
        questions = [stack.enter_context(PROBES[name](port)) for name, port in ports.items()]  # type: ignore[arg-type]
        threads = [Thread(target=_probe, args=(request, broker, waits, is_over), daemon=True) for request in questions]
        for thread in threads:
            thread.start()
        for _ in sys.stdin:
            found, waits[:] = list(waits), []
            alive = all(thread.is_alive() for thread in threads)
            print(json.dumps({**summary(found), "alive": alive}), flush=True)
        is_over.set()
    return 0


def summary(waits: Sequence[Wait]) -> dict[str, float]:
    """Return the summary of the waits of one interval."""
    times = sorted(wait.all for wait in waits) or [0.0]
    own = max((wait.own for wait in waits), default=0.0)
    return {"count": len(waits), "p99": times[int(len(times) * 0.99)], "longest": times[-1], "longest_own": own}


def _probe(request: Request, broker: str, waits: list[Wait], is_over: Event) -> None:
    broker_starvation, own_starvation = Starvation(int(broker)), Starvation(os.getpid(), get_native_id())
    while not is_over.wait(PAUSE_S):
        broker_starvation.start()
        own_starvation.start()
        start = time.perf_counter()
        request()
        took = (time.perf_counter() - start) * 1e3
        waits.append(Wait(took, broker_starvation.end_ms() + own_starvation.end_ms()))


class Starvation:
    """Measures how long the threads of a process were ready to run without a processor.

    It is that of one ``thread``, by default the first one, and the longest of the others.
    """

    def __init__(self, pid: int, thread: int = 0) -> None:
        self._tasks = Path(f"/proc/{pid}/task")
        self._thread = str(thread or pid)
        self._before: dict[str, int] = {}

    def start(self) -> None:
        """Start a measurement."""
        self._before = self._waits_ns()

    def end_ms(self) -> float:
        """Return the time since the start, in milliseconds."""
        waits_ns = {thread: wait_ns - self._before.get(thread, wait_ns) for thread, wait_ns in self._waits_ns().items()}
        own_ns = waits_ns.pop(self._thread, 0)
        return (own_ns + max(waits_ns.values(), default=0)) / 1e6

    def _waits_ns(self) -> dict[str, int]:
        waits_ns: dict[str, int] = {}
        for task in self._tasks.iterdir():
            with suppress(OSError):  # the thread ended meanwhile
                waits_ns[task.name] = int((task / "schedstat").read_text().split()[1])
        return waits_ns


if __name__ == "__main__":
    sys.exit(main())
