"""Response times of a broker, measured by a client that sends requests all the time."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from threading import Event, Thread
from time import perf_counter
from typing import Final

from benchmarks.load.amqp.client import connected
from benchmarks.load.latency import latency

QUEUE: Final = "bench.ping"
#: Pause between an answer and the next request; a wait may have begun this much earlier than it is seen.
PAUSE_S: Final = 0.001


class Pings:
    """The waits of one client; filled by its own thread during the block.

    A wait is the rest of the broker's current work plus the work for the request: a little more than the longest
    time without polling its connections. Other load on the machine adds to it.
    """

    def __init__(self) -> None:
        self.longest_s = 0.0
        self.count = 0
        self._waits_s: list[float] = []
        self._is_over = Event()

    @property
    def longest_ms(self) -> float:
        """The longest wait in milliseconds."""
        return self.longest_s * 1e3

    @property
    def p99_ms(self) -> float:
        """The 99th percentile of the waits, in milliseconds."""
        return latency(self._waits_s).p99_ms

    def ask(self, question: Callable[[], object]) -> None:
        """Send requests until told to end; ``question`` returns with the answer."""
        while not self._is_over.wait(PAUSE_S):
            start = perf_counter()
            question()
            wait_s = perf_counter() - start
            self.longest_s = max(self.longest_s, wait_s)
            self._waits_s.append(wait_s)
            self.count += 1

    def end(self) -> None:
        """End after the current request."""
        self._is_over.set()


@contextmanager
def asking(question: Callable[[], object]) -> Iterator[Pings]:
    """Send requests during the block; read the result after it."""
    pings = Pings()
    thread = Thread(target=pings.ask, args=(question,))
    thread.start()
    try:
        yield pings
    finally:
        pings.end()
        thread.join()


@contextmanager
def pinging(port: int) -> Iterator[Pings]:
    """Request a queue's length over AMQP."""
    with connected(port) as client:
        client.declare_queue(QUEUE)
        with asking(partial(client.declare_queue, QUEUE, passive=True)) as pings:
            yield pings
