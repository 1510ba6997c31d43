"""Packet identifiers of one session: what is under way in both directions, across connections and restarts."""

from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from gateway.kernel.journal.changes import Change, Put, Removed
from gateway.kernel.journal.records import HandshakeRecord
from gateway.kernel.sessions.qos2_state import LAST_ID, Qos2State
from tests.effort import examples


class Book:
    """What a store would keep of the handshakes of one session."""

    def __init__(self) -> None:
        self.kept: dict[tuple[object, ...], HandshakeRecord] = {}

    def record(self, change: Change) -> None:
        if isinstance(change, Put):
            assert isinstance(change.entity, HandshakeRecord)
            self.kept[change.entity.key] = change.entity
        else:
            assert isinstance(change, Removed)
            assert change.kind == HandshakeRecord.kind
            del self.kept[change.key]  # nothing is removed that is not there

    @property
    def under_way(self) -> dict[tuple[bool, int], int]:
        """Direction and identifier, to position."""
        return {(record.is_incoming, record.packet_id): record.position for record in self.kept.values()}


@pytest.fixture
def book() -> Book:
    return Book()


@pytest.fixture
def qos2_state(book: Book) -> Qos2State:
    return Qos2State("/", "sensor", book.record)


# ---- A publish of the client -----------------------------------------------------------------------------------------


def test_a_publish_is_the_first_of_its_identifier_until_that_is_released(qos2_state: Qos2State, book: Book) -> None:
    assert qos2_state.receive(7)
    assert not qos2_state.receive(7)
    assert book.under_way == {(True, 7): 0}
    assert qos2_state.release(7)
    assert book.under_way == {}
    assert not qos2_state.release(7)
    assert qos2_state.receive(7)


def test_identifiers_of_the_two_directions_have_nothing_to_do_with_each_other(
    qos2_state: Qos2State, book: Book
) -> None:
    qos2_state.begin(7, 1)
    assert qos2_state.receive(7)
    qos2_state.proceed(7)
    assert qos2_state.release(7)
    assert qos2_state.conclude(7)
    assert book.under_way == {}


# ---- A delivery to the client ----------------------------------------------------------------------------------------


def test_a_delivery_is_recorded_in_each_of_its_states(qos2_state: Qos2State, book: Book) -> None:
    qos2_state.begin(1, 42)
    assert book.under_way == {(False, 1): 42}
    qos2_state.proceed(1)
    assert book.under_way == {(False, 1): 0}
    assert qos2_state.conclude(1)
    assert book.under_way == {}


def test_only_what_was_released_can_be_concluded(qos2_state: Qos2State) -> None:
    assert not qos2_state.conclude(1)
    qos2_state.begin(1, 42)
    assert not qos2_state.conclude(1)
    qos2_state.proceed(1)
    assert qos2_state.conclude(1)
    assert not qos2_state.conclude(1)


def test_a_delivery_that_was_refused_is_forgotten(qos2_state: Qos2State, book: Book) -> None:
    qos2_state.begin(1, 42)
    qos2_state.abort(1)
    assert book.under_way == {}


# ---- Identifiers -----------------------------------------------------------------------------------------------------


def test_identifiers_are_given_in_turn_and_begin_again_after_the_last(qos2_state: Qos2State) -> None:
    assert [qos2_state.next_id(()) for _ in range(3)] == [1, 2, 3]
    for _ in range(LAST_ID - 3):
        last = qos2_state.next_id(())
    assert last == LAST_ID
    assert qos2_state.next_id(()) == 1


def test_an_identifier_in_use_is_not_given(qos2_state: Qos2State) -> None:
    qos2_state.begin(2, 42)
    qos2_state.proceed(2)
    qos2_state.remember(43, 3, 1)
    assert [qos2_state.next_id({1}), qos2_state.next_id({1})] == [4, 5]


def test_one_that_is_free_again_is_given_again(qos2_state: Qos2State) -> None:
    qos2_state.proceed(1)
    qos2_state.conclude(1)
    assert qos2_state.next_id(()) == 1


# ---- From one connection to the next ---------------------------------------------------------------------------------


def test_a_delivery_left_open_is_recalled_once_under_its_identifier(qos2_state: Qos2State) -> None:
    qos2_state.remember(42, 7, 2)
    qos2_state.remember(43, 8, 1)
    assert qos2_state.recall(42) == (7, 2)
    assert qos2_state.recall(42) is None
    assert qos2_state.recall(43) == (8, 1)


def test_deliveries_of_messages_that_left_their_queue_are_released(qos2_state: Qos2State, book: Book) -> None:
    qos2_state.begin(7, 42)
    qos2_state.remember(42, 7, 2)
    qos2_state.remember(43, 8, 1)
    qos2_state.remember(45, 9, 2)
    assert qos2_state.give_up_before(44) == [7]
    assert list(qos2_state.remembered) == [45]
    assert book.under_way == {(False, 7): 0}
    assert qos2_state.conclude(7)


def test_a_session_that_does_not_last_records_nothing() -> None:
    passing = Qos2State("/", "sensor", None)
    assert not passing.is_durable
    assert passing.receive(1)
    passing.begin(1, 42)
    passing.proceed(1)
    assert passing.conclude(1)
    assert passing.release(1)


# ---- Whatever the order ----------------------------------------------------------------------------------------------

IDS: Final = st.integers(1, 6)


class HandshakeMachine(RuleBasedStateMachine):
    """A session's handshakes in every order there is, and a book that a restart could be made from at any moment."""

    def __init__(self) -> None:
        super().__init__()
        self.book = Book()
        self.qos2_state = Qos2State("/", "sensor", self.book.record)
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
        """What was in flight is open now, for whoever connects next."""
        self.lose_the_connection()
        records = list(self.book.kept.values())
        self.qos2_state = Qos2State("/", "sensor", self.book.record)
        for record in records:
            self.qos2_state.install(record)
        assert self.qos2_state.remembered == {position: (packet_id, 2) for position, packet_id in self.open.items()}

    @invariant()
    def the_book_says_what_is_under_way(self) -> None:
        expected = {(True, packet_id): 0 for packet_id in self.received}
        expected |= {(False, packet_id): 0 for packet_id in self.releasing}
        expected |= {(False, packet_id): position for packet_id, position in self.in_flight.items()}
        expected |= {(False, packet_id): position for position, packet_id in self.open.items()}
        assert self.book.under_way == expected

    def teardown(self) -> None:
        """The end of the session leaves nothing, once its connection is gone."""
        self.lose_the_connection()
        self.qos2_state.forget_all()
        assert self.book.under_way == {}


TestHandshakeMachine = HandshakeMachine.TestCase
TestHandshakeMachine.settings = settings(max_examples=examples(60), stateful_step_count=40, deadline=None)


@given(st.sets(IDS), st.sets(IDS))
def test_whatever_was_recorded_comes_back(received: set[int], releasing: set[int]) -> None:
    book = Book()
    earlier = Qos2State("/", "sensor", book.record)
    for packet_id in received:
        earlier.receive(packet_id)
    for packet_id in releasing:
        earlier.proceed(packet_id)
    later = Qos2State("/", "sensor", book.record)
    for record in book.kept.values():
        later.install(record)
    assert (later.received, set(later.releasing)) == (received, releasing)
