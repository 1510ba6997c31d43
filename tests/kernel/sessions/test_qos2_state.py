"""QoS 2 state of one session: packet identifiers in use in both directions, across connections and restarts."""

from collections import deque
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from gateway.kernel.budget import PendingWork
from gateway.kernel.journal.changes import Change, Put, Removed
from gateway.kernel.journal.records.sessions import HandshakeRecord
from gateway.kernel.sessions.qos2_state import LAST_ID, Qos2State
from tests.effort import examples


class RecordLog:
    """The handshake records of one session in a store."""

    def __init__(self) -> None:
        self.records: dict[tuple[object, ...], HandshakeRecord] = {}

    def record(self, change: Change) -> None:
        if isinstance(change, Put):
            assert isinstance(change.entity, HandshakeRecord)
            self.records[change.entity.key] = change.entity
        else:
            assert isinstance(change, Removed)
            assert change.kind == HandshakeRecord.kind
            del self.records[change.key]  # raises KeyError if the record does not exist

    @property
    def in_progress(self) -> dict[tuple[bool, int], int]:
        """Direction and packet identifier, to position."""
        return {(record.is_incoming, record.packet_id): record.position for record in self.records.values()}


@pytest.fixture
def record_log() -> RecordLog:
    return RecordLog()


@pytest.fixture
def qos2_state(record_log: RecordLog) -> Qos2State:
    return Qos2State("/", "sensor", record_log.record)


# ---- Publishes of the client -----------------------------------------------------------------------------------------


def test_a_publish_is_a_duplicate_until_its_identifier_is_released(
    qos2_state: Qos2State, record_log: RecordLog
) -> None:
    assert qos2_state.receive(7)
    assert not qos2_state.receive(7)
    assert record_log.in_progress == {(True, 7): 0}
    assert qos2_state.release(7)
    assert record_log.in_progress == {}
    assert not qos2_state.release(7)
    assert qos2_state.receive(7)


def test_identifiers_of_the_two_directions_are_independent(qos2_state: Qos2State, record_log: RecordLog) -> None:
    qos2_state.begin(7, 1)
    assert qos2_state.receive(7)
    qos2_state.proceed(7)
    assert qos2_state.release(7)
    assert qos2_state.conclude(7)
    assert record_log.in_progress == {}


# ---- Deliveries to the client ----------------------------------------------------------------------------------------


def test_a_delivery_is_recorded_in_each_of_its_states(qos2_state: Qos2State, record_log: RecordLog) -> None:
    qos2_state.begin(1, 42)
    assert record_log.in_progress == {(False, 1): 42}
    qos2_state.proceed(1)
    assert record_log.in_progress == {(False, 1): 0}
    assert qos2_state.conclude(1)
    assert record_log.in_progress == {}


def test_only_a_released_delivery_can_be_concluded(qos2_state: Qos2State) -> None:
    assert not qos2_state.conclude(1)
    qos2_state.begin(1, 42)
    assert not qos2_state.conclude(1)
    qos2_state.proceed(1)
    assert qos2_state.conclude(1)
    assert not qos2_state.conclude(1)


def test_an_aborted_delivery_is_removed(qos2_state: Qos2State, record_log: RecordLog) -> None:
    qos2_state.begin(1, 42)
    qos2_state.abort(1)
    assert record_log.in_progress == {}


# ---- Identifiers -----------------------------------------------------------------------------------------------------


def test_identifiers_are_assigned_in_order_and_wrap_around(qos2_state: Qos2State) -> None:
    assert [qos2_state.next_id(()) for _ in range(3)] == [1, 2, 3]
    for _ in range(LAST_ID - 3):
        last = qos2_state.next_id(())
    assert last == LAST_ID
    assert qos2_state.next_id(()) == 1


def test_an_identifier_in_use_is_not_assigned(qos2_state: Qos2State) -> None:
    qos2_state.begin(2, 42)
    qos2_state.proceed(2)
    qos2_state.remember(43, 3, 1)
    assert [qos2_state.next_id({1}), qos2_state.next_id({1})] == [4, 5]


def test_a_free_identifier_is_assigned_again(qos2_state: Qos2State) -> None:
    qos2_state.proceed(1)
    qos2_state.conclude(1)
    assert qos2_state.next_id(()) == 1


# ---- Across connections ----------------------------------------------------------------------------------------------


def test_an_open_delivery_is_recalled_once_with_its_identifier(qos2_state: Qos2State) -> None:
    qos2_state.remember(42, 7, 2)
    qos2_state.remember(43, 8, 1)
    assert qos2_state.recall(42) == (7, 2)
    assert qos2_state.recall(42) is None
    assert qos2_state.recall(43) == (8, 1)


def test_deliveries_of_removed_messages_are_released(qos2_state: Qos2State, record_log: RecordLog) -> None:
    qos2_state.begin(7, 42)
    qos2_state.remember(42, 7, 2)
    qos2_state.remember(43, 8, 1)
    qos2_state.remember(45, 9, 2)
    assert qos2_state.give_up_before(44) == [7]
    assert list(qos2_state.remembered) == [45]
    assert record_log.in_progress == {(False, 7): 0}
    assert qos2_state.conclude(7)


def test_a_transient_session_records_nothing() -> None:
    transient = Qos2State("/", "sensor", None)
    assert not transient.is_durable
    assert transient.receive(1)
    transient.begin(1, 42)
    transient.proceed(1)
    assert transient.conclude(1)
    assert transient.release(1)


# ---- Model -----------------------------------------------------------------------------------------------------------

IDS: Final = st.integers(1, 6)


class HandshakeMachine(RuleBasedStateMachine):
    """A session's handshakes in any order, with the records for a restart at any time."""

    def __init__(self) -> None:
        super().__init__()
        self.record_log = RecordLog()
        self.qos2_state = Qos2State("/", "sensor", self.record_log.record)
        self.position = 0
        self.received: set[int] = set()
        self.in_flight: dict[int, int] = {}
        self.open: dict[int, int] = {}
        self.releasing: set[int] = set()

    @rule(packet_id=IDS)
    def receive(self, packet_id: int) -> None:
        assert self.qos2_state.receive(packet_id) == (packet_id not in self.received)
        self.received.add(packet_id)

    @rule(packet_id=IDS)
    def release(self, packet_id: int) -> None:
        assert self.qos2_state.release(packet_id) == (packet_id in self.received)
        self.received.discard(packet_id)

    @rule()
    def begin(self) -> None:
        packet_id = self.qos2_state.next_id(self.in_flight)
        assert packet_id not in {*self.in_flight, *self.open.values(), *self.releasing}
        self.position += 1
        self.qos2_state.begin(packet_id, self.position)
        self.in_flight[packet_id] = self.position

    @precondition(lambda self: self.in_flight)
    @rule(data=st.data())
    def proceed(self, data: st.DataObject) -> None:
        packet_id = data.draw(st.sampled_from(sorted(self.in_flight)))
        del self.in_flight[packet_id]
        self.qos2_state.proceed(packet_id)
        self.releasing.add(packet_id)

    @precondition(lambda self: self.in_flight)
    @rule(data=st.data())
    def abort(self, data: st.DataObject) -> None:
        packet_id = data.draw(st.sampled_from(sorted(self.in_flight)))
        del self.in_flight[packet_id]
        self.qos2_state.abort(packet_id)

    @rule(packet_id=IDS)
    def conclude(self, packet_id: int) -> None:
        assert self.qos2_state.conclude(packet_id) == (packet_id in self.releasing)
        self.releasing.discard(packet_id)

    @rule()
    def lose_the_connection(self) -> None:
        for packet_id, position in self.in_flight.items():
            self.qos2_state.remember(position, packet_id, 2)
            self.open[position] = packet_id
        self.in_flight.clear()

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def send_again(self, data: st.DataObject) -> None:
        position = data.draw(st.sampled_from(sorted(self.open)))
        packet_id = self.open.pop(position)
        assert self.qos2_state.recall(position) == (packet_id, 2)
        self.in_flight[packet_id] = position

    @rule(data=st.data())
    def send_a_later_one(self, data: st.DataObject) -> None:
        position = data.draw(st.integers(0, self.position + 1))
        given_up = {packet_id for kept, packet_id in self.open.items() if kept < position}
        assert set(self.qos2_state.give_up_before(position)) == given_up
        self.releasing |= given_up
        self.open = {kept: packet_id for kept, packet_id in self.open.items() if kept >= position}

    @rule()
    def restart(self) -> None:
        """Restart: deliveries in flight are open for the next connection."""
        self.lose_the_connection()
        records = list(self.record_log.records.values())
        self.qos2_state = Qos2State("/", "sensor", self.record_log.record)
        for record in records:
            self.qos2_state.install(record)
        assert self.qos2_state.remembered == {position: (packet_id, 2) for position, packet_id in self.open.items()}

    @invariant()
    def records_match_the_model(self) -> None:
        expected = {(True, packet_id): 0 for packet_id in self.received}
        expected |= {(False, packet_id): 0 for packet_id in self.releasing}
        expected |= {(False, packet_id): position for packet_id, position in self.in_flight.items()}
        expected |= {(False, packet_id): position for position, packet_id in self.open.items()}
        assert self.record_log.in_progress == expected

    def teardown(self) -> None:
        """Check that the end of the session leaves no record."""
        self.lose_the_connection()
        deque(self.qos2_state.forgetting(), maxlen=0)
        assert self.record_log.in_progress == {}


TestHandshakeMachine = HandshakeMachine.TestCase
TestHandshakeMachine.settings = settings(max_examples=examples(60), stateful_step_count=40, deadline=None)


@given(st.sets(IDS), st.sets(IDS))
def test_recorded_state_is_restored(received: set[int], releasing: set[int]) -> None:
    record_log = RecordLog()
    earlier = Qos2State("/", "sensor", record_log.record)
    for packet_id in received:
        earlier.receive(packet_id)
    for packet_id in releasing:
        earlier.proceed(packet_id)
    later = Qos2State("/", "sensor", record_log.record)
    for record in record_log.records.values():
        later.install(record)
    assert (set(later.received), set(later.releasing)) == (received, releasing)


def test_identifiers_of_one_session_are_not_those_of_another() -> None:
    """Sessions without identifiers share their empty dictionaries."""
    busy, idle = Qos2State("/", "busy", None), Qos2State("/", "idle", None)
    busy.receive(1)
    busy.proceed(2)
    busy.remember(3, 4, 1)
    busy.receive_with(5, PendingWork())
    assert (busy.count, len(busy.publishing)) == (4, 1)
    for each in (idle, Qos2State("/", "late", None)):
        assert (each.count, len(each.publishing)) == (0, 0)
    busy.publishing.clear()
    assert (list(busy.received), list(busy.releasing), list(busy.remembered)) == ([1, 5], [2], [3])
