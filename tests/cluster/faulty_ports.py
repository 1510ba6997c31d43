"""The ports of one node over the engine in memory, with the faults that a test switches on."""

from collections.abc import Callable, Coroutine, Generator
from typing import Any, TypeVar

from gateway.cluster.errors import Unanswered
from gateway.cluster.gate import Gate
from gateway.cluster.metadata import Key, MetadataEntry, MetadataWatch, MetadataWatcher, Revision
from gateway.cluster.queue_log import (
    BEGINNING,
    AppendAnswer,
    AppendOutcome,
    Claim,
    Epoch,
    LogFollower,
    LogFollowing,
    Position,
    QueueId,
    StoredBatch,
)
from gateway.kernel.clock import Timer
from gateway.testing.clock import FakeClock
from gateway_memory.cluster import MemoryMetadata, MemoryQueueLogs

T = TypeVar("T")

#: The time limit of a call, in seconds.
TIMEOUT_S = 2.0


class NodeClock:
    """The clock of a process that can be stopped: its calls are late then, and its time goes on."""

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self.background = clock.background
        self.is_paused = False
        self.is_dead = False
        self._late: list[Callable[[], None]] = []

    def wall_ms(self) -> int:
        return self._clock.wall_ms()

    def monotonic_s(self) -> float:
        return self._clock.monotonic_s()

    def call_later(self, delay_s: float, call: Callable[[], None]) -> Timer:
        timer = NodeTimer(self, call)
        self._clock.call_later(delay_s, timer.ring)
        return timer

    def hold(self, call: Callable[[], None]) -> None:
        """Keep a call that came while the process was stopped."""
        self._late.append(call)

    def resume(self) -> None:
        self.is_paused = False
        late, self._late = self._late, []
        for call in late:
            call()


class NodeTimer:
    """A scheduled call of a node."""

    __slots__ = ("_call", "_clock")

    def __init__(self, clock: NodeClock, call: Callable[[], None]) -> None:
        self._clock = clock
        self._call: Callable[[], None] | None = call

    def cancel(self) -> None:
        self._call = None

    def ring(self) -> None:
        if self._clock.is_paused:
            self._clock.hold(self.ring)
        elif self._call is not None and not self._clock.is_dead:
            self._call()


class Waiting:
    """Waits on a clock: ``await Waiting(clock, 2.0)``."""

    def __init__(self, clock: NodeClock | FakeClock, seconds: float) -> None:
        self.clock = clock
        self.seconds = seconds

    def __await__(self) -> Generator["Waiting", None, None]:
        yield self


def start(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine that waits by ``Waiting`` alone."""
    try:
        waiting = work.send(None)
    except StopIteration:
        return
    assert isinstance(waiting, Waiting)
    waiting.clock.call_later(waiting.seconds, lambda: start(work))


class Faults:
    """The faults of one node's engine.

    ``is_cut``: no call arrives. ``is_deaf``: the watches report nothing. ``loses_answers``: calls are carried out, and
    their answers are lost.
    ``latency_s`` passes before a call is carried out, also if the node is stopped or killed meanwhile.
    """

    def __init__(self, engine: FakeClock, clock: NodeClock) -> None:
        self.clock = clock
        self._engine = engine
        self.is_cut = False
        self.is_deaf = False
        self.loses_answers = False
        self.latency_s = 0.0
        self.calls = 0
        self._late: list[Callable[[], None]] = []

    async def carry_out(self, call: Callable[[], Coroutine[Any, Any, T]]) -> T:
        self.calls += 1
        await Waiting(self._engine, self.latency_s)
        if self.is_cut:
            await Waiting(self.clock, TIMEOUT_S)
            raise Unanswered("no answer within 2 s; nothing was written")
        result = await call()
        if self.loses_answers:
            await Waiting(self.clock, TIMEOUT_S)
            raise Unanswered("no answer within 2 s")
        await Waiting(self.clock, 0)
        return result

    def arrive(self, call: Callable[[], None]) -> None:
        """Make a call of the engine on the node, in its time."""
        if self.is_cut or self.is_deaf:
            self._late.append(call)
        else:
            self.clock.call_later(0, call)

    def heal(self) -> None:
        self.is_cut = self.is_deaf = self.loses_answers = False
        self.latency_s = 0.0
        late, self._late = self._late, []
        for call in late:
            self.clock.call_later(0, call)


class FaultyMetadata:
    """The metadata of one node."""

    def __init__(self, metadata: MemoryMetadata, faults: Faults) -> None:
        self._metadata = metadata
        self._faults = faults

    async def get(self, key: Key) -> MetadataEntry | None:
        return await self._faults.carry_out(lambda: self._metadata.get(key))

    async def put(self, key: Key, value: bytes, expected: Revision) -> Revision:
        return await self._faults.carry_out(lambda: self._metadata.put(key, value, expected))

    async def delete(self, key: Key, expected: Revision) -> Revision:
        return await self._faults.carry_out(lambda: self._metadata.delete(key, expected))

    def watch(self, prefix: Key, watcher: MetadataWatcher) -> MetadataWatch:
        return FaultyWatch(self._metadata, prefix, watcher, self._faults)


class FaultyWatch:
    """A watch whose entries come in the node's time."""

    def __init__(self, metadata: MemoryMetadata, prefix: Key, watcher: MetadataWatcher, faults: Faults) -> None:
        self._watcher: MetadataWatcher | None = watcher
        self._faults = faults
        self._watch = metadata.watch(prefix, self)

    def on_entry(self, entry: MetadataEntry) -> None:
        self._faults.arrive(lambda: self._report(entry))

    def on_current(self) -> None:
        self._faults.arrive(lambda: self._report(None))

    def _report(self, entry: MetadataEntry | None) -> None:
        if self._watcher is None:
            return
        if entry is None:
            self._watcher.on_current()
        else:
            self._watcher.on_entry(entry)

    def stop(self) -> None:
        self._watcher = None
        self._watch.stop()


class FaultyLogs:
    """The logs of one node. Appends arrive late too."""

    def __init__(self, logs: MemoryQueueLogs, faults: Faults) -> None:
        self.most_batch_bytes = logs.most_batch_bytes
        self._logs = logs
        self._faults = faults

    async def owner(self, queue: QueueId) -> Claim | None:
        return await self._faults.carry_out(lambda: self._logs.owner(queue))

    async def claim(self, queue: QueueId, node: str, expected: Epoch) -> Claim:
        return await self._faults.carry_out(lambda: self._logs.claim(queue, node, expected))

    def append(self, claim: Claim, number: int, data: bytes, answered: Callable[[AppendAnswer], None]) -> None:
        start(self._append(claim, number, data, answered))

    async def _append(self, claim: Claim, number: int, data: bytes, answered: Callable[[AppendAnswer], None]) -> None:
        answers: list[AppendAnswer] = []

        async def carried_out() -> None:
            self._logs.append(claim, number, data, answers.append)

        try:
            await self._faults.carry_out(carried_out)
        except Unanswered as error:
            answered(AppendAnswer(AppendOutcome.UNANSWERED, reason=str(error)))
            return
        await Waiting(self._faults.clock, 0.001)
        answered(answers[0])

    async def last(self, claim: Claim) -> StoredBatch | None:
        return await self._faults.carry_out(lambda: self._logs.last(claim))

    async def read(
        self,
        claim: Claim,
        take: Callable[[StoredBatch], None],
        after: Position = BEGINNING,
        gate: Gate | None = None,
    ) -> None:
        await self._faults.carry_out(lambda: self._logs.read(claim, take, after, gate))

    def follow(
        self, queue: QueueId, follower: LogFollower, after: Position = BEGINNING, gate: Gate | None = None
    ) -> LogFollowing:
        return self._logs.follow(queue, follower, after, gate)

    async def read_elsewhere(self, claim: Claim) -> None:
        await self._faults.carry_out(lambda: self._logs.read_elsewhere(claim))

    def move_leader(self, claim: Claim) -> None:
        self._logs.move_leader(claim)

    async def draw_near(self, claim: Claim) -> None:
        await self._logs.draw_near(claim)

    async def fetch(self, queue: QueueId, position: Position) -> bytes | None:
        return await self._faults.carry_out(lambda: self._logs.fetch(queue, position))

    def purge(self, claim: Claim, below: Position) -> None:
        self._logs.purge(claim, below)
