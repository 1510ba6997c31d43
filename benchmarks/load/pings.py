"""How long a broker leaves a client without an answer, seen by one that asks all the time."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from threading import Event, Thread
from time import perf_counter
from typing import Final

from benchmarks.load.amqp.client import connected
from benchmarks.load.latency import latency

QUEUE: Final = "bench.ping"
#: Between an answer and the next question: a stretch may have begun that much earlier than it is seen.
PAUSE_S: Final = 0.001


class Pings:
    """The waits of one client, longest and number; filled by a thread of its own while the block lasts.

    A wait is what the broker was busy with when the question came, and what
    it did on top: a little more than the longest stretch it did not look at
    its connections. What else the machine does adds to it.
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
        """What all but one wait in a hundred do not exceed, in milliseconds."""
        return latency(self._waits_s).p99_ms

    def ask(self, question: Callable[[], object]) -> None:
        """Ask until told to end; ``question`` returns with the answer."""
        while not self._is_over.wait(PAUSE_S):
            start = perf_counter()
            question()
            wait_s = perf_counter() - start
            self.longest_s = max(self.longest_s, wait_s)
            self._waits_s.append(wait_s)
            self.count += 1

    def end(self) -> None:
        """Ask no more after the question at hand."""
        self._is_over.set()


@contextmanager
def asking(question: Callable[[], object]) -> Iterator[Pings]:
    """Ask while the block lasts; read the result after it."""
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
    """Ask over AMQP, for a queue's length."""
    with connected(port) as client:
        client.declare_queue(QUEUE)
        with asking(partial(client.declare_queue, QUEUE, passive=True)) as pings:
            yield pings
