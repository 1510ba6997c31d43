"""A copy that is durable elsewhere is written in groups: what comes and goes within a group is never written."""

from collections.abc import Callable

import pytest

from gateway.kernel.journal.changes import (
    Change,
    Dequeued,
    Discarded,
    Enqueued,
    Lsn,
    Put,
    SetAside,
    Stored,
    Truncated,
)
from gateway.testing.store_session import StoreSession, message_with, places_in, queue_record
from gateway.testing.store_streams import stream_message
from gateway_lmdb.append_group import MOST_BYTES, MOST_CHANGES, WINDOW_S, AppendGroup
from gateway_lmdb.staged import Append
from tests.storage.places import GroupedLmdbPlace


class Handed:
    """A group, the appends that it handed over, and the calls that it scheduled."""

    def __init__(self) -> None:
        self.appends: list[Append] = []
        self.calls: list[tuple[float, Callable[[], None]]] = []
        self.group = AppendGroup(self.appends.append, lambda delay_s, call: self.calls.append((delay_s, call)))
        self._lsn = 0

    def add(self, *changes: Change) -> None:
        self._lsn += 1
        self.group.add(Append(Lsn(self._lsn), changes))

    @property
    def positions(self) -> list[int]:
        return [append.lsn for append in self.appends]


def test_the_appends_of_a_window_are_handed_over_as_one() -> None:
    handed = Handed()
    first, second = Put(queue_record(1)), Put(queue_record(2))
    handed.add(first)
    handed.add(second)
    assert handed.appends == []
    [(delay_s, ended)] = handed.calls
    assert delay_s == WINDOW_S
    ended()
    [append] = handed.appends
    assert (append.lsn, list(append.changes)) == (2, [first, second])


def test_a_new_window_begins_with_the_next_append() -> None:
    handed = Handed()
    handed.add(Put(queue_record(1)))
    handed.calls.pop()[1]()
    assert handed.calls == []
    handed.add(Put(queue_record(2)))
    handed.calls.pop()[1]()
    assert handed.positions == [1, 2]


def test_a_group_has_limited_bytes() -> None:
    handed = Handed()
    half = b"x" * (MOST_BYTES // 2)
    handed.add(Stored(message_with(1, half)))
    assert handed.positions == []
    handed.add(Stored(message_with(2, half)))
    assert handed.positions == [2]
    handed.add(Stored(message_with(3, half)))
    assert handed.positions == [2]


def test_a_group_has_limited_changes() -> None:
    handed = Handed()
    handed.add(*(Dequeued(position) for position in range(MOST_CHANGES - 1)))
    assert handed.positions == []
    handed.add(Dequeued(MOST_CHANGES))
    assert handed.positions == [2]


@pytest.mark.parametrize(
    "change",
    [stream_message(1, 0), Truncated(1, 5), SetAside("queue", ("/", "q"), "spoilt")],
    ids=lambda change: type(change).__name__,
)
def test_some_changes_do_not_wait_nor_does_what_is_before_them(change: Change) -> None:
    handed = Handed()
    handed.add(Put(queue_record(1)))
    handed.add(change)
    assert handed.positions == [2]


def test_an_empty_group_is_not_handed_over() -> None:
    handed = Handed()
    handed.group.hand_over()
    handed.add(stream_message(1, 0))
    handed.group.hand_over()
    assert handed.positions == [1]


def test_a_message_that_comes_and_goes_within_a_window_is_never_written() -> None:
    place = GroupedLmdbPlace()
    try:
        session = StoreSession(place)
        session.append(Put(queue_record(1)))
        session.settle()
        assert place.store is not None
        before = place.store.commit_times.written_bytes
        session.append(Stored(message_with(1, b"x" * 10_000)), Enqueued(1, 1, 1, 0))
        session.append(Dequeued(1), Discarded(1))
        session.settle()
        assert place.store.commit_times.written_bytes == before
        assert list(place.store.durable_records({}, 9, 9)) == [Put(queue_record(1))]
    finally:
        place.close()


def test_closing_writes_the_group() -> None:
    place = GroupedLmdbPlace()
    try:
        session = StoreSession(place)
        session.append(Put(queue_record(1)), Stored(message_with(1)), Enqueued(1, 1, 1, 0))
        assert place.store is not None
        place.store.close()
        session.open()
        assert len(places_in(session.found)) == 1
    finally:
        place.close()
