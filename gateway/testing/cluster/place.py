"""A place to test an engine of several nodes: it gives each node its ports, and drives them."""

from collections.abc import Callable, Coroutine
from itertools import count
from typing import Any, Protocol, TypeVar

from gateway.cluster.bus import Bus
from gateway.cluster.metadata import Metadata
from gateway.cluster.queue_log import QueueId, QueueLogs
from gateway.kernel.clock import Clock
from gateway.testing.clock import FakeClock
from gateway_memory.cluster import MemoryBus, MemoryMetadata, MemoryQueueLogs

T = TypeVar("T")

#: The fake time that may pass until a condition is true, in seconds, and its steps.
_MOST_S = 60.0
_STEP_S = 0.05


class ClusterPlace(Protocol):
    """An engine, empty for each check: keys and queues of earlier checks are not used again."""

    @property
    def clock(self) -> Clock:
        """The clock of the nodes."""
        ...

    def metadata(self) -> Metadata:
        """Return the metadata, as another node has it with each call."""
        ...

    def logs(self) -> QueueLogs:
        """Return the logs, as another node has them with each call."""
        ...

    def bus(self) -> Bus:
        """Return the bus, as another node has it with each call."""
        ...

    def new_queue(self) -> QueueId:
        """Return a queue that was never claimed."""
        ...

    def new_name(self) -> str:
        """Return a text that was never used."""
        ...

    def run(self, work: Coroutine[Any, Any, T]) -> T:  # Any: what a coroutine passes to its driver
        """Return the result of a coroutine."""
        ...

    def until(self, condition: Callable[[], object]) -> None:
        """Let time pass until a condition is true, and fail after a while."""
        ...

    def close(self) -> None:
        """End the engine, and remove its data."""
        ...


class MemoryClusterPlace:
    """The engine in memory, on a fake clock: its coroutines never wait."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self._metadata = MemoryMetadata(self.clock)
        self._logs = MemoryQueueLogs(self.clock)
        self._bus = MemoryBus(self.clock)
        self._numbers = count(1)

    def metadata(self) -> MemoryMetadata:
        """Return the metadata."""
        return self._metadata

    def logs(self) -> MemoryQueueLogs:
        """Return the logs."""
        return self._logs

    def bus(self) -> MemoryBus:
        """Return the bus."""
        return self._bus

    def new_queue(self) -> QueueId:
        """Return a new number."""
        return QueueId(next(self._numbers))

    def new_name(self) -> str:
        """Return a new text."""
        return f"name-{next(self._numbers)}"

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of a coroutine that does not wait."""
        try:
            work.send(None)
        except StopIteration as stop:
            result: T = stop.value
            return result
        work.close()
        raise AssertionError("a coroutine of the engine in memory waits")

    def until(self, condition: Callable[[], object]) -> None:
        """Advance the clock until a condition is true."""
        passed_s = 0.0
        while not condition():
            assert passed_s < _MOST_S, "the condition was not met in time"
            self.clock.advance(_STEP_S)
            passed_s += _STEP_S

    def close(self) -> None:
        """Do nothing; there are no files."""
