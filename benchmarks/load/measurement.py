"""The result of one run of one workload, and the stopwatch for it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter, process_time

from benchmarks.load.drive import collector_paused
from benchmarks.load.latency import Latency
from benchmarks.load.processes import cpu_seconds


@dataclass(slots=True)
class Stopwatch:
    """Wall time and both sides' CPU time of a ``with`` block, set at its end."""

    wall_s: float = 0.0
    broker_cpu_s: float = 0.0
    generator_cpu_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Measurement:
    """The result of one run. Messages are counted at delivery: a fanout to ten makes ten of one.

    ``confirm`` is the time from publish to confirm, if there were confirms; ``delivery`` the time from publish to
    delivery, if there were consumers.
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
        """The broker's CPU microseconds per message."""
        return self.watch.broker_cpu_s * 1e6 / self.messages

    @property
    def generator_us(self) -> float:
        """The generator's CPU microseconds per message."""
        return self.watch.generator_cpu_s * 1e6 / self.messages


@contextmanager
def stopwatch(pid: int) -> Iterator[Stopwatch]:
    """Time the block; reading the broker's CPU time is not included."""
    watch = Stopwatch()
    with collector_paused():
        broker_cpu = cpu_seconds(pid)
        own_cpu, start = process_time(), perf_counter()
        yield watch
        watch.wall_s, watch.generator_cpu_s = perf_counter() - start, process_time() - own_cpu
        watch.broker_cpu_s = cpu_seconds(pid) - broker_cpu
