"""A copy returns the messages that the leader had when it vouched for the range, or none.

No reactor takes part: the log is a list of records, and a standby's writer applies as many of them as a test says.
"""

from dataclasses import dataclass, field

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from gateway.cluster.log_replay import LogRecord
from gateway.cluster.queue_log import UNCLAIMED, Epoch
from gateway.cluster.replication.copy_writer import CopyWriter
from gateway.cluster.replication.log_records import CHECKPOINT_BEGIN, CHECKPOINT_END, CHECKPOINT_PIECE, STEP
from gateway.cluster.replication.step_codec import StepEncoder
from gateway.kernel.journal.changes import EVERYTHING, Appended, Change, StreamSegment, Truncated
from gateway.kernel.journal.store import StoreListener
from gateway.kernel.messages.chunks import entries
from gateway.kernel.messages.contents import decode_content
from gateway.management.pipeline.copied_stream import CopiedStream, CopyOutdated
from gateway.management.pipeline.vouched_range import LogPlace, VouchedRange
from gateway.testing.clock import FakeClock
from gateway.testing.store_session import message_with
from gateway_memory import MemoryStore
from tests.effort import examples

NAMES = ("orders", "events")

#: How many of the last ranges are read after each step.
MOST_RANGES = 5

#: How long the store takes to write, in seconds.
COMMIT_S = 0.05

CELL = 1


def step(*changes: Change, kind: bytes = STEP) -> bytes:
    return kind + StepEncoder().encode(changes)


def message(stream_id: int, offset: int, body: bytes) -> Appended:
    return Appended(stream_id, offset, 1_000 + offset, b"", message_with(0, body, "", ""))


class UnfiledStore(MemoryStore):
    """A store in memory, whose segments are in no files. It reports what it has written some time later."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(defer=lambda call: clock.call_later(COMMIT_S, call))
        self._late = clock

    def listen(self, listener: StoreListener) -> None:
        on_durable = listener.on_durable
        listener.on_durable = lambda watermark: self._late.call_later(COMMIT_S, lambda: on_durable(watermark))  # type: ignore[method-assign]
        super().listen(listener)

    def sealed_segment(self, stream_id: int, offset: int) -> StreamSegment | None:
        return None

    def close_segment_files(self) -> None:
        pass


class GrowingCopy:
    """A copy that has applied the first records of a log."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.store = UnfiledStore(self.clock)
        self.writer = CopyWriter(self.store, self.clock, lambda reason: None)

    def take(self, records: list[LogRecord]) -> None:
        for record in records[self.writer.taken :]:
            self.writer.take(record)

    @property
    def place(self) -> LogPlace | None:
        return LogPlace(CELL, int(self.writer.epoch)) if self.writer.epoch else None

    def read(self, vouched: VouchedRange, offset: int) -> list[tuple[int, bytes]] | None:
        """Return what can be read of a range from an offset on; ``None`` if the leader has to answer."""
        stream = CopiedStream(vouched, self.store, lambda: self.place)
        try:
            chunks = stream.read(offset, 1 << 20)
        except CopyOutdated:
            return None
        if chunks is None:
            return None
        found = [(at, decode_content(content).body) for at, _, _, content in entries(chunks, offset)]
        return [row for row in found if row[0] < vouched.end]


@dataclass
class LiveStream:
    """A stream as its leader has it."""

    id: int
    first: int = 0
    bodies: list[bytes] = field(default_factory=list)

    @property
    def end(self) -> int:
        return len(self.bodies)


class CopiedStreams(RuleBasedStateMachine):
    """Leaders write one log; a copy follows it at any distance; a range is read at any time after it was vouched for.

    A new leader gives streams the number after the highest one that exists, so numbers of deleted streams come again.
    """

    def __init__(self) -> None:
        super().__init__()
        self.log: list[LogRecord] = []
        self.epoch = 1
        self.next_id = 1
        self.made = 0
        self.streams: dict[str, LiveStream] = {}
        self.copy = GrowingCopy()
        self.ranges: list[tuple[VouchedRange, list[bytes]]] = []
        self.write()

    def write(self, *changes: Change) -> None:
        self.log.append(LogRecord(len(self.log) + 1, step(*changes), Epoch(self.epoch)))

    # The leader

    @rule(name=st.sampled_from(NAMES), count=st.integers(1, 5))
    def publish(self, name: str, count: int) -> None:
        if name not in self.streams:
            self.streams[name] = LiveStream(self.next_id)
            self.next_id += 1
        stream = self.streams[name]
        added = [message(stream.id, stream.end + number, self.body()) for number in range(count)]
        stream.bodies += [change.message.body for change in added]
        self.write(*added)
        self.vouch(name)

    def body(self) -> bytes:
        """Return the body of one message alone."""
        self.made += 1
        return b"%d" % self.made

    @rule(name=st.sampled_from(NAMES))
    def delete(self, name: str) -> None:
        stream = self.streams.pop(name, None)
        if stream is not None:
            self.write(Truncated(stream.id, EVERYTHING))

    @rule(name=st.sampled_from(NAMES), share=st.integers(1, 3))
    def truncate(self, name: str, share: int) -> None:
        stream = self.streams.get(name)
        if stream is not None:
            stream.first = max(stream.first, stream.end * share // 3)
            self.write(Truncated(stream.id, stream.first))

    @rule(name=st.sampled_from(NAMES))
    def delete_and_publish_under_another_leader(self, name: str) -> None:
        self.delete(name)
        self.change_leader(announces=False)
        self.publish(name, 3)

    @rule(announces=st.booleans())
    def change_leader(self, announces: bool) -> None:
        self.epoch += 1
        self.next_id = 1 + max((stream.id for stream in self.streams.values()), default=0)
        if announces:
            self.write()

    @rule(name=st.sampled_from(NAMES))
    def vouch(self, name: str) -> None:
        stream = self.streams.get(name)
        if stream is not None and stream.first < stream.end:
            place = LogPlace(CELL, self.epoch)
            vouched = VouchedRange(place, "/", name, stream.id, stream.first, stream.end)
            self.ranges.append((vouched, list(stream.bodies)))

    # The copy

    @rule(share=st.integers(1, 4))
    def follow(self, share: int) -> None:
        left = len(self.log) - self.copy.writer.taken
        self.copy.take(self.log[: self.copy.writer.taken + left * share // 4])

    @rule()
    def catch_up(self) -> None:
        self.follow(4)
        self.pass_time(20)

    @rule(steps=st.sampled_from((1, 3, 20)))
    def pass_time(self, steps: int) -> None:
        for _ in range(steps):
            self.copy.clock.advance(COMMIT_S / 2)
            self.each_range_reads_as_it_was()

    @rule()
    def begin_another_copy(self) -> None:
        self.copy = GrowingCopy()

    # Readers

    @invariant()
    def each_range_reads_as_it_was(self) -> None:
        for vouched, bodies in self.ranges[-MOST_RANGES:]:
            for offset in range(vouched.first, vouched.end):
                found = self.copy.read(vouched, offset)
                if found is not None:
                    assert found == list(enumerate(bodies))[offset : offset + len(found)]

    @precondition(lambda self: self.ranges)
    @rule()
    def read_after_all_was_copied(self) -> None:
        self.write()
        self.copy.take(self.log)
        self.copy.clock.advance(5)
        assert self.copy.place == LogPlace(CELL, self.epoch)
        for name, stream in self.streams.items():
            if stream.first < stream.end:
                place = LogPlace(CELL, self.epoch)
                vouched = VouchedRange(place, "/", name, stream.id, stream.first, stream.end)
                assert self.copy.read(vouched, stream.first) == list(enumerate(stream.bodies))[stream.first :]


TestCopiedStreams = CopiedStreams.TestCase
TestCopiedStreams.settings = settings(max_examples=examples(100), stateful_step_count=40, deadline=None)


@pytest.fixture
def copy() -> GrowingCopy:
    return GrowingCopy()


def records(epoch: int, *payloads: bytes, after: int = 0) -> list[LogRecord]:
    return [LogRecord(after + number, payload, Epoch(epoch)) for number, payload in enumerate(payloads, 1)]


def range_of(epoch: int, first: int = 0, end: int = 2) -> VouchedRange:
    return VouchedRange(LogPlace(CELL, epoch), "/", "orders", 7, first, end)


TWO = step(message(7, 0, b"a"), message(7, 1, b"b"))


def test_a_copy_is_of_an_epoch_once_it_has_written_what_came_before(copy: GrowingCopy) -> None:
    log = records(3, TWO)
    copy.take(log)
    assert copy.writer.epoch == UNCLAIMED
    copy.clock.advance(1)
    assert copy.writer.epoch == 3
    log += records(5, step(), after=1)
    copy.take(log)
    copy.clock.advance(0.1)
    assert copy.writer.epoch == 3  # the record of the next epoch waits, and is not in the store
    copy.clock.advance(1)
    assert copy.writer.epoch == 5


def test_a_copy_is_of_no_epoch_while_the_steps_of_two_are_written(copy: GrowingCopy) -> None:
    log = records(3, TWO)
    copy.take(log)
    copy.clock.advance(1)
    copy.take(log + records(5, step(message(7, 2, b"c")), after=1))
    copy.clock.advance(0.26)
    assert copy.writer.epoch == UNCLAIMED
    assert copy.read(range_of(3), 0) is None
    copy.clock.advance(2 * COMMIT_S)
    assert copy.writer.epoch == 5


def test_a_copy_that_began_in_the_middle_is_read_after_a_whole_checkpoint(copy: GrowingCopy) -> None:
    piece = step(Truncated(7, 0), message(7, 0, b"a"), message(7, 1, b"b"), kind=CHECKPOINT_PIECE)
    log = records(3, TWO, CHECKPOINT_BEGIN, piece, after=10)
    copy.take(log)
    copy.clock.advance(1)
    assert copy.writer.epoch == UNCLAIMED
    copy.take(log + records(3, CHECKPOINT_END, after=13))
    copy.clock.advance(1)
    assert copy.writer.epoch == 3
    assert copy.read(range_of(3), 0) == [(0, b"a"), (1, b"b")]


def test_a_copy_that_failed_is_not_read(copy: GrowingCopy) -> None:
    copy.take(records(3, TWO))
    copy.clock.advance(1)
    copy.take([*records(3, TWO), *records(3, b"?", after=1)])
    copy.clock.advance(1)
    assert copy.writer.failure is not None
    assert copy.read(range_of(3), 0) is None


def test_nothing_beyond_the_range_is_read(copy: GrowingCopy) -> None:
    copy.take(records(3, TWO))
    copy.clock.advance(1)
    assert copy.read(range_of(3, first=1), 0) is None
    assert copy.read(range_of(3, end=1), 0) == [(0, b"a")]
    assert copy.read(range_of(3, end=1), 1) is None
    assert copy.read(range_of(3, end=5), 2) is None  # the leader has it, the copy not yet
    assert copy.read(range_of(4), 0) is None
