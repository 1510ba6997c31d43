"""Logs in memory whose answers and copies a test decides."""

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from gateway.cluster.gate import Gate
from gateway.cluster.queue_log import BEGINNING, AppendAnswer, Claim, Position, StoredBatch
from gateway.testing.clock import FakeClock
from gateway_memory.cluster import MemoryQueueLogs

T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    """Return the result of a coroutine that does not wait."""
    try:
        work.send(None)
    except StopIteration as stop:
        result: T = stop.value
        return result
    raise AssertionError("the coroutine waits")


class ScriptedLogs(MemoryQueueLogs):
    """The engine in memory; ``answers`` replaces the next answers, ``copies`` changes what the next reads read.

    An answer of ``None`` is that of the engine itself. A replaced one is given without an append, unless ``stores``
    says that the append was carried out and the answer lost.
    """

    def __init__(self, clock: FakeClock, most_batch_bytes: int = 256 * 1024) -> None:
        super().__init__(clock, most_batch_bytes)
        self._fake_clock = clock
        self.answers: list[AppendAnswer | None] = []
        self.stores = False
        self.copies: list[Callable[[list[StoredBatch]], list[StoredBatch]]] = []
        self.lasts: list[Callable[[StoredBatch | None], StoredBatch | None]] = []
        self.sent: list[tuple[int, bytes]] = []
        self.moves = 0

    def append(self, claim: Claim, number: int, data: bytes, answered: Callable[[AppendAnswer], None]) -> None:
        self.sent.append((number, data))
        answer = self.answers.pop(0) if self.answers else None
        if answer is None:
            super().append(claim, number, data, answered)
            return
        if self.stores:
            super().append(claim, number, data, lambda ignored: None)
        self._fake_clock.call_later(0, lambda: answered(answer))

    async def last(self, claim: Claim) -> StoredBatch | None:
        found = await super().last(claim)
        return self.lasts.pop(0)(found) if self.lasts else found

    async def read(
        self,
        claim: Claim,
        take: Callable[[StoredBatch], None],
        after: Position = BEGINNING,
        gate: Gate | None = None,
    ) -> None:
        batches: list[StoredBatch] = []
        await super().read(claim, batches.append)
        for stored in self.copies.pop(0)(batches) if self.copies else batches:
            if stored.position > after:
                take(stored)

    async def read_elsewhere(self, claim: Claim) -> None:
        self.moves += 1
