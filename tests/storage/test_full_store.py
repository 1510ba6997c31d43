"""A full store can delete messages."""

import random
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Semaphore

import pytest

from gateway.kernel.journal.changes import Change, Dequeued, Discarded, Enqueued, Put, Stored
from gateway.testing.store_session import content_of, entities_in, message_with, queue_record
from gateway_lmdb import LmdbStore, reserve
from gateway_lmdb.batch import Batch
from gateway_lmdb.writer import Writer
from tests.storage.listeners import RecordingListener
from tests.storage.places import LmdbPlace
from tests.storage.test_lmdb_store import publishing

MAP_SIZE = 12 * 2**20


def open_store(place: LmdbPlace) -> tuple[LmdbStore, RecordingListener]:
    place.store = store = LmdbStore(
        place.path, call_in_kernel=place.calls.put, retry_interval_s=0.01, map_size=MAP_SIZE
    )
    listener = RecordingListener()
    store.listen(listener)
    return store, listener


def fill(place: LmdbPlace, store: LmdbStore, listener: RecordingListener) -> int:
    """Publish until the store is full; return the number of the last written message."""
    store.append([Put(queue_record(1))])
    number, durable = 0, 0
    while not listener.has("stalled"):
        durable = number
        lsn = store.append(publishing(number + 1, number + 20, 1000))
        number += 20
        place.pump(lambda lsn=lsn: listener.watermark >= lsn or listener.has("stalled"))
    return durable


def test_messages_removed_at_random_make_room_in_a_full_store(place: LmdbPlace) -> None:
    store, listener = open_store(place)
    durable = fill(place, store, listener)
    assert durable > 5000
    chosen = random.Random(1).sample(range(1, durable), 60)
    leaving: list[Change] = []
    for number in sorted(chosen):
        leaving += [Dequeued(number), Discarded(number)]
    lsn = store.append([*leaving, *map(Dequeued, range(durable + 1, durable + 21))])
    store.append([Discarded(number) for number in range(durable + 1, durable + 21)])
    place.pump(lambda: listener.watermark >= lsn)
    assert not listener.has("resumed"), "publishers would take the space that the next deletions need"
    store.close()
    store, _ = open_store(place)
    found = {each.position for each in store.recover() if isinstance(each, Enqueued)}
    assert found == set(range(1, durable + 1)) - set(chosen)


def test_the_reserve_is_kept_for_deletions(place: LmdbPlace) -> None:
    store, listener = open_store(place)
    durable = fill(place, store, listener)
    with store._environment.read() as transaction:
        assert len(transaction.get(b"reserve", db=store._environment.tables.meta) or b"") == reserve.SIZE
    assert durable * 1000 < MAP_SIZE - reserve.SIZE


def test_the_reserve_is_not_used_for_publishes_alone(place: LmdbPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    attempts, attempt = Semaphore(0), Writer._try

    def counted(writer: Writer, batch: Batch) -> str | None:
        attempts.release()
        return attempt(writer, batch)

    store, listener = open_store(place)
    fill(place, store, listener)
    monkeypatch.setattr(Writer, "_try", counted)
    assert all(attempts.acquire(timeout=10) for _ in range(3))
    assert not listener.has("resumed")
    with store._environment.read() as transaction:
        assert transaction.get(b"reserve", db=store._environment.tables.meta) is not None


def test_a_repeatedly_full_store_deletes_messages_each_time(place: LmdbPlace) -> None:
    store, listener = open_store(place)
    number, oldest = fill(place, store, listener) + 20, 1
    for _ in range(3):
        listener.reports.clear()
        while not listener.has("resumed"):
            leaving = [change for each in range(oldest, oldest + 50) for change in (Dequeued(each), Discarded(each))]
            oldest += 50
            lsn = store.append(leaving)
            place.pump(lambda lsn=lsn: listener.watermark >= lsn)
        listener.reports.clear()
        while not listener.has("stalled"):
            lsn = store.append(publishing(number + 1, number + 20, 1000))
            number += 20
            place.pump(lambda lsn=lsn: listener.watermark >= lsn or listener.has("stalled"))


def test_a_small_store_has_no_reserve(place: LmdbPlace) -> None:
    store, listener = open_store(place)
    store.append([Put(queue_record(1)), *publishing(1, 20, 1000)])
    place.pump(lambda: listener.watermark >= 1)
    assert store.usage.file_bytes < reserve.SIZE


@contextmanager
def no_larger_files(than: Path) -> Iterator[None]:
    """Let no file grow beyond the size of this one, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (than.stat().st_size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_store_with_spilled_contents_opens_on_a_full_disk(place: LmdbPlace) -> None:
    store, listener = open_store(place)
    spilled: list[Change] = [Stored(message_with(number), is_spilled=True) for number in range(1, 3000)]
    lsn = store.append([Put(queue_record(1)), *spilled])
    place.pump(lambda: listener.watermark >= lsn)
    store.close()
    with no_larger_files(than=place.path / "data.mdb"):
        store, listener = open_store(place)
        assert entities_in(list(store.recover())) == [queue_record(1)]
        lsn = store.append([Put(queue_record(2)), Stored(message_with(2, b"new" * 99), is_spilled=True)])
        place.pump(lambda: listener.has("stalled"))
    place.pump(lambda: listener.watermark >= lsn)
    assert list(store.messages([2])) == [content_of(message_with(2, b"new" * 99))]
    store.close()
    store, _ = open_store(place)
    assert len(entities_in(list(store.recover()))) == 2
    with store._environment.read() as transaction:
        assert transaction.stat(store._environment.tables.spilled)["entries"] == 0
