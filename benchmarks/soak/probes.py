"""One probe client for each protocol, in a process of its own: ``python -m benchmarks.soak.probes PID amqp=5672``.

It sends requests until its standard input ends. For each line that it reads it prints the waits since the last one
as JSON, in milliseconds: the count, the 99th percentile, the longest, and the longest without the time in which
client or broker (PID) were ready to run without a processor.
"""

import json
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
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
    while not is_over.wait(PAUSE_S):
        starved, start = _starved_ms(broker), time.perf_counter()
        request()
        took = (time.perf_counter() - start) * 1e3
        waits.append(Wait(took, _starved_ms(broker) - starved))


def _starved_ms(broker: str) -> float:
    """Return how long the broker's first thread and this one were ready to run without a processor."""
    files = (f"/proc/{broker}/schedstat", "/proc/thread-self/schedstat")
    return sum(int(Path(file).read_text().split()[1]) for file in files) / 1e6


if __name__ == "__main__":
    sys.exit(main())
