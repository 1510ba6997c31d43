"""The LMDB engine has the same content as the memory engine after any appends and crashes."""

from collections.abc import Callable, Iterable
from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from gateway.kernel.journal.changes import (
    EVERYTHING,
    Change,
    Dequeued,
    Discarded,
    Enqueued,
    Lsn,
    Put,
    Recovered,
    Removed,
    Sealed,
    SetAside,
    Stored,
    StreamSegment,
    Truncated,
)
from gateway.kernel.journal.enqueued_run import EnqueuedRun
from gateway.kernel.messages.chunks import entries
from gateway.testing.store_session import (
    entities_in,
    message_with,
    places_in,
    queue_record,
    segments_in,
    vhost_record,
)
from gateway.testing.store_streams import stream_message
from gateway_lmdb import LmdbStore
from gateway_memory import MemoryStore
from tests.effort import examples
from tests.storage.places import LmdbPlace

IDS = st.integers(1, 12)
NAMES = st.sampled_from(["a", "b", "c"])

ENTITY_CHANGES = st.one_of(
    st.builds(lambda name, text: Put(vhost_record(name, text)), NAMES, NAMES),
    st.builds(lambda name: Removed("vhost", (name,)), NAMES),
    st.builds(lambda number: Put(queue_record(number)), st.integers(1, 3)),
)
MESSAGE_CHANGES = st.one_of(
    st.builds(lambda number, body: Stored(message_with(number, body)), IDS, st.binary(max_size=9)),
    st.builds(lambda number: Stored(message_with(number + 20), is_spilled=True), IDS),
    st.builds(lambda queue, place, number, count: Enqueued(queue, place, number, 5, count),
              st.integers(1, 3), IDS, IDS, st.integers(0, 2)),
    st.builds(Dequeued, IDS),
    st.builds(Discarded, IDS),
    st.builds(lambda number: Discarded(number + 20, is_spilled=True), IDS),
)  # fmt: skip
STREAMS = st.integers(1, 3)
CHANGES = st.lists(ENTITY_CHANGES | MESSAGE_CHANGES | MESSAGE_CHANGES, max_size=8)


def one_by_one(changes: Iterable[Recovered | EnqueuedRun]) -> list[Recovered]:
    """Return what is recovered in runs as ``recover`` yields it: queue entries by rising position."""
    others: list[Recovered] = []
    places: list[Enqueued] = []
    for change in changes:
        if isinstance(change, EnqueuedRun):
            places += change.each()
        elif isinstance(change, Enqueued):
            places.append(change)
        else:
            others.append(change)
    return [*others, *sorted(places, key=lambda place: place.position)]


class Listener:
    def __init__(self) -> None:
        self.watermark = Lsn(0)

    def on_durable(self, watermark: Lsn) -> None:
        self.watermark = watermark

    def on_refused(self, reason: str) -> None:
        raise AssertionError(reason)

    def on_set_aside(self, aside: SetAside) -> None:
        raise AssertionError(aside.reason)

    def on_stalled(self, reason: str) -> None:
        raise AssertionError(reason)

    def on_resumed(self) -> None:
        raise AssertionError("it never stalled")

    def on_failed(self, reason: str) -> None:
        raise AssertionError(reason)


class Engines(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.place = LmdbPlace()
        self.memory = MemoryStore()
        self.openings = 0
        self.reopen(lambda: None)

    def reopen(self, end: Callable[[], None]) -> None:
        end()
        self.memory = self.memory.reopened()
        self.lmdb: LmdbStore = self.place.open()
        self.listener = Listener()
        self.lmdb.listen(self.listener)
        self.appended = Lsn(0)
        self.openings += 1
        expected = list(self.memory.recover())
        found = list(self.lmdb.recover()) if self.openings % 2 else one_by_one(self.lmdb.recover_runs())
        assert places_in(found) == places_in(expected)
        assert sorted(map(repr, entities_in(found))) == sorted(map(repr, entities_in(expected)))
        assert segments_in(found) == segments_in(expected)
        assert len(found) == len(expected)
        self.segments = {
            stream: [part for part in segments_in(found) if part.stream_id == stream] for stream in (1, 2, 3)
        }

    @rule(changes=CHANGES)
    def append(self, changes: list[Change]) -> None:
        self.appended = self.lmdb.append(changes)
        assert self.memory.append(changes) == self.appended

    @rule(stream=STREAMS, sizes=st.lists(st.sampled_from([1, 100, 70_000]), max_size=6), seals=st.booleans())
    def append_to_stream(self, stream: int, sizes: list[int], seals: bool) -> None:
        """Append as the kernel does: in order, sealing one segment at a time."""
        parts = self.segments[stream] or [StreamSegment(stream, 0, 0, 0, 0, 0, is_sealed=False)]
        end = parts[-1].end + len(sizes)
        changes: list[Change] = [Put(queue_record(stream))]
        changes += [
            stream_message(stream, offset, size) for offset, size in zip(range(parts[-1].end, end), sizes, strict=True)
        ]
        parts[-1] = replace(parts[-1], end=end)
        if seals and parts[-1].first < end:
            parts[-1] = replace(parts[-1], is_sealed=True, first_ms=end, last_ms=end, size_bytes=9, bloom=b"bloom")
            changes.append(Sealed(parts[-1]))
            parts.append(StreamSegment(stream, end, end, 0, 0, 0, is_sealed=False))
        self.segments[stream] = parts
        self.append(changes)

    @rule(stream=STREAMS, count=st.integers(1, 2))
    def truncate(self, stream: int, count: int) -> None:
        sealed = [part for part in self.segments[stream] if part.is_sealed][:count]
        if sealed:
            self.segments[stream] = self.segments[stream][len(sealed) :]
            self.append([Truncated(stream, sealed[-1].end)])

    @rule(stream=STREAMS, truncates=st.booleans())
    def delete_stream(self, stream: int, truncates: bool) -> None:
        """Delete a stream's queue, with or without truncating the stream, as a crash might leave it."""
        self.append([Removed("queue", ("/", f"q{stream}")), *([Truncated(stream, EVERYTHING)] if truncates else [])])
        self.crash()

    @precondition(lambda self: self.listener.watermark == self.appended)
    @rule(stream=STREAMS, offset=st.integers(0, 60))
    def read_stream(self, stream: int, offset: int) -> None:
        """Read an existing stream. The store removes the remains of deleted ones at its own pace."""
        if self.segments[stream]:
            assert self.read_all(self.lmdb, stream, offset) == self.read_all(self.memory, stream, offset)

    def read_all(self, store: LmdbStore | MemoryStore, stream: int, offset: int) -> list[tuple[int, int, bytes, bytes]]:
        """Read a stream from an offset on, in small parts."""
        found: list[tuple[int, int, bytes, bytes]] = []
        while (data := store.stream_chunks(stream, offset, 100_000)) is not None:
            found += entries(data, offset)
            offset = found[-1][0] + 1
        return found

    @rule(ids=st.lists(st.integers(1, 34), max_size=5))
    def read(self, ids: list[int]) -> None:
        assert self.lmdb.messages(ids) == self.memory.messages(ids)

    @precondition(lambda self: self.listener.watermark < self.appended)
    @rule()
    def commit(self) -> None:
        self.place.pump(lambda: self.listener.watermark == self.appended)
        self.memory.commit()

    @rule()
    def crash(self) -> None:
        self.commit()
        self.reopen(self.place.crash)

    @rule()
    def restart(self) -> None:
        self.memory.close()
        self.reopen(self.lmdb.close)

    def teardown(self) -> None:
        self.place.close()


TestEngines = Engines.TestCase
TestEngines.settings = settings(max_examples=examples(60), stateful_step_count=25, deadline=None)
