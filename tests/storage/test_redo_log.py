"""The redo log: what its file says after any cut, and how the store uses it."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from subprocess import run

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.kernel.journal.changes import Change, Dequeued, Discarded, Enqueued, Lsn, Put, Stored
from gateway.kernel.messages.contents import ContentWriter
from gateway.testing.store_session import entities_in as entities_of
from gateway.testing.store_session import message_with, queue_record, vhost_record
from gateway_lmdb import redo_log
from gateway_lmdb.batch import Batch, Written
from gateway_lmdb.disk import SYSTEM_DISK
from gateway_lmdb.reading import entities_in
from gateway_lmdb.redo_log import RedoLog, records_of
from gateway_lmdb.redo_records import encode_batch, operations
from gateway_lmdb.schema import unpack_number
from gateway_lmdb.staged import Append
from gateway_lmdb.store import LmdbStore
from tests.storage.listeners import RecordingListener
from tests.storage.places import LmdbPlace

NOTHING = Written(0, 0, 0)

#: LMDB cannot open a file twice in one process.
BACK_UP = (
    "import sys; from pathlib import Path; from gateway_lmdb.backup import back_up; back_up(*map(Path, sys.argv[1:]))"
)


@pytest.fixture
def place() -> Iterator[LmdbPlace]:
    place = LmdbPlace()
    yield place
    place.close()


def batch_of(*changes: Change, written: Written = NOTHING) -> Batch:
    batch = Batch(written)
    batch.fold(Append(Lsn(1), changes))
    return batch


def log_in(directory: Path, era: int = 5) -> RedoLog:
    log = RedoLog(directory, SYSTEM_DISK)
    log.begin(era, has_room=True)
    return log


def content_of(directory: Path) -> bytes:
    return (directory / redo_log.FILE).read_bytes()


def publishing(number: int, body: bytes = b"body") -> list[Change]:
    return [Stored(message_with(number, body)), Enqueued(1, number, number, 0)]


# ---- The file -------------------------------------------------------------------------------------------------------


def written_log(directory: Path, count: int = 4) -> tuple[bytes, list[bytes]]:
    log = log_in(directory)
    payloads = []
    for number in range(1, count + 1):
        batch = batch_of(*publishing(number, b"x" * 700))
        assert log.append(batch)
        payloads.append(encode_batch(batch, ContentWriter().encode))
    log.close()
    return content_of(directory), payloads


def test_the_records_of_an_era_are_read_in_order(tmp_path: Path) -> None:
    content, payloads = written_log(tmp_path)
    assert len(content) == redo_log.SIZE
    assert list(records_of(content, 5)) == payloads
    assert list(records_of(content, 4)) == list(records_of(content, 6)) == []


@given(cut=st.integers(0, 4000), flip=st.integers(0, 4000), bit=st.integers(0, 7))
def test_any_damage_leaves_the_records_before_it(
    tmp_path_factory: pytest.TempPathFactory, cut: int, flip: int, bit: int
) -> None:
    content, payloads = written_log(tmp_path_factory.mktemp("redo"))
    assert list(records_of(content[:cut], 5)) == payloads[: len(list(records_of(content[:cut], 5)))]
    damaged = bytearray(content)
    damaged[flip] ^= 1 << bit
    found = list(records_of(bytes(damaged), 5))
    used = sum(map(len, payloads)) + 24 * len(payloads)
    assert found == payloads[: len(found)]
    assert (len(found) == len(payloads)) is (flip >= used)


def test_records_of_an_earlier_era_behind_the_end_are_not_read(tmp_path: Path) -> None:
    log = log_in(tmp_path, era=5)
    for number in range(1, 5):
        assert log.append(batch_of(*publishing(number)))
    log.begin(6, has_room=True)
    later = batch_of(*publishing(9))
    assert log.append(later)
    assert list(records_of(content_of(tmp_path), 6)) == [encode_batch(later, ContentWriter().encode)]
    assert list(records_of(content_of(tmp_path), 5)) == []


def test_a_record_has_the_puts_and_deletes_of_the_tables_without_spilled_contents() -> None:
    written = Written(content=10, enqueued=10, spilled=10)
    batch = batch_of(
        Put(vhost_record("a")),
        *publishing(11),
        Stored(message_with(12), True),
        Dequeued(3),
        Discarded(3),
        written=written,
    )
    found = operations(encode_batch(batch, ContentWriter().encode))
    assert [(table, value is None) for table, _, value in found] == [
        (0, False), (1, True), (1, False), (2, True), (2, False)
    ]  # fmt: skip
    assert [unpack_number(key) for table, key, _ in found if table] == [3, 11, 3, 11]
    assert encode_batch(batch_of(Stored(message_with(12), True)), ContentWriter().encode) == b""


def test_a_full_log_and_large_batches_are_left_to_the_tables(tmp_path: Path) -> None:
    log = log_in(tmp_path)
    large = batch_of(*publishing(1, bytes(redo_log.MOST_BYTES + 1)))
    assert not log.takes(large)
    assert not log.takes(batch_of(*(Enqueued(1, number, number, 0) for number in range(redo_log.MOST_CHANGES + 1))))
    fitting = batch_of(*publishing(1, bytes(redo_log.MOST_BYTES)))
    assert log.takes(fitting)
    count = 0
    while log.append(fitting):
        count += 1
    assert count == redo_log.SIZE // (redo_log.MOST_BYTES + 200)
    assert log.is_nearly_full
    assert len(list(records_of(content_of(tmp_path), 5))) == count


def test_nothing_is_written_before_an_era_or_without_room_in_the_tables(tmp_path: Path) -> None:
    log = RedoLog(tmp_path, SYSTEM_DISK)
    assert not log.takes(batch_of(*publishing(1)))
    log.begin(5, has_room=False)
    assert not log.takes(batch_of(*publishing(1)))
    assert not (tmp_path / redo_log.FILE).exists()
    log.begin(6, has_room=True)
    assert log.takes(batch_of(*publishing(1)))


def test_a_file_that_cannot_be_created_is_done_without(tmp_path: Path) -> None:
    (tmp_path / redo_log.FILE).mkdir()
    log = log_in(tmp_path)
    assert not log.takes(batch_of(*publishing(1)))


# ---- The store ------------------------------------------------------------------------------------------------------


def opened(place: LmdbPlace) -> tuple[LmdbStore, RecordingListener]:
    store, listener = place.open(), RecordingListener()
    store.listen(listener)
    store.append([Put(queue_record(1))])
    place.pump(lambda: listener.watermark == 1)
    return store, listener


def in_tables(store: LmdbStore) -> set[int]:
    """Return the ids of the contents in the tables of an open store."""
    environment = store._environment
    with environment.read() as transaction:
        return {unpack_number(key) for key in transaction.cursor(environment.tables.contents).iternext(values=False)}


def in_meta(store: LmdbStore, name: bytes) -> bytes | None:
    environment = store._environment
    with environment.read() as transaction:
        return transaction.get(name, db=environment.tables.meta)


def test_a_small_append_is_durable_and_readable_before_it_is_in_the_tables(place: LmdbPlace) -> None:
    store, listener = opened(place)
    lsn = store.append(publishing(1, b"first"))
    place.pump(lambda: listener.watermark >= lsn)
    assert [content and content.body for content in store.messages([1])] == [b"first"]
    place.crash()
    found = list(place.open().recover())
    assert [change.message_id for change in found if isinstance(change, Enqueued)] == [1]


def test_what_comes_and_goes_in_a_window_is_never_in_the_tables(
    place: LmdbPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway_lmdb.writer.WINDOW_S", 1e9)
    store, listener = opened(place)
    for number in range(1, 4):
        lsn = store.append(publishing(number))
        place.pump(lambda lsn=lsn: listener.watermark >= lsn)
    lsn = store.append([Dequeued(1), Discarded(1), Dequeued(3), Discarded(3)])
    place.pump(lambda: listener.watermark >= lsn)
    assert in_tables(store) == set()
    assert [content and content.body for content in store.messages([1, 2, 3])] == [None, b"body", None]
    store.close()
    assert in_tables(place.open()) == {2}


def test_a_window_ends_without_another_append(place: LmdbPlace) -> None:
    store, listener = opened(place)
    lsn = store.append(publishing(1))
    place.pump(lambda: listener.watermark >= lsn)
    place.pump(lambda: store._staged.find(1)[0] is False)  # type: ignore[arg-type]
    assert in_tables(store) == {1}


def test_messages_deleted_after_they_are_in_the_tables_stay_deleted(
    place: LmdbPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, listener = opened(place)
    store.append(publishing(1, bytes(redo_log.MOST_BYTES + 1)))
    lsn = store.append(publishing(2))
    place.pump(lambda: listener.watermark >= lsn)
    monkeypatch.setattr("gateway_lmdb.writer.WINDOW_S", 1e9)
    lsn = store.append([Dequeued(1), Discarded(1)])
    place.pump(lambda: listener.watermark >= lsn)
    place.crash()
    found = list(place.open().recover())
    assert [change.message_id for change in found if isinstance(change, Enqueued)] == [2]


def test_an_orderly_stop_leaves_a_store_that_earlier_gateways_read(place: LmdbPlace) -> None:
    store, listener = opened(place)
    lsn = store.append(publishing(1))
    place.pump(lambda: listener.watermark >= lsn)
    assert in_meta(store, b"format") == b"2"
    assert in_meta(store, b"redo era") is not None
    store.close()
    stopped = place.open()
    assert in_meta(stopped, b"format") == b"1"
    assert in_meta(stopped, b"redo era") is None
    assert in_tables(stopped) == {1}


def test_other_processes_see_and_copy_what_is_in_the_redo_log(
    place: LmdbPlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway_lmdb.writer.WINDOW_S", 1e9)
    store, listener = opened(place)
    lsn = store.append([Put(vhost_record("late")), *publishing(1)])
    place.pump(lambda: listener.watermark >= lsn)
    assert in_tables(store) == set()
    copy = tmp_path / "copy"
    backed_up = run([sys.executable, "-c", BACK_UP, place.path, copy], env={"PYTHONPATH": os.pathsep.join(sys.path)})
    assert backed_up.returncode == 0
    assert [entity.kind for entity in entities_in(copy)] == ["queue", "vhost"]
    copied = LmdbStore(copy, call_in_kernel=place.calls.put)
    found = list(copied.recover())
    assert len(entities_of(found)) == 2
    assert [content and content.body for content in copied.messages([1])] == [b"body"]
    copied.close()
