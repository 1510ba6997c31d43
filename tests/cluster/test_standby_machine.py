"""Whatever the order of steps, checkpoints, purges, takeovers and faults of its reading, a standby's copy is right.

At each takeover it equals a copy that is built from an empty directory, and it is used unless the log was purged beyond
what it has.
"""

from collections.abc import Callable

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from gateway.cluster.errors import ReadingOutdated
from gateway.cluster.gate import Gate
from gateway.cluster.queue_log import BEGINNING, Claim, LogFollower, LogFollowing, Position, QueueId, StoredBatch
from gateway.cluster.replication.local_store import LocalStore
from gateway.cluster.replication.log_copy import LogCopy, Rebuilt
from gateway.cluster.replication.standby import Standby
from gateway.cluster.replication.step_codec import StepEncoder
from gateway.kernel.journal.changes import Truncated
from gateway.testing.store_streams import stream_message
from gateway_memory import MemoryStore
from gateway_memory.cluster import MemoryQueueLogs
from tests.cluster.replicated_places import LOG, ReplicatedPlace, failed
from tests.cluster.test_replicated_store_machine import ReplicatedStores
from tests.effort import examples

#: Larger than all offsets of a stream in a test.
_ALL = 1000

STREAM = 1


class FaultyFollows(MemoryQueueLogs):
    """Logs whose followings a test cuts, and whose batches it damages on their way to a follower."""

    def follow(
        self, queue: QueueId, follower: LogFollower, after: Position = BEGINNING, gate: Gate | None = None
    ) -> LogFollowing:
        self.faulty = FaultyFollower(follower)
        self.following = super().follow(queue, self.faulty, after, gate)
        return self.following

    def cut(self) -> None:
        """End the following, as if its server could not deliver any more."""
        if self.following in self._follows:
            self.following.stop()
            self.faulty.on_ended("cut")


class FaultyFollower:
    """Passes batches on; the next one is left out, comes twice or has a flipped bit if a test says so."""

    def __init__(self, follower: LogFollower) -> None:
        self.fault = ""
        self._follower = follower

    def take(self, batch: StoredBatch, behind: int) -> None:
        fault, self.fault = self.fault, ""
        if fault == "lost":
            return
        if fault == "flipped":
            batch = StoredBatch(batch.position, batch.data[:-1] + bytes([batch.data[-1] ^ 1]))
        self._follower.take(batch, behind)
        if fault == "twice":
            self._follower.take(batch, behind)

    def on_ended(self, reason: str) -> None:
        self._follower.on_ended(reason)


class StandbyPlace(ReplicatedPlace):
    """A place whose next owner kept a copy while it followed."""

    def __init__(self, latency_s: float, commit_s: float) -> None:
        super().__init__(latency_s, commit_s)
        self.faulty = FaultyFollows(self.engine.clock, latency_s=latency_s)
        self.logs = self.faulty
        self.interruptions: list[str] = []
        self.standby = Standby(self.logs, LOG, self.engine.clock, self.new_copy, self)
        self.standby.start()

    def new_copy(self, on_failure: Callable[[str], None]) -> LogCopy:
        clock = self.engine.clock
        return LogCopy(LOG, MemoryStore(defer=lambda call: clock.call_later(0, call)), clock, failed)

    def on_caught_up(self, records: int) -> None:
        assert self.standby.copy is not None
        assert self.standby.copy.writer.applier.records == records

    def on_interrupted(self, reason: str) -> None:
        self.interruptions.append(reason)

    def _built(self, claim: Claim) -> tuple[LocalStore, Rebuilt]:
        """Return the copy of the standby, after it was compared with one that is built from nothing."""
        built, expected = super()._built(claim)
        copy = self.standby.hand_over()
        if copy is None:
            return built, expected
        self.standby.start()
        try:
            end = self.engine.run(copy.read_rest(self.logs, claim))
        except ReadingOutdated:
            return built, expected
        written: list[bool] = []
        copy.writer.finish(lambda: written.append(True))
        self.engine.clock.advance(0)
        assert written
        rebuilt = copy.rebuilt(end)
        assert rebuilt.end == expected.end
        assert rebuilt.growth.bytes == expected.growth.bytes
        assert rebuilt.growth.checkpoint_bytes == expected.growth.checkpoint_bytes
        assert isinstance(copy.store, MemoryStore)
        kept = copy.store.reopened(defer=lambda call: self.engine.clock.call_later(self._commit_s, call))
        assert contents(kept) == contents(built)
        return kept, rebuilt


def contents(store: LocalStore) -> list[bytes]:
    """Return everything that a copy has; a stream without messages that begins with its first offset is none."""
    found = store.durable_records({STREAM: _ALL}, 10**9, 10**9)
    return sorted(StepEncoder().encode([record]) for record in found if record != Truncated(STREAM, 0))


class Standbys(ReplicatedStores):
    """The machine of a replicated store, whose next owner is a standby."""

    place: StandbyPlace

    def new_place(self, latency_s: float, commit_s: float) -> StandbyPlace:
        return StandbyPlace(latency_s, commit_s)

    @rule(count=st.integers(1, 5))
    def append_to_stream(self, count: int) -> None:
        end = self.owner.store.stream_ends.get(STREAM, 0)
        self.append([stream_message(STREAM, offset, 10) for offset in range(end, end + count)])

    @rule(share=st.integers(0, 3))
    def truncate_stream(self, share: int) -> None:
        self.append([Truncated(STREAM, self.owner.store.stream_ends.get(STREAM, 0) * share // 3)])

    @rule()
    def pass_long_time(self) -> None:
        """The standby follows again after a cut, and writes what it folded."""
        self.place.engine.clock.advance(0.7)

    @rule()
    def complete_a_checkpoint(self) -> None:
        """Its end purges what is before it."""
        self.owner.store.checkpoint()
        self.place.engine.clock.advance(0.2)

    @rule()
    def cut(self) -> None:
        self.place.faulty.cut()

    @rule(fault=st.sampled_from(["lost", "flipped", "twice"]))
    def disturb(self, fault: str) -> None:
        self.place.faulty.faulty.fault = fault

    @precondition(lambda self: self.place.standby.copy is not None)
    @rule()
    def look(self) -> None:
        lag = self.place.standby.lag
        assert lag is None or (lag.batches >= 0 and lag.seconds >= 0)


Standbys.TestCase.settings = settings(max_examples=examples(200), stateful_step_count=60, deadline=None)
TestStandbys = Standbys.TestCase
