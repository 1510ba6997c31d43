"""The outcome of one run of one workload, and the watch that takes it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter, process_time

from benchmarks.load.drive import collector_paused
from benchmarks.load.latency import Latency
from benchmarks.load.processes import cpu_seconds


@dataclass(slots=True)
class Stopwatch:
    """Wall time and both sides' CPU time of a ``with`` block, set when it has ended."""

    wall_s: float = 0.0
    broker_cpu_s: float = 0.0
    generator_cpu_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Measurement:
    """What one run showed. Messages count where they are delivered: a fanout to ten makes ten of one.

    ``confirm`` is the time from publish to confirm where there were confirms,
    ``delivery`` the time from publish to delivery where there were consumers.
    """

    messages: int
    watch: Stopwatch
    delivery: Latency | None
    confirm: Latency | None

    @property
    def rate(self) -> float:
        """Messages a second."""
        return self.messages / self.watch.wall_s

    @property
    def broker_us(self) -> float:
        """CPU microseconds a message in the broker."""
        return self.watch.broker_cpu_s * 1e6 / self.messages

    @property
    def generator_us(self) -> float:
        """CPU microseconds a message in the generator."""
        return self.watch.generator_cpu_s * 1e6 / self.messages


@contextmanager
def stopwatch(pid: int) -> Iterator[Stopwatch]:
    """Time the block; looking up the broker's CPU time happens outside of what is timed."""
    watch = Stopwatch()
    with collector_paused():
        broker_cpu = cpu_seconds(pid)
        own_cpu, start = process_time(), perf_counter()
        yield watch
        watch.wall_s, watch.generator_cpu_s = perf_counter() - start, process_time() - own_cpu
        watch.broker_cpu_s = cpu_seconds(pid) - broker_cpu
