"""A replicated store keeps the contract of a store, and its data survive the loss of the node.

ADR 0025, laws 1 and 6.
"""

from collections.abc import Callable
from functools import partial
from itertools import count, islice

import pytest

from gateway.cluster.replication import checkpoint
from gateway.kernel.journal.changes import (
    MESSAGE,
    Dequeued,
    Discarded,
    Enqueued,
    Put,
    Removed,
    Sealed,
    SetAside,
    Stored,
    Truncated,
)
from gateway.kernel.messages.chunks import entries
from gateway.testing.store import STORE_CHECKS, StorePlace
from gateway.testing.store_session import (
    StoreSession,
    entities_in,
    message_with,
    places_in,
    queue_record,
    segments_in,
    vhost_record,
)
from gateway.testing.store_streams import read_all, segment, stream_message
from gateway_lmdb import recovery
from gateway_memory import MemoryStore
from gateway_memory.cluster import MemoryQueueLogs
from tests.cluster.replicated_places import LOG, LmdbReplicatedPlace, ReplicatedPlace

#: These have tests of their own: a close is preceded by ``drain``, and the log keeps what is set aside on one node.
LEFT_OUT = {
    "_closing_makes_everything_durable",
    "_quarantined_records_are_reported_at_each_start_and_keep_their_messages",
}

#: LMDB applies what is appended twice once, but not in one batch, as a copy is built. A log has each append once.
NOT_IN_ONE_BATCH = (LmdbReplicatedPlace, "_appending_to_a_stream_twice_is_the_same_as_once")


@pytest.mark.parametrize(
    ("new_place", "check"),
    [
        pytest.param(place, check, id=f"{place.__name__}-{check.__name__.strip('_')}")
        for place in (ReplicatedPlace, LmdbReplicatedPlace)
        for check in STORE_CHECKS
        if check.__name__ not in LEFT_OUT and (place, check.__name__) != NOT_IN_ONE_BATCH
    ],
)
def test_it_keeps_the_contract_of_a_store(
    check: Callable[[StorePlace], None], new_place: Callable[[], ReplicatedPlace]
) -> None:
    place = new_place()
    try:
        check(place)
    finally:
        place.close()


def test_draining_waits_until_everything_is_in_the_log() -> None:
    place = ReplicatedPlace()
    session = StoreSession(place)
    drained: list[int] = []
    for number in range(1, 50):
        session.append(Stored(message_with(number)), Enqueued(1, number, number, 0))
    session.append(Put(queue_record(1)))
    session.store.drain(lambda: drained.append(session.watermark))
    assert drained == []
    place.pump(lambda: bool(drained))
    assert drained == [50]
    place.crash()
    session.open()
    assert len(places_in(session.found)) == 49


def test_a_message_that_is_consumed_while_the_log_is_busy_is_not_written() -> None:
    place = ReplicatedPlace()
    session = StoreSession(place)
    session.append(Put(queue_record(1)))
    written = sum(map(len, stored_batches(place)))
    session.append(Stored(message_with(1, b"x" * 10_000)), Enqueued(1, 1, 1, 0))
    session.append(Dequeued(1), Discarded(1))
    session.settle()
    assert sum(map(len, stored_batches(place))) - written < 2_000


def test_a_deposed_store_reports_nothing_more() -> None:
    place = ReplicatedPlace()
    session = StoreSession(place)
    session.append(Put(queue_record(1)))
    session.settle()
    failed: list[str] = []
    session.on_failed = failed.append  # type: ignore[method-assign]
    store, place.store = session.store, None
    place.open()
    store.append([Put(queue_record(2))])
    place.pump(lambda: bool(failed))
    assert "another node" in failed[0]
    assert session.watermark == 1
    assert [entity.name for entity in entities_in(list(place.open().recover()))] == ["q1"]


def test_a_checkpoint_removes_older_records_and_loses_nothing() -> None:
    place = ReplicatedPlace()
    session = StoreSession(place)
    session.append(Put(vhost_record("v")), Put(queue_record(1)))
    for number in range(1, 400):
        session.append(Stored(message_with(number, b"body %d" % number)), Enqueued(1, number, number, 7))
        session.settle()
        if number > 20:
            session.append(Dequeued(number - 20), Discarded(number - 20))
    before = len(stored_batches(place))
    place.store.checkpoint()
    place.pump(lambda: len(stored_batches(place)) < before / 10)
    place.crash()
    session.open()
    assert [each[0] for each in places_in(session.found)] == list(range(380, 400))
    assert session.store.messages([379, 380]) == [None, stored_content(380)]


def test_a_checkpoint_ends_although_more_is_published_than_it_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "MOST_RECORDS", 1)
    place = LmdbReplicatedPlace()
    place.logs = MemoryQueueLogs(place.engine.clock, latency_s=0.02)
    try:
        session = StoreSession(place)
        session.append(Put(queue_record(1)))
        numbers = count(1)

        def publish(most: int) -> None:
            for number in islice(numbers, most):
                session.append(Stored(message_with(number)), Enqueued(1, number, number, 7))
            session.settle()

        publish(20)
        place.store.checkpoint()
        for _ in range(60):
            publish(20)
        assert place.store._checkpoint is None, "the checkpoint follows the publishers"
        session.open()
        assert len(places_in(session.found)) == 1220
    finally:
        place.close()


def test_a_checkpoint_ends_although_more_is_declared_than_it_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "MOST_RECORDS", 1)
    monkeypatch.setattr(recovery, "_ENTITIES", 10)  # else it takes a thousand to notice that more came
    place = LmdbReplicatedPlace()
    place.logs = MemoryQueueLogs(place.engine.clock, latency_s=0.02)
    try:
        session = StoreSession(place)
        names = [f"{number:06}" for number in range(1220)]

        def declare(some: list[str]) -> None:
            for name in some:
                session.append(Put(vhost_record(name)))
            session.settle()

        declare(names[:20])
        place.store.checkpoint()
        for first in range(20, 1220, 20):
            declare(names[first : first + 20])
        assert place.store._checkpoint is None, "the checkpoint follows those who declare"
        session.open()
        assert sorted(entity.name for entity in entities_in(session.found)) == names
    finally:
        place.close()


def test_a_new_leader_knows_what_the_log_has_since_its_last_checkpoint() -> None:
    place = ReplicatedPlace()
    session = StoreSession(place)
    session.append(Put(queue_record(1)))
    session.append(Stored(message_with(1, b"x" * 5000)), Enqueued(1, 1, 1, 7))
    session.settle()
    grown = place.store.growth.bytes
    assert grown > 5000
    session.open()
    assert (place.store.growth.bytes, place.store.growth.checkpoint_bytes) == (grown, 0)
    place.store.checkpoint()
    place.pump(lambda: place.store._checkpoint is None)
    assert place.store.growth.bytes == 0
    assert place.store.growth.checkpoint_bytes > 5000
    session.append(Put(queue_record(2)))
    session.settle()
    kept = place.store.growth
    session.open()
    growth = place.store.growth
    assert (growth.bytes, growth.records, growth.checkpoint_bytes) == (kept.bytes, 1, kept.checkpoint_bytes)


@pytest.mark.parametrize("commit_s", [0.0005, 0.02], ids=["the copy is up to date", "the copy is behind"])
def test_what_changes_during_a_checkpoint_is_as_the_last_step_says(commit_s: float) -> None:
    place = ReplicatedPlace(0.0005, commit_s)
    session = StoreSession(place)
    session.append(Put(queue_record(1)), Put(vhost_record("old", "before")), Put(vhost_record("kept", "before")))
    for number in range(1, 3000):
        session.append(Stored(message_with(number, b"x" * 300)), Enqueued(1, number, number, 7))
    session.settle()
    place.store.checkpoint()
    for number in range(1, 3000, 2):  # the pieces of the checkpoint are older than these
        session.append(Dequeued(number), Discarded(number))
        if number % 100 == 1:
            place.engine.clock.advance(0.0005)
    session.append(Removed("vhost", ("old",)), Put(vhost_record("kept", "after")))
    session.settle()
    place.engine.clock.advance(3)
    place.crash()
    session.open()
    assert [each[0] for each in places_in(session.found)] == list(range(2, 3000, 2))
    vhosts = {entity.name: entity.description for entity in entities_in(session.found) if entity.kind == "vhost"}
    assert vhosts == {"kept": "after"}


def test_a_message_that_a_piece_has_is_removed_although_its_step_was_not_in_the_log_yet() -> None:
    place = ReplicatedPlace(latency_s=0.01, commit_s=0.0005)
    session = StoreSession(place)
    session.append(Put(queue_record(1)))
    session.settle()
    place.store.checkpoint()
    place.engine.clock.advance(0)
    session.append(Put(vhost_record("v")))  # occupies the log
    session.append(Stored(message_with(1)), Enqueued(1, 1, 1, 7))
    place.engine.clock.advance(0.0115)  # the copy has the message, a piece is written
    session.append(Dequeued(1), Discarded(1))
    session.settle()
    place.engine.clock.advance(1)
    place.crash()
    session.open()
    assert places_in(session.found) == []
    assert session.store.messages([1]) == [None]


def test_an_unfinished_checkpoint_has_no_effect() -> None:
    place = ReplicatedPlace()
    session = StoreSession(place)
    session.append(Put(queue_record(1)))
    for number in range(1, 2000):
        session.append(Stored(message_with(number, b"x" * 500)), Enqueued(1, number, number, 7))
    session.settle()
    place.store.checkpoint()
    place.engine.clock.advance(0.003)
    session.append(*(Dequeued(number) for number in range(1, 1999)))
    session.settle()
    place.crash()
    session.open()
    assert [each[0] for each in places_in(session.found)] == [1999]


def stored_batches(place: ReplicatedPlace) -> list[bytes]:
    return list(place.logs._batches[LOG].values())


def stored_content(number: int) -> object:
    store = MemoryStore()
    store.append([Stored(message_with(number, b"body %d" % number))])
    return store.messages([number])[0]


@pytest.mark.parametrize("new_place", [partial(ReplicatedPlace, 0.0005, 0.002), LmdbReplicatedPlace])
def test_a_stream_survives_a_checkpoint_and_the_appends_during_it(new_place: Callable[[], ReplicatedPlace]) -> None:
    place = new_place()
    session = StoreSession(place)
    session.append(Put(queue_record(1)), Put(queue_record(2)))
    session.append(*(stream_message(1, offset, 300) for offset in range(1000)))
    session.append(Sealed(segment(1, 0, 500)), Truncated(1, 0))
    session.append(*(stream_message(2, offset, 10) for offset in range(10)), Sealed(segment(2, 0, 10)))
    session.append(stream_message(2, 10), Truncated(2, 10))
    session.settle()
    place.store.checkpoint()
    for offset in range(1000, 1300):
        session.append(stream_message(1, offset, 300))
        place.engine.clock.advance(0.0005)
    session.append(Sealed(segment(1, 500, 1300)), stream_message(1, 1300), Truncated(1, 500))
    session.settle()
    place.pump(lambda: place.store._checkpoint is None)
    assert len(stored_batches(place)) < 320
    for _ in range(2):
        place.crash()
        session.open()
        assert read_all(session, 1, 500) == list(range(500, 1301))
        assert read_all(session, 2, 10) == [10]
        assert [(each.first, each.end) for each in segments_in(session.found) if each.stream_id == 1] == [
            (500, 1300),
            (1300, 1301),
        ]
    place.close()


def test_a_reader_of_a_stream_does_not_see_what_only_the_copy_has() -> None:
    place = ReplicatedPlace(latency_s=0.01, commit_s=0.0005)
    session = StoreSession(place)
    session.append(Put(queue_record(1)), *(stream_message(1, offset) for offset in range(3)))
    session.settle()
    session.append(*(stream_message(1, offset) for offset in range(3, 6)))
    place.engine.clock.advance(0.002)
    assert [at for at, *_ in entries(place.store.local.stream_chunks(1, 1, 10_000))] == list(range(1, 6))
    assert read_all(session, 1, 1) == [1, 2]
    assert place.store.stream_chunks(1, 3, 10_000) is None
    session.settle()
    assert read_all(session, 1, 1) == [1, 2, 3, 4, 5]


def test_a_step_is_reported_before_the_copy_has_written_it() -> None:
    place = ReplicatedPlace(commit_s=5.0)
    session = StoreSession(place)
    session.append(Put(queue_record(1)), Stored(message_with(1)), Enqueued(1, 1, 1, 0))
    place.engine.clock.advance(0.01)
    assert session.watermark == 1
    assert session.store.messages([1]) != [None]


def test_a_step_of_a_stream_is_reported_once_the_copy_has_written_it_and_so_are_later_steps() -> None:
    place = ReplicatedPlace(commit_s=5.0)
    session = StoreSession(place)
    session.append(Put(queue_record(1)))
    session.append(stream_message(1, 0))
    session.append(Put(queue_record(2)))
    place.engine.clock.advance(0.01)
    assert session.watermark == 1
    place.engine.clock.advance(5)
    assert session.watermark == 3
    assert read_all(session, 1, 0) == [0]


def test_what_is_set_aside_on_one_node_is_there_on_the_next_one() -> None:
    place = ReplicatedPlace()
    session = StoreSession(place)
    session.append(Put(queue_record(1)), Stored(message_with(1)), Enqueued(1, 1, 1, 0))
    session.append(SetAside("queue", ("/", "q1"), "spoilt", 1), SetAside(MESSAGE, (1,), "torn"))
    place.store.checkpoint()
    session.settle()
    place.engine.clock.advance(1)
    place.crash()
    session.open()
    assert entities_in(session.found) == [queue_record(1)]
    assert session.store.messages([1]) != [None]


@pytest.mark.parametrize("new_place", [partial(ReplicatedPlace, 0.0005, 0.002), LmdbReplicatedPlace])
def test_a_stream_is_whole_although_an_append_came_right_before_the_mark_of_a_checkpoint(
    new_place: Callable[[], ReplicatedPlace],
) -> None:
    place = new_place()
    session = StoreSession(place)
    session.append(Put(queue_record(1)))
    for offset in range(9):
        session.append(stream_message(1, offset))
        session.settle()
    session.append(stream_message(1, 9))
    session.append(stream_message(1, 10))
    place.store.checkpoint()  # if the log kept the last append, a replay would begin with it
    session.settle()
    place.pump(lambda: place.store._checkpoint is None)
    session.settle()
    assert len(stored_batches(place)) < 8
    place.crash()
    session.open()
    assert read_all(session, 1, 0) == list(range(11))
    place.close()
