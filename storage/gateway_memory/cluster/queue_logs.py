"""Logs of queues in memory."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from gateway.cluster.errors import ClusterError, Deposed, Outdated
from gateway.cluster.gate import Gate
from gateway.cluster.queue_log import (
    BEGINNING,
    UNCLAIMED,
    AppendAnswer,
    AppendOutcome,
    Claim,
    Epoch,
    LogFollower,
    Position,
    QueueId,
    StoredBatch,
)
from gateway.kernel.clock import Clock

#: The size of the largest batch, as with JetStream.
_MOST_BATCH_BYTES: Final = 256 * 1024


class MemoryQueueLogs:
    """Logs, shared by the nodes of one process. Appends are stored at once, and answered ``latency_s`` later."""

    def __init__(self, clock: Clock, most_batch_bytes: int = _MOST_BATCH_BYTES, latency_s: float = 0) -> None:
        self.most_batch_bytes = most_batch_bytes
        self._latency_s = latency_s
        self._clock = clock
        self._position = 0
        self._claims: dict[QueueId, Claim] = {}
        self._batches: defaultdict[QueueId, dict[Position, bytes]] = defaultdict(dict)
        self._positions: dict[tuple[QueueId, Epoch, int], Position] = {}
        self._follows: list[MemoryLogFollow] = []

    async def owner(self, queue: QueueId) -> Claim | None:
        """Return the last claim."""
        return self._claims.get(queue)

    async def claim(self, queue: QueueId, node: str, expected: Epoch) -> Claim:
        """Claim a queue. :raises Outdated: if the last epoch is not the expected one."""
        last = self._claims.get(queue)
        epoch = UNCLAIMED if last is None else last.epoch
        if epoch != expected:
            raise Outdated(f"queue {queue} has epoch {epoch}, not {expected}")
        claim = self._claims[queue] = Claim(queue, node, Epoch(self._next_position()))
        return claim

    def append(self, claim: Claim, number: int, data: bytes, answered: Callable[[AppendAnswer], None]) -> None:
        """Append a batch under the last claim."""
        answer = self._append(claim, number, data)
        self._clock.call_later(self._latency_s, lambda: answered(answer))

    def _append(self, claim: Claim, number: int, data: bytes) -> AppendAnswer:
        key = (claim.queue, claim.epoch, number)
        if key in self._positions:
            return AppendAnswer(AppendOutcome.STORED, self._positions[key])
        last = self._claims[claim.queue]
        if last.epoch != claim.epoch:
            return AppendAnswer(AppendOutcome.DEPOSED, reason=f"{last.node} has claimed queue {claim.queue}")
        position = self._positions[key] = Position(self._next_position())
        self._batches[claim.queue][position] = data
        for follow in self._follows:
            follow.wake()
        return AppendAnswer(AppendOutcome.STORED, position)

    async def last(self, claim: Claim) -> StoredBatch | None:
        """Return the last batch before a claim."""
        return self._before(claim)[-1] if self._before(claim) else None

    async def read(
        self,
        claim: Claim,
        take: Callable[[StoredBatch], None],
        after: Position = BEGINNING,
        gate: Gate | None = None,
    ) -> None:
        """Give each batch before a claim to ``take``, all in this turn. :raises Deposed: if there is a later claim."""
        last = self._claims[claim.queue]
        if last.epoch != claim.epoch:
            raise Deposed(f"{last.node} has claimed queue {claim.queue}")
        for stored in self._before(claim):
            if stored.position > after:
                take(stored)

    def follow(
        self, queue: QueueId, follower: LogFollower, after: Position = BEGINNING, gate: Gate | None = None
    ) -> "MemoryLogFollow":
        """Give each batch after a position to a follower, one in each turn."""
        follow = MemoryLogFollow(self._clock, self._batches[queue], follower, after, gate or Gate(), self._follows)
        self._follows.append(follow)
        follow.wake()
        return follow

    async def read_elsewhere(self, claim: Claim) -> None:
        """Do nothing: there is one copy."""

    def move_leader(self, claim: Claim) -> None:
        """Do nothing: there is one copy."""

    async def draw_near(self, claim: Claim) -> None:
        """Do nothing: there is one copy."""

    async def fetch(self, queue: QueueId, position: Position) -> bytes | None:
        """Return the batch at a position."""
        return self._batches[queue].get(position)

    def purge(self, claim: Claim, below: Position) -> None:
        """Remove what is below a position."""
        batches = self._batches[claim.queue]
        for position in [each for each in batches if each < below]:
            del batches[position]

    def _before(self, claim: Claim) -> list[StoredBatch]:
        batches = self._batches[claim.queue]
        return [StoredBatch(position, data) for position, data in batches.items() if position < claim.epoch]

    def _next_position(self) -> int:
        self._position += 1
        return self._position


class MemoryLogFollow:
    """The following of one log, until it is stopped or a batch is refused. ``follows`` has those that go on."""

    def __init__(
        self,
        clock: Clock,
        batches: Mapping[Position, bytes],
        follower: LogFollower,
        after: Position,
        gate: Gate,
        follows: "list[MemoryLogFollow]",
    ) -> None:
        self._clock = clock
        self._batches = batches
        self._follower = follower
        self._after = after
        self._gate = gate
        self._follows = follows
        self._is_scheduled = False

    def stop(self) -> None:
        """Make no more calls."""
        if self in self._follows:
            self._follows.remove(self)

    def wake(self) -> None:
        """Look for another batch in a later turn."""
        if not self._is_scheduled:
            self._is_scheduled = True
            self._clock.call_later(0, lambda: self._gate.when_open(self._deliver))

    def _deliver(self) -> None:
        self._is_scheduled = False
        waiting = [position for position in self._batches if position > self._after]
        if not waiting or self not in self._follows:
            return
        self._after = min(waiting)
        try:
            self._follower.take(StoredBatch(self._after, self._batches[self._after]), len(waiting) - 1)
        except ClusterError as error:
            self.stop()
            self._clock.call_later(0, partial(self._follower.on_ended, str(error)))
        else:
            self.wake()
