"""The memory store commits on request only, unless it defers."""

from collections.abc import Callable

from gateway.kernel.journal.changes import Enqueued, Put, Stored
from gateway.testing.store_session import message_with, places_in, queue_record
from gateway_memory import MemoryStore
from tests.storage.listeners import RecordingListener


def listening(store: MemoryStore) -> RecordingListener:
    listener = RecordingListener()
    store.listen(listener)
    return listener


def test_nothing_is_durable_until_it_is_committed() -> None:
    store = MemoryStore()
    listener = listening(store)
    store.append([Put(queue_record(1))])
    assert listener.reports == []
    assert list(store.reopened().recover()) == []
    store.commit()
    assert listener.reports == [1]
    assert len(list(store.reopened().recover())) == 1


def test_committing_again_reports_nothing_new() -> None:
    store = MemoryStore()
    listener = listening(store)
    store.append([])
    store.commit()
    store.commit()
    assert listener.reports == [1]


def test_a_deferring_store_commits_several_appends_at_once() -> None:
    calls: list[Callable[[], None]] = []
    store = MemoryStore(calls.append)
    listener = listening(store)
    store.append([])
    store.append([])
    assert (len(calls), listener.reports) == (1, [])
    calls.pop()()
    assert listener.reports == [2]
    store.append([])
    assert len(calls) == 1


def test_a_stalled_store_commits_when_it_resumes() -> None:
    calls: list[Callable[[], None]] = []
    store = MemoryStore(calls.append)
    listener = listening(store)
    store.append([])
    store.stall("no space")
    calls.pop()()
    assert listener.reports == ["stalled: no space"]
    store.resume()
    calls.pop()()
    assert listener.reports == ["stalled: no space", "resumed", 1]


def test_a_failed_store_never_commits_again() -> None:
    store = MemoryStore()
    listener = listening(store)
    store.append([])
    store.fail("the disk died")
    store.commit()
    store.close()
    assert listener.reports == ["failed: the disk died"]


def test_a_stalled_store_that_is_closed_fails() -> None:
    store = MemoryStore()
    listener = listening(store)
    store.append([])
    store.stall("no space")
    store.close()
    assert listener.has("failed")
    assert listener.watermark == 0


def test_a_reopened_store_is_independent_of_the_one_it_came_from() -> None:
    store = MemoryStore()
    store.append([Put(queue_record(1)), Stored(message_with(1)), Enqueued(1, 1, 1, 0)])
    store.commit()
    after = store.reopened()
    store.append([Stored(message_with(2)), Enqueued(1, 2, 2, 0)])
    store.commit()
    assert [place[0] for place in places_in(after.recover())] == [1]
    assert after.messages([2]) == [None]
    assert after.highest_ids() == (1, 1)
