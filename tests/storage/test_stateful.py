"""Whatever is appended, and whenever it crashes, the LMDB engine holds what the one in memory does."""

from collections.abc import Callable

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from gateway.kernel.changes import Change, Dequeued, Discarded, Enqueued, Lsn, Put, Removed, Stored
from gateway.testing.store_session import entities_in, message_with, places_in, queue_record, vhost_record
from gateway_lmdb import LmdbStore
from gateway_memory import MemoryStore
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
CHANGES = st.lists(ENTITY_CHANGES | MESSAGE_CHANGES | MESSAGE_CHANGES, max_size=8)


class Listener:
    def __init__(self) -> None:
        self.watermark = Lsn(0)

    def on_durable(self, watermark: Lsn) -> None:
        self.watermark = watermark

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
        self.reopen(lambda: None)

    def reopen(self, end: Callable[[], None]) -> None:
        end()
        self.memory = self.memory.reopened()
        self.lmdb: LmdbStore = self.place.open()
        self.listener = Listener()
        self.lmdb.listen(self.listener)
        self.appended = Lsn(0)
        expected, found = list(self.memory.recover()), list(self.lmdb.recover())
        assert places_in(found) == places_in(expected)
        assert sorted(map(repr, entities_in(found))) == sorted(map(repr, entities_in(expected)))
        assert len(found) == len(expected)

    @rule(changes=CHANGES)
    def append(self, changes: list[Change]) -> None:
        self.appended = self.lmdb.append(changes)
        assert self.memory.append(changes) == self.appended

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
TestEngines.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
