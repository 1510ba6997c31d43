"""Properties of the LMDB engine beyond the contract.

Rules: R127, R128.
"""

import errno
import gc
import os
import subprocess
import sys
from pathlib import Path

import lmdb
import pytest

from gateway.kernel.errors import StorageError
from gateway.kernel.journal.changes import Appended, Change, Dequeued, Discarded, Enqueued, Put, Stored
from gateway.kernel.journal.entity_codec import decode_entity
from gateway.kernel.messages import contents
from gateway.kernel.messages.chunks import entries
from gateway.kernel.messages.contents import ContentWriter, decode_content
from gateway.kernel.messages.message import Message
from gateway.testing.store_session import (
    content_of,
    entities_in,
    message_with,
    places_in,
    queue_record,
    vhost_record,
)
from gateway_lmdb import LmdbStore, batch, environment, records, schema
from gateway_lmdb.threads import SystemThreads
from tests.storage.listeners import RecordingListener
from tests.storage.places import LmdbPlace


def open_store(place: LmdbPlace) -> tuple[LmdbStore, RecordingListener]:
    store, listener = place.open(), RecordingListener()
    store.listen(listener)
    return store, listener


def publishing(first: int, last: int, size: int = 1000) -> list[Change]:
    changes: list[Change] = []
    for number in range(first, last + 1):
        changes += Stored(message_with(number, bytes(size))), Enqueued(1, number, number, 0)
    return changes


def draining(first: int, last: int) -> list[Change]:
    numbers = range(first, last + 1)
    return [*map(Dequeued, numbers), *map(Discarded, numbers)]


class GenerousThreads(SystemThreads):
    """Counts how often the store lets other threads run."""

    def __init__(self) -> None:
        self.ways = 0

    def give_way(self) -> None:
        """Count the call."""
        self.ways += 1
        super().give_way()


# ---- Large appends ------------------------------------------------------------------------------------------------


def test_the_writer_lets_other_threads_run_while_it_writes_and_frees_a_large_append(place: LmdbPlace) -> None:
    threads, listener, count = GenerousThreads(), RecordingListener(), 10 * batch.AT_ONCE
    place.store = store = LmdbStore(place.path, call_in_kernel=place.calls.put, threads=threads)
    store.listen(listener)
    lsn = store.append(publishing(1, batch.AT_ONCE // 2, 10))
    place.pump(lambda: listener.watermark >= lsn)
    assert threads.ways == 0, "a small append is written at once"
    lsn = store.append(publishing(count, 2 * count - 1, 10))
    place.pump(lambda: listener.watermark >= lsn)
    store.close()
    pieces = len(range(0, 2 * count, batch.AT_ONCE))
    assert threads.ways >= 3 * pieces  # added, freed in the batch, freed as changes
    assert place.open().highest_ids() == (2 * count - 1, 2 * count - 1)


# ---- Opening ------------------------------------------------------------------------------------------------------


def test_a_second_store_in_the_same_directory_is_refused(place: LmdbPlace) -> None:
    place.open()
    with pytest.raises(StorageError, match=f"in use by process {os.getpid()}"):
        LmdbStore(place.path, call_in_kernel=lambda call: None)


def test_a_directory_in_use_is_refused_to_another_process(place: LmdbPlace) -> None:
    place.open()
    program = (
        "import sys; from gateway_lmdb import LmdbStore\n"
        "try: LmdbStore(sys.argv[1], call_in_kernel=print)\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    child = subprocess.run(
        [sys.executable, "-c", program, str(place.path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert f"StorageError the store in {place.path} is in use by process {os.getpid()}" in child.stdout


def test_a_closed_store_releases_the_directory(place: LmdbPlace) -> None:
    place.open().close()
    assert place.open().highest_ids() == (0, 0)


def test_a_store_of_a_newer_format_is_refused_with_both_versions(
    place: LmdbPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "STOPPED_FORMAT", 9)
    place.open().close()
    monkeypatch.undo()
    with pytest.raises(StorageError, match="format 9, written by a newer gateway; this one reads up to 2"):
        place.open()


def test_an_entity_of_a_newer_layout_is_refused_with_both_versions(
    place: LmdbPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = place.open()
    monkeypatch.setattr(type(vhost_record("a")), "version", 7)
    store.append([Put(vhost_record("a"))])
    store.close()
    monkeypatch.undo()
    with pytest.raises(StorageError, match="a vhost has layout 7, written by a newer gateway; this one reads up to 3"):
        list(place.open().recover())


def test_a_record_of_a_newer_layout_is_refused() -> None:
    record = ContentWriter().encode(message_with(1))
    with pytest.raises(StorageError, match="a message has layout 200"):
        decode_content(b"\xc8" + record[1:])
    with pytest.raises(StorageError, match="a place in a queue has layout 200"):
        records.decode_enqueued(1, b"\xc8" + records.encode_enqueued(Enqueued(1, 1, 1, 1))[1:])
    with pytest.raises(StorageError, match="unknown kind: flux"):
        decode_entity("flux", b"")


def test_a_refused_store_can_be_opened_once_the_reason_is_gone(
    place: LmdbPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "STOPPED_FORMAT", 9)
    monkeypatch.setattr(schema, "FORMAT_VERSION", 9)
    place.open().close()
    with monkeypatch.context() as older:
        older.setattr(schema, "FORMAT_VERSION", 1)
        with pytest.raises(StorageError):
            place.open()
    assert place.open().highest_ids() == (0, 0)


def test_files_that_are_not_a_store_are_refused(place: LmdbPlace) -> None:
    place.path.mkdir()
    (place.path / "data.mdb").write_bytes(b"not a store" * 2000)
    with pytest.raises(StorageError, match="cannot be opened"):
        place.open()


def test_a_path_that_cannot_be_a_directory_is_refused(place: LmdbPlace) -> None:
    place.path.write_text("a file")
    with pytest.raises(StorageError, match="cannot be opened"):
        place.open()


# ---- Batches ------------------------------------------------------------------------------------------------------


@pytest.mark.source
def test_a_burst_is_committed_in_several_transactions(place: LmdbPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "MOST_RECORDS", 100)
    store, listener = open_store(place)
    for first in range(1, 2000, 20):
        store.append(publishing(first, first + 19, size=10))
    place.pump(lambda: listener.watermark == 100)
    assert len(listener.reports) >= 20


def test_a_single_append_is_reported_without_waiting_for_others(place: LmdbPlace) -> None:
    store, listener = open_store(place)
    for lsn in range(1, 20):
        store.append(publishing(lsn, lsn))
        place.pump(lambda lsn=lsn: listener.watermark == lsn)  # type: ignore[misc]
    assert listener.reports == list(range(1, 20))


def test_messages_stored_and_removed_in_one_batch_are_never_written(place: LmdbPlace) -> None:
    store, listener = open_store(place)
    store.append([*publishing(1, 500), *draining(1, 500)])
    place.pump(lambda: listener.watermark == 1)
    store.close()
    assert (place.path / "data.mdb").stat().st_size < 100_000


def test_freed_pages_are_reused(place: LmdbPlace) -> None:
    store, listener = open_store(place)
    data = place.path / "data.mdb"
    sizes = []
    for round_number in range(4):
        first = round_number * 2000 + 1
        for start in range(first, first + 2000, 100):
            store.append(publishing(start, start + 99))
            place.pump(lambda: listener.watermark == store._appended)
        store.append(draining(first, first + 1999))
        place.pump(lambda: listener.watermark == store._appended)
        sizes.append(data.stat().st_size)
    assert sizes[3] <= sizes[0] * 1.1


def test_many_different_headers_and_keys_are_encoded_correctly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contents, "_MOST_ENVELOPES", 10)
    writer = ContentWriter()
    for number in range(50):
        message = message_with(number % 17, b"body", f"x{number % 3}", "k" * (number % 5) + "\udc80")
        assert decode_content(writer.encode(message)) == content_of(message)


# ---- Failures -----------------------------------------------------------------------------------------------------


class FailingEnvironment(environment.Environment):
    """Fails a number of writes, as LMDB does on errors."""

    failures: list[lmdb.Error] = []

    def write(self):  # type: ignore[no-untyped-def]
        if self.failures:
            raise self.failures.pop(0)
        return super().write()


@pytest.fixture
def failures(monkeypatch: pytest.MonkeyPatch) -> list[lmdb.Error]:
    failures: list[lmdb.Error] = []
    monkeypatch.setattr(FailingEnvironment, "failures", failures)
    monkeypatch.setattr("gateway_lmdb.store.Environment", FailingEnvironment)
    return failures


MDB_PANIC = -30795


def lmdb_error(code: int, kind: type[lmdb.Error] = lmdb.Error) -> lmdb.Error:
    """Return an error as LMDB raises it: only those have a code."""
    error = kind(f"mdb_txn_commit: {code}")
    error.code = code  # type: ignore[misc]
    return error


@pytest.mark.parametrize("code", ["ENOSPC", "EIO", "EDQUOT", "EFBIG"])
def test_a_temporary_failure_stalls_once_and_loses_nothing(
    place: LmdbPlace, failures: list[lmdb.Error], code: str
) -> None:
    store, listener = open_store(place)
    failures += [lmdb_error(getattr(errno, code)) for _ in range(3)]
    store.append([Put(queue_record(1)), *publishing(1, 10)])
    store.append(publishing(11, 20))
    place.pump(lambda: listener.watermark == 2)
    assert [str(report).partition(":")[0] for report in listener.reports[:2]] == ["stalled", "resumed"]
    place.crash()
    assert len(list(place.open().recover())) == 21


def test_a_permanent_failure_is_reported_once_and_nothing_after_it(
    place: LmdbPlace, failures: list[lmdb.Error]
) -> None:
    store, listener = open_store(place)
    store.append(publishing(1, 1))
    place.pump(lambda: listener.watermark == 1)
    failures.append(lmdb_error(MDB_PANIC, lmdb.PanicError))
    store.append(publishing(2, 2))
    place.pump(lambda: listener.has("failed"))
    assert store.append(publishing(3, 3)) == 3
    store.close()
    assert [str(report).partition(":")[0] for report in listener.reports] == [
        "1",
        "2",
        "failed",
    ]  # 2 is in the redo log


@pytest.mark.source
def test_a_change_that_cannot_be_written_is_left_out_and_reported_before_its_watermark(place: LmdbPlace) -> None:
    store, listener = open_store(place)
    invalid = object()
    store.append([Put(queue_record(1)), Put(vhost_record(invalid, "key"))])  # type: ignore[arg-type]
    store.append([Put(vhost_record("a", invalid)), Put(vhost_record("b"))])  # type: ignore[arg-type]
    store.append([Stored(Message(invalid, "", message_with(1).header, b""), False), *publishing(2, 3)])  # type: ignore[arg-type]
    store.append([Enqueued(1, 9, invalid, 0)])  # type: ignore[arg-type]
    place.pump(lambda: listener.watermark >= 4)
    assert len([report for report in listener.reports if str(report).startswith("refused: ")]) == 4
    assert str(listener.reports[0]).startswith("refused: ")
    store.close()
    found = list(place.open().recover())
    assert entities_in(found) == [vhost_record("b"), queue_record(1)]
    assert [position for position, *_ in places_in(found)] == [2, 3]


@pytest.mark.source
def test_a_stream_message_that_cannot_be_written_does_not_change_other_offsets(place: LmdbPlace) -> None:
    store, listener = open_store(place)
    invalid = Message(object(), "", message_with(1).header, b"")  # type: ignore[arg-type]
    lines = [Appended(1, offset, 1, b"", invalid if offset == 1 else message_with(offset)) for offset in range(3)]
    store.append([Put(queue_record(1)), *lines])
    place.pump(lambda: listener.watermark >= 1)
    assert listener.has("refused: message 1 of stream 1")
    chunks = store.stream_chunks(1, 0, 10_000)
    assert chunks is not None
    assert [decode_content(content).exchange for *_, content in entries(chunks)] == ["x", "", "x"]


def test_a_message_with_numbers_out_of_range_is_stored(place: LmdbPlace) -> None:
    store, listener = open_store(place)
    far = Enqueued(1, 1, 1, -5, 2**40, 2**33, 999, 2**70, 2**64)
    store.append([Put(queue_record(1)), Stored(message_with(1)), far])
    place.pump(lambda: listener.watermark >= 1)
    store.close()
    (found,) = [change for change in place.open().recover() if isinstance(change, Enqueued)]
    assert (found.enqueued_at_ms, found.delivery_count, found.body_size) == (0, 2**32 - 1, 2**32 - 1)
    assert (found.priority, found.due_at_ms, found.expires_at_ms) == (255, 2**64 - 1, 2**64 - 1)


def test_a_store_closed_while_stalled_fails_instead_of_waiting(place: LmdbPlace, failures: list[lmdb.Error]) -> None:
    store, listener = open_store(place)
    failures += [lmdb_error(errno.ENOSPC)] * 100_000
    store.append(publishing(1, 1))
    place.pump(lambda: listener.has("stalled"))
    store.close()
    assert listener.has("failed")
    assert listener.watermark == 0


def test_a_store_closed_while_stalled_tries_once_more(place: LmdbPlace, failures: list[lmdb.Error]) -> None:
    listener = RecordingListener()
    store = LmdbStore(place.path, call_in_kernel=place.calls.put, retry_interval_s=60)
    place.store = store
    store.listen(listener)
    failures.append(lmdb_error(errno.ENOSPC))
    store.append(publishing(1, 1))
    place.pump(lambda: listener.has("stalled"))
    store.append(publishing(2, 2))
    store.close()
    assert (listener.has("resumed"), listener.watermark) == (True, 2)


@pytest.mark.parametrize("most_records", [20_000, 150])
def test_a_full_store_stalls_and_resumes_when_messages_leave(
    place: LmdbPlace, monkeypatch: pytest.MonkeyPatch, most_records: int
) -> None:
    monkeypatch.setattr(batch, "MOST_RECORDS", most_records)
    listener = RecordingListener()
    store = LmdbStore(place.path, call_in_kernel=place.calls.put, retry_interval_s=0.01, map_size=2_000_000)
    place.store = store
    store.listen(listener)
    store.append([Put(queue_record(1)), *publishing(1, 100)])
    place.pump(lambda: listener.watermark == 1)
    for first in range(101, 3001, 100):
        store.append(publishing(first, first + 99))
    place.pump(lambda: listener.has("stalled"))
    assert "maximum size" in str(listener.reports[-1])
    stalled_at = listener.watermark
    assert store.messages([3000])[0] == content_of(message_with(3000, bytes(1000)))
    for first in range(201, 3001, 100):
        store.append(draining(first, first + 99))
    place.pump(lambda: listener.watermark == store._appended)
    assert listener.has("resumed")
    assert stalled_at < listener.watermark
    place.crash()
    positions = [change.position for change in place.open().recover() if isinstance(change, Enqueued)]
    assert positions == list(range(1, 201))


# A limit on the file size makes writes fail as on a full disk, without mounting a file system.
FULL_DISK = """
import resource, signal, sys
from gateway.kernel.journal.changes import Enqueued, Put
from gateway_lmdb import LmdbStore
from gateway_lmdb.threads import SystemThreads
from tests.storage.listeners import RecordingListener
from tests.storage.places import LmdbPlace
from tests.storage.test_lmdb_store import publishing, queue_record
place = LmdbPlace()
store, listener = place.open(), RecordingListener()
store.listen(listener)
store.append([Put(queue_record(1)), *publishing(1, 100)])
place.pump(lambda: listener.watermark == 1)
size = (place.path / "data.mdb").stat().st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 10_000, resource.RLIM_INFINITY))
store.append(publishing(101, 1000))
place.pump(lambda: listener.has("stalled"))
assert listener.watermark == 1
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
place.pump(lambda: listener.watermark == 2)
assert listener.has("resumed")
place.crash()
store = place.open()
assert [change.position for change in store.recover() if isinstance(change, Enqueued)] == list(range(1, 1001))
assert None not in store.messages(range(1, 1001))
place.close()
print([str(report) for report in listener.reports])
"""


def run_child(program: str) -> str:
    child = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert child.returncode == 0, child.stderr
    return child.stdout


def test_a_full_disk_stalls_the_store_and_corrupts_nothing() -> None:
    assert "resumed" in run_child(FULL_DISK)


@pytest.mark.source
def test_an_unreadable_store_raises_a_storage_error(place: LmdbPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    store, listener = open_store(place)
    store.append(publishing(1, 1))
    place.pump(lambda: listener.watermark == 1)

    def corrupted(*_: object) -> None:
        raise lmdb.CorruptedError("mdb_get")

    monkeypatch.setattr("gateway.kernel.messages.contents.decode_content", corrupted)
    with pytest.raises(StorageError, match="cannot be read"):
        store.messages([1])


# ---- Memory -------------------------------------------------------------------------------------------------------

BACKLOG = """
import gc
from pathlib import Path
from gateway.kernel.journal.changes import Put
from gateway_lmdb.threads import SystemThreads
from tests.storage.listeners import RecordingListener
from tests.storage.places import LmdbPlace
from tests.storage.test_lmdb_store import publishing, queue_record

def resident_mib():
    return int(Path("/proc/self/status").read_text().partition("VmRSS:")[2].split()[0]) / 1024

place = LmdbPlace()
store, listener = place.open(), RecordingListener()
store.listen(listener)
before = most = resident_mib()
store.append([Put(queue_record(1))])
for first in range(1, 120_000, 100):
    lsn = store.append(publishing(first, first + 99, 1024))
    place.pump(lambda: listener.watermark >= lsn - 20)
    most = max(most, resident_mib())
place.pump(lambda: listener.watermark == lsn)
store.close()
store = place.open()
assert sum(1 for _ in store.recover()) == 120_001
for first in range(1, 120_000, 100):
    assert None not in store.messages(range(first, first + 100))
    most = max(most, resident_mib())
place.close()
print(int(most - before))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads resident memory from /proc")
def test_a_backlog_is_not_resident_memory() -> None:
    grown_mib = int(run_child(BACKLOG))
    assert grown_mib < 110, f"a backlog of 117 MiB made the process grow by {grown_mib} MiB"


def stored_messages() -> list[Stored]:
    """Return each reachable ``Stored``."""
    gc.collect()
    return [thing for thing in gc.get_objects() if isinstance(thing, Stored)]


def test_staged_messages_are_released_once_durable(place: LmdbPlace) -> None:
    before = {id(message): message for message in stored_messages()}  # of other tests in this process
    store, listener = open_store(place)
    store.append(publishing(1, 50))
    store.messages([1])
    store.append(publishing(51, 100))
    place.pump(lambda: listener.watermark == 2)
    store.close()
    assert not [message for message in stored_messages() if id(message) not in before]
