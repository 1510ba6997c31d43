"""Streams in the LMDB engine: segment files, after crashes and disk errors."""

import errno
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import lmdb
import pytest

from gateway.kernel.errors import StorageError
from gateway.kernel.journal.changes import EVERYTHING, Change, Lsn, Put, Sealed, Truncated
from gateway.kernel.messages.chunks import chunk_heads, entries
from gateway.testing.store_session import StoreSession, queue_record, segments_in
from gateway.testing.store_streams import read_all, segment, stream_message
from gateway_lmdb import LmdbStore, segment_files
from gateway_lmdb.backup import back_up
from gateway_lmdb.segment_files import SegmentFiles
from tests.storage.places import LmdbPlace

WRITE = SegmentFiles.write


@pytest.fixture
def session(place: LmdbPlace) -> StoreSession:
    return StoreSession(place)


def sealing(first: int, end: int, size: int = 1000) -> list[Change]:
    """Return the changes of a segment of stream 1."""
    messages = [stream_message(1, offset, size) for offset in range(first, end)]
    return [Put(queue_record(1)), *messages, Sealed(segment(1, first, end))]


def wait_for_sealer(session: StoreSession) -> None:
    """Wait until everything is committed and the sealer has finished its tasks."""
    assert isinstance(session.store, LmdbStore)
    session.settle()
    is_done = threading.Event()
    session.store._sealer._tasks.put(is_done.set)
    assert is_done.wait(20)
    session.append()
    session.settle()


def directory(place: LmdbPlace) -> Path:
    return place.path / "streams" / "1"


def file_names(place: LmdbPlace) -> list[str]:
    """Return the names of the files of stream 1."""
    return sorted(path.name for path in directory(place).iterdir()) if directory(place).exists() else []


def chunks_in_table(place: LmdbPlace) -> int:
    """Return the number of chunks in the table; the store must be closed."""
    with lmdb.open(str(place.path), readonly=True, max_dbs=16) as environment:
        chunks = environment.open_db(b"chunks", create=False)
        with environment.begin() as transaction:
            return int(transaction.stat(chunks)["entries"])


def test_a_sealed_segment_moves_into_a_file_of_large_chunks(place: LmdbPlace, session: StoreSession) -> None:
    for offset in range(600):
        session.append(Put(queue_record(1)), stream_message(1, offset, 1000))
        session.settle()
    session.append(Sealed(segment(1, 0, 600)), stream_message(1, 600))
    wait_for_sealer(session)
    assert file_names(place) == [f"{0:020}.chunks"]
    data = (directory(place) / f"{0:020}.chunks").read_bytes()
    assert [offset for offset, *_ in entries(data)] == list(range(600))
    heads = list(chunk_heads(data))
    assert all(head.size <= 128 * 1024 for head in heads)
    assert len(heads) < 10, "chunks of single messages were not merged"
    assert read_all(session, 1, 0) == list(range(601))
    session.store.close()
    assert chunks_in_table(place) == 1, "chunks are in the table and in a file"


def test_a_large_append_is_split_into_chunks(place: LmdbPlace, session: StoreSession) -> None:
    session.append(*sealing(0, 500, 2000)[:-1])
    session.settle()
    data = session.store.stream_chunks(1, 0, 1 << 30)
    assert data is not None
    assert [head.size < 132 * 1024 for head in chunk_heads(data)] == [True] * 8


@pytest.mark.source
def test_a_crash_between_a_file_and_its_record_loses_nothing(
    place: LmdbPlace, session: StoreSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session.store, "_filed", lambda filed: None)
    assert isinstance(session.store, LmdbStore)
    monkeypatch.setattr(session.store._sealer, "_filed", lambda filed: None)
    session.append(*sealing(0, 300), stream_message(1, 300))
    wait_for_sealer(session)
    assert file_names(place) == [f"{0:020}.chunks"]
    assert session.store.segment_path(1, 0) is None
    session.crash()
    assert read_all(session, 1, 0) == list(range(301)), "while the segment is moved again"
    wait_for_sealer(session)
    assert session.store.segment_path(1, 0) == directory(place) / f"{0:020}.chunks"
    assert read_all(session, 1, 0) == list(range(301))
    session.store.close()
    assert chunks_in_table(place) == 1


def test_a_crash_before_a_file_is_complete_leaves_no_file(place: LmdbPlace, session: StoreSession) -> None:
    session.append(*sealing(0, 300))
    wait_for_sealer(session)
    session.store.close()
    path = directory(place) / f"{0:020}.chunks"
    leftovers = [
        path.with_name(path.name + ".tmp"),
        path.with_name(f"{600:020}.chunks"),
        path.with_name("notes"),
        place.path / "streams" / "99" / path.name,
        place.path / "streams" / "lost" / path.name,
    ]
    for each in leftovers:
        each.parent.mkdir(exist_ok=True)
        each.write_bytes(b"half")
    kept = path.with_suffix(".arrow")
    kept.write_bytes(b"columns")
    session.open()
    wait_for_sealer(session)
    assert [each.exists() for each in leftovers] == [False] * 5
    assert kept.exists(), "files beside an existing segment belong to it"
    assert read_all(session, 1, 0) == list(range(300))


def test_all_files_of_a_truncated_segment_are_removed(place: LmdbPlace, session: StoreSession) -> None:
    session.append(*sealing(0, 10), *sealing(10, 20))
    wait_for_sealer(session)
    for first in (0, 10):
        (directory(place) / f"{first:020}.arrow").write_bytes(b"columns")
    session.append(Truncated(1, 10))
    wait_for_sealer(session)
    assert file_names(place) == [f"{10:020}.arrow", f"{10:020}.chunks"]


def test_a_segment_truncated_while_it_is_moved_leaves_no_file(
    place: LmdbPlace, session: StoreSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_written, is_truncated = threading.Event(), threading.Event()

    def write_late(files: SegmentFiles, path: Path, pieces: Iterator[bytes]) -> None:
        WRITE(files, path, pieces)
        is_written.set()
        assert is_truncated.wait(20)

    monkeypatch.setattr(SegmentFiles, "write", write_late)
    session.append(*sealing(0, 300))
    assert is_written.wait(20)
    session.append(Truncated(1, 300))
    session.settle()
    is_truncated.set()
    wait_for_sealer(session)
    assert file_names(place) == []
    assert session.store.segment_path(1, 0) is None
    session.crash_settled()
    assert [(found.first, found.end) for found in segments_in(session.found)] == [(300, 300)]


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
def test_segments_stay_in_the_table_while_the_disk_is_full(
    place: LmdbPlace, session: StoreSession, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    failures = iter(range(3))

    def write(files: SegmentFiles, path: Path, pieces: Iterator[bytes]) -> None:
        if next(failures, None) is not None:
            raise OSError(error, os.strerror(error))
        WRITE(files, path, pieces)

    monkeypatch.setattr(SegmentFiles, "write", write)
    session.append(*sealing(0, 300))
    session.settle()
    assert read_all(session, 1, 0) == list(range(300))
    for _ in range(4):  # each attempt is queued again
        wait_for_sealer(session)
    assert session.store.segment_path(1, 0) is not None
    assert read_all(session, 1, 0) == list(range(300))


def test_a_failed_write_leaves_no_partial_file(tmp_path: Path) -> None:
    def pieces() -> Iterator[bytes]:
        yield b"begun"
        raise OSError(errno.ENOSPC, "full")

    with pytest.raises(OSError, match="full"):
        SegmentFiles(tmp_path).write(tmp_path / "1" / "0.chunks", pieces())
    assert list((tmp_path / "1").iterdir()) == []


def test_closing_does_not_wait_for_unmoved_segments(
    place: LmdbPlace, session: StoreSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_busy, may_end = threading.Event(), threading.Event()

    def write_slowly(files: SegmentFiles, path: Path, pieces: Iterator[bytes]) -> None:
        is_busy.set()
        assert may_end.wait(20)
        WRITE(files, path, pieces)

    monkeypatch.setattr(SegmentFiles, "write", write_slowly)
    for first in range(0, 50, 10):
        session.append(*sealing(first, first + 10))
    assert is_busy.wait(20)
    session.settle()
    assert isinstance(session.store, LmdbStore)
    is_stopping = session.store._sealer._stopping
    disk = threading.Thread(target=lambda: is_stopping.wait(20) and may_end.set())
    disk.start()
    session.store.close()
    disk.join()
    assert file_names(place) == [f"{0:020}.chunks"]
    monkeypatch.undo()
    session.open()
    wait_for_sealer(session)
    assert len(file_names(place)) == 5
    assert read_all(session, 1, 0) == list(range(50))


def test_many_segments_are_read_with_few_open_files(session: StoreSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment_files, "_MOST_OPEN", 2)
    for first in range(0, 100, 10):
        session.append(*sealing(first, first + 10))
    wait_for_sealer(session)
    for _ in range(2):
        assert read_all(session, 1, 0, 1) == list(range(100))
    assert isinstance(session.store, LmdbStore)
    assert len(session.store._files._open) == 2


def test_a_missing_file_between_segments_is_refused_at_the_start(place: LmdbPlace, session: StoreSession) -> None:
    for first in range(0, 30, 10):
        session.append(*sealing(first, first + 10))
    wait_for_sealer(session)
    session.store.close()
    (directory(place) / f"{10:020}.chunks").unlink()
    with pytest.raises(StorageError, match=f"a segment of stream 1 is missing: .*{10:020}.chunks"):
        session.open()


def test_the_first_files_of_a_copy_may_be_missing(place: LmdbPlace, session: StoreSession) -> None:
    """The stream was truncated while the copy was made."""
    for first in range(0, 30, 10):
        session.append(*sealing(first, first + 10))
    wait_for_sealer(session)
    session.store.close()
    (directory(place) / f"{0:020}.chunks").unlink()
    for _ in range(2):
        session.open()
        assert [(found.first, found.end) for found in segments_in(session.found)] == [(10, 20), (20, 30), (30, 30)]
        assert read_all(session, 1, 10) == list(range(10, 30))
        wait_for_sealer(session)
        session.store.close()


@pytest.mark.parametrize("is_linked", [True, False])
def test_a_copy_of_the_store_contains_stream_files(
    place: LmdbPlace, session: StoreSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_linked: bool
) -> None:
    session.append(*sealing(0, 300), stream_message(1, 300))
    wait_for_sealer(session)
    if not is_linked:

        def refuse(path: Path, copy: Path) -> None:
            raise OSError(errno.EXDEV, "another device")

        monkeypatch.setattr(os, "link", refuse)
    assert isinstance(session.store, LmdbStore)
    session.store.snapshot(tmp_path)
    _expect_copy(place, tmp_path)


def test_a_backup_contains_stream_files(place: LmdbPlace, session: StoreSession, tmp_path: Path) -> None:
    session.append(*sealing(0, 300), stream_message(1, 300))
    wait_for_sealer(session)
    session.store.close()
    size = back_up(place.path, tmp_path / "copy")
    assert size > 300_000
    _expect_copy(place, tmp_path / "copy")


class TruncatingOwner:
    """Moves a segment into a file before the data are copied, and removes the file before it is copied."""

    def __init__(self, place: LmdbPlace, monkeypatch: pytest.MonkeyPatch, times: float) -> None:
        self._directory = directory(place)
        self._times = times
        self._copies = 0
        self._hidden: list[Path] = []
        copy_into = SegmentFiles.copy_into

        def copy(files: SegmentFiles, target: SegmentFiles) -> None:
            self._copies += 1
            is_first, attempt = self._copies % 2 == 1, (self._copies + 1) // 2
            if attempt <= self._times:
                self._hide() if is_first else None
            copy_into(files, target)
            if is_first and attempt > self._times:
                self._show(target)

        monkeypatch.setattr(SegmentFiles, "copy_into", copy)

    def _hide(self) -> None:
        """The file is there neither for the first copy nor for the second one."""
        for path in self._directory.glob(f"{10:020}.chunks"):
            self._hidden.append(path.rename(path.with_suffix(".hidden")))

    def _show(self, target: SegmentFiles) -> None:
        """The next copy of the data names a segment that has its file again."""
        for path in self._hidden:
            path.rename(path.with_suffix(".chunks"))
        self._hidden = []


@pytest.mark.parametrize("times", [1, 3])
def test_a_backup_copies_the_data_again_if_a_segment_was_removed_meanwhile(
    place: LmdbPlace, session: StoreSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    for first in range(0, 300, 10):
        session.append(*sealing(first, first + 10))
    session.append(stream_message(1, 300))
    wait_for_sealer(session)
    session.store.close()
    TruncatingOwner(place, monkeypatch, times)
    back_up(place.path, tmp_path / "copy")
    monkeypatch.undo()
    _expect_copy(place, tmp_path / "copy")


def test_a_backup_whose_segments_are_always_removed_is_none(
    place: LmdbPlace, session: StoreSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for first in range(0, 30, 10):
        session.append(*sealing(first, first + 10))
    wait_for_sealer(session)
    session.store.close()
    TruncatingOwner(place, monkeypatch, float("inf"))
    with pytest.raises(StorageError, match=f"segments are removed faster than they are copied: .*{10:020}.chunks"):
        back_up(place.path, tmp_path / "copy")
    assert not (tmp_path / "copy" / "data.mdb").exists()


def test_a_backup_has_the_damaged_records_of_segments_too(
    place: LmdbPlace, session: StoreSession, tmp_path: Path
) -> None:
    session.append(*sealing(0, 10))
    wait_for_sealer(session)
    session.store.close()
    with lmdb.open(str(place.path), max_dbs=16) as environment:
        segments = environment.open_db(b"segments", create=False)
        with environment.begin(write=True) as transaction:
            transaction.put(bytes(16), b"damaged", db=segments)
    back_up(place.path, tmp_path / "copy")
    with lmdb.open(str(tmp_path / "copy"), max_dbs=16, readonly=True) as environment:
        segments = environment.open_db(b"segments", create=False)
        with environment.begin() as transaction:
            assert transaction.get(bytes(16), db=segments) == b"damaged"


def _expect_copy(place: LmdbPlace, path: Path) -> None:
    """Check the content of a copy, after removing the original."""
    store = place.store
    assert store is not None
    store.close()
    shutil.rmtree(place.path)
    place.store = None
    place.path = path
    copy = StoreSession(place)
    assert read_all(copy, 1, 0) == list(range(301))
    assert copy.watermark == Lsn(0)


def test_a_copy_continues_when_a_stream_is_deleted_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files, link = SegmentFiles(tmp_path / "streams"), os.link
    for stream_id in ("1", "2", "3"):
        (files.directory / stream_id).mkdir(parents=True)
        (files.directory / stream_id / "0.chunks").write_bytes(b"chunks")

    def delete_the_others(path: Path, copy: Path) -> None:
        link(path, copy)
        for other in files.directory.iterdir():
            if other != path.parent:
                files.remove_stream(int(other.name))

    monkeypatch.setattr(os, "link", delete_the_others)
    target = SegmentFiles(tmp_path / "copy")
    files.link_into(target)
    assert [path.read_bytes() for path in target.directory.glob("*/*")] == [b"chunks"]


def test_a_sealed_segment_is_found_by_each_of_its_offsets(session: StoreSession) -> None:
    store = session.store
    assert isinstance(store, LmdbStore)
    session.append(*sealing(0, 5), stream_message(1, 5))
    session.settle()
    assert {store.sealed_segment(1, offset) for offset in range(5)} == {segment(1, 0, 5)}
    assert store.sealed_segment(1, 5) is None
    assert store.sealed_segment(2, 0) is None


def test_the_file_of_another_stream_with_the_same_number_is_read_once_the_open_ones_are_closed(
    session: StoreSession,
) -> None:
    store = session.store
    assert isinstance(store, LmdbStore)
    session.append(*sealing(0, 5))
    wait_for_sealer(session)
    former = store.stream_chunks(1, 0, 1 << 20)
    session.append(Truncated(1, EVERYTHING))
    wait_for_sealer(session)
    session.append(*sealing(0, 7))
    wait_for_sealer(session)
    store.close_segment_files()
    found = store.stream_chunks(1, 0, 1 << 20)
    assert former is not None
    assert found is not None
    assert [next(chunk_heads(chunks)).end for chunks in (former, found)] == [5, 7]


def test_files_with_a_second_number_are_of_one_run(session: StoreSession, place: LmdbPlace) -> None:
    session.append(*sealing(0, 5))
    wait_for_sealer(session)
    (chunks,) = file_names(place)
    for suffix in (".arrow", ".7.arrow"):
        (directory(place) / chunks).with_suffix(suffix).touch()
    session.store.close()
    session.open()
    wait_for_sealer(session)
    assert file_names(place) == sorted([chunks, chunks.replace(".chunks", ".arrow")])
