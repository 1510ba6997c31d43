"""One innocent client of each protocol, in a process of its own: ``python -m benchmarks.soak.innocents amqp=5672``.

It asks until its standard input ends. For each line that it reads it prints the waits since the last one as JSON, in
milliseconds: the count, the 99th percentile and the longest.
"""

import json
import sys
import time
from contextlib import ExitStack
from threading import Event, Thread
from typing import Final

from benchmarks.lag.innocents import INNOCENTS, Question

#: Between an answer and the next question, in seconds.
PAUSE_S: Final = 0.1


def main() -> int:
    """Ask until standard input ends."""
    ports = {name: int(port) for name, _, port in (word.partition("=") for word in sys.argv[1:])}
    waits: list[float] = []
    is_over = Event()
    with ExitStack() as stack:
        questions = [stack.enter_context(INNOCENTS[name](port)) for name, port in ports.items()]  # type: ignore[arg-type]
        threads = [Thread(target=_ask, args=(question, waits, is_over), daemon=True) for question in questions]
        for thread in threads:
            thread.start()
        for _ in sys.stdin:
            found, waits[:] = sorted(waits), []
            p99, longest = (found[int(len(found) * 0.99)], found[-1]) if found else (0.0, 0.0)
            alive = all(thread.is_alive() for thread in threads)
            print(json.dumps({"count": len(found), "p99": p99, "longest": longest, "alive": alive}), flush=True)
        is_over.set()
    return 0


def _ask(question: Question, waits: list[float], is_over: Event) -> None:
    while not is_over.wait(PAUSE_S):
        start = time.perf_counter()
        question()
        waits.append((time.perf_counter() - start) * 1e3)


if __name__ == "__main__":
    sys.exit(main())
