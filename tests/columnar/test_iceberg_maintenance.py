"""Compaction, expiry, tidying and adoption of Iceberg tables, with a broker that writes meanwhile."""

import fcntl
import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.table import Table

from gateway.columnar.encoding.parquet import Source, write_table
from gateway.columnar.encoding.pieces import DAY_MS
from gateway.columnar.encoding.schema import MESSAGES
from gateway.columnar.encoding.worker import Worker
from gateway.columnar.iceberg import adoption, segment_commits
from gateway.columnar.iceberg.adoption import adopt
from gateway.columnar.iceberg.catalogue import SCHEMAS, open_catalogue, open_table, register_table
from gateway.columnar.iceberg.compaction import Compacted, compact
from gateway.columnar.iceberg.retention import expire_rows, expire_snapshots
from gateway.columnar.iceberg.tidying import tidy
from gateway.columnar.reading.listed_file import FiledSource, Period
from gateway.columnar.reading.parquet_files import ParquetFiles
from gateway.columnar.tables.adopted import MARKER, has_unadopted_files, names_in
from gateway.columnar.tables.manifest import KnownNames
from gateway.kernel.errors import StorageError
from gateway.kernel.messages.message import Properties
from gateway.worker_process.framing import Frame
from tests.columnar.iceberg_tables import address_in, query, request
from tests.columnar.streams import MIDNIGHT_MS, NOON_MS, amqp, chunk, message, pieces

NOON = datetime.fromtimestamp(NOON_MS / 1000, UTC)
LATER = datetime.now(UTC) + timedelta(hours=1)
MIB = 1024 * 1024


class Archive:
    """An Iceberg table, its catalogue, and the worker of a broker."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.address = address_in(directory)
        self.worker = Worker()

    @property
    def catalogue(self) -> Catalog:
        return open_catalogue(self.address)

    @property
    def table(self) -> Table:
        return open_table(self.catalogue, self.address, "archive", SCHEMAS["archive"])

    def file(self, first: int, end: int, at_ms: int = NOON_MS, **fields: Any) -> None:
        header = amqp(Properties(headers={"n": 1}))
        chunks = chunk([message(b"%d" % n, header) for n in range(first, end)], first=first, at_ms=at_ms + first)
        answer = self.worker.answer(Frame(request(self.address, first, end, **fields), chunks))
        assert "error" not in answer.head, answer.head

    def compact(self, small: int = MIB, target: int = MIB) -> list[Compacted]:
        return list(compact(self.catalogue, self.table, small, target))

    def rows(self) -> list[tuple[Any, ...]]:
        columns = 'source, source_name, "offset", timestamp, headers, x_death, mqtt, decode(body)'
        return query(self.directory, columns, rest='ORDER BY source, source_name, timestamp, "offset"')

    def files(self) -> set[str]:
        return {task.file.file_path for task in self.table.scan().plan_files()}


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    return Archive(tmp_path)


def test_small_files_of_a_partition_are_merged_and_the_rows_stay(archive: Archive) -> None:
    for first in range(0, 50, 10):
        archive.file(first, first + 10)
    archive.file(0, 10, name="other", queue="other")
    archive.file(50, 60, at_ms=MIDNIGHT_MS)
    before = archive.rows()
    assert archive.compact() == [Compacted(5, 1)]
    assert archive.rows() == before
    assert len(archive.files()) == 3
    assert archive.compact() == []


def test_a_merged_file_has_about_the_target_size_and_large_files_stay(archive: Archive) -> None:
    for first in range(0, 40, 10):
        archive.file(first, first + 10)
    size = max(task.file.file_size_in_bytes for task in archive.table.scan().plan_files())
    assert archive.compact(small=10) == []
    assert archive.compact(target=2 * size) == [Compacted(2, 1), Compacted(2, 1)]
    assert len(archive.rows()) == 40


def test_a_compaction_and_the_broker_commit_at_the_same_time(archive: Archive) -> None:
    for first in range(0, 40, 10):
        archive.file(first, first + 10)
    size = max(task.file.file_size_in_bytes for task in archive.table.scan().plan_files())
    running = compact(archive.catalogue, archive.table, MIB, 2 * size)
    for first in (40, 50):  # both find that the other was first
        assert next(running) == Compacted(2, 1)
        archive.file(first, first + 10)
    assert list(running) == []
    assert [row[2] for row in archive.rows()] == list(range(60))


def test_two_compactions_at_the_same_time_repeat_no_row(archive: Archive) -> None:
    for first in range(0, 40, 10):
        archive.file(first, first + 10)
    one = compact(archive.catalogue, archive.table, MIB, MIB)
    stale = archive.table
    assert next(one) == Compacted(4, 1)
    with pytest.raises(StorageError, match="another writer has removed files of the table"):
        list(compact(archive.catalogue, stale, MIB, MIB))
    assert [row[2] for row in archive.rows()] == list(range(40))


def test_rows_expire_by_whole_files_and_are_not_filed_again(archive: Archive) -> None:
    archive.file(0, 10, at_ms=NOON_MS - DAY_MS)
    archive.file(10, 20)
    table, count = expire_rows(archive.catalogue, archive.table, NOON - timedelta(hours=12))
    assert count == 1
    assert [row[2] for row in archive.rows()] == list(range(10, 20))
    assert expire_rows(archive.catalogue, table, NOON)[1] == 0, "a file with later rows stays"
    archive.worker = Worker()
    archive.file(10, 20)
    assert len(archive.rows()) == 10


def test_tidying_removes_what_no_snapshot_needs(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    for first in range(0, 30, 10):
        archive.file(first, first + 10)
    archive.compact()
    before = archive.rows()
    assert tidy(archive.table, None, LATER) == 0
    orphan = archive.directory / "iceberg/archive/data/left-by-a-crash.parquet"
    orphan.write_bytes(b"torn")
    assert tidy(archive.table, None, datetime.now(UTC) - timedelta(hours=1)) == 0, "a commit may need a new file yet"
    assert tidy(archive.table, None, LATER) == 1
    assert expire_snapshots(archive.catalogue, archive.table, LATER) == 3
    assert tidy(archive.table, None, LATER) > 3
    assert len(list(orphan.parent.iterdir())) == 1
    assert archive.rows() == before
    monkeypatch.setattr(segment_commits, "_LONGEST_KEPT_S", 0)  # as after a minute
    archive.file(30, 40)
    assert [row[2] for row in archive.rows()] == list(range(40))


def test_snapshots_expire_up_to_the_current_one(archive: Archive) -> None:
    archive.file(0, 10)
    archive.file(10, 20)
    stale = archive.table
    archive.file(20, 30)
    assert expire_snapshots(archive.catalogue, stale, LATER) == 2
    assert [row[2] for row in archive.rows()] == list(range(30))


def test_tidying_removes_nothing_if_the_directory_lacks_files_of_the_table(archive: Archive) -> None:
    archive.file(0, 10)
    [data] = (archive.directory / "iceberg/archive/data").iterdir()
    data.rename(archive.directory / "elsewhere")
    (data.parent / "left").touch()
    with pytest.raises(StorageError, match="belongs to the table and is not in"):
        tidy(archive.table, None, LATER)
    assert (data.parent / "left").exists()


def test_a_table_that_the_catalogue_has_lost_is_not_created_anew(archive: Archive) -> None:
    archive.file(0, 10)
    (archive.directory / "iceberg/catalog.db").unlink()
    archive.worker = Worker()
    chunks = chunk([message()] * 10, first=10)
    answer = archive.worker.answer(Frame(request(archive.address, 10, 20), chunks))
    assert "has a table that the catalogue does not know: see gateway archive register" in answer.head["error"]
    register_table(archive.catalogue, archive.address, "archive")
    archive.file(0, 10)
    archive.file(10, 20)
    assert [row[2] for row in archive.rows()] == list(range(20))


# Adoption


class Parquet:
    """An archive in the Parquet layout."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, first: int, end: int, at_ms: int = NOON_MS, kind: str = "queue", name: str = "q") -> list[Path]:
        header = amqp(Properties(headers={"n": 1}))
        chunks = chunk([message(b"%d" % n, header) for n in range(first, end)], first=first, at_ms=at_ms)
        fields = {"kind": kind, "name": name, "queue": name if kind == "queue" else None}
        source = Source(self.root, "/", f"{kind}-{name}-1", fields)
        return [self.root / file for file in write_table(source, MESSAGES, pieces([chunks]), KnownNames())]


@pytest.fixture
def parquet(tmp_path: Path) -> Parquet:
    return Parquet(tmp_path / "archive")


def adopted(archive: Archive, parquet: Parquet) -> list[int]:
    """Adopt the Parquet files; return the number of new files of each day."""
    return [count for _, count in adopt(archive.catalogue, archive.table, "archive", parquet.root)]


def test_files_that_are_not_adopted_are_known_without_reading_them(archive: Archive, parquet: Parquet) -> None:
    assert not has_unadopted_files(parquet.root)
    parquet.write(0, 10)
    parquet.write(10, 20, at_ms=MIDNIGHT_MS)
    assert has_unadopted_files(parquet.root)
    adopted(archive, parquet)
    assert not has_unadopted_files(parquet.root)
    [file] = parquet.write(20, 30, at_ms=MIDNIGHT_MS)  # the format was set back
    os.utime(file.parent / "_manifest.jsonl", (NOON_MS, NOON_MS))
    assert has_unadopted_files(parquet.root)
    os.utime(file.parent / "_adopted.jsonl", (NOON_MS, NOON_MS))
    assert not has_unadopted_files(parquet.root)


def test_a_day_whose_rows_the_table_has_counts_as_adopted(archive: Archive, parquet: Parquet) -> None:
    parquet.write(0, 10)
    archive.file(0, 10, since_ms=1)
    assert adopted(archive, parquet) == [0]
    assert not has_unadopted_files(parquet.root)


def test_files_that_were_merged_are_no_longer_listed_in_the_parquet_layout(archive: Archive, parquet: Parquet) -> None:
    [one] = parquet.write(0, 10)
    parquet.write(10, 20)
    adopted(archive, parquet)
    archive.compact()
    expire_snapshots(archive.catalogue, archive.table, LATER)
    tidy(archive.table, parquet.root, LATER)
    assert not one.exists()
    [kept] = parquet.write(20, 30)
    files = ParquetFiles(parquet.root.parent).files(FiledSource("/", "queue", "q"), Period(0, 2**62), "")
    assert [Path(file.file) for file in files] == [kept]


def test_a_parquet_archive_is_taken_over_where_it_is(archive: Archive, parquet: Parquet) -> None:
    [file] = parquet.write(0, 10)
    parquet.write(10, 20, at_ms=MIDNIGHT_MS)
    parquet.write(0, 5, kind="exchange", name="amq.topic")
    content = file.read_bytes()
    assert adopted(archive, parquet) == [2, 1]
    assert (parquet.root / MARKER).exists()
    archive.file(20, 30, at_ms=MIDNIGHT_MS + 1000)
    rows = archive.rows()
    assert [row[:3] for row in rows] == [
        *(("exchange", "amq.topic", n) for n in range(5)),
        *(("queue", "q", n) for n in range(30)),
    ]
    assert {json.dumps(row[4]) for row in rows} == {'{"n": "1"}'}
    assert file.read_bytes() == content
    assert len(query(archive.directory, "*", rest="WHERE source_name = 'amq.topic'")) == 5
    assert len(query(archive.directory, "*", rest="WHERE timestamp >= '2023-11-15 00:00:00Z'")) == 20
    found = archive.table.scan(row_filter="source_name = 'q'", selected_fields=("source", "offset")).to_arrow()
    assert set(found["source"].to_pylist()) == {"queue"}


def test_adopting_again_adds_only_new_files(archive: Archive, parquet: Parquet) -> None:
    parquet.write(0, 10)
    assert adopted(archive, parquet) == [1]
    parquet.write(10, 20)
    assert adopted(archive, parquet) == [1]
    assert adopted(archive, parquet) == [0]
    assert len(archive.rows()) == 20


def test_an_adopted_file_is_not_adopted_again_after_a_compaction_and_a_crash(
    archive: Archive, parquet: Parquet, monkeypatch: pytest.MonkeyPatch
) -> None:
    parquet.write(0, 10)

    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(adoption, "append_names", crash)
        with pytest.raises(KeyboardInterrupt):
            adopted(archive, parquet)
    assert adopted(archive, parquet) == [0]
    archive.file(10, 20)
    before = archive.rows()
    assert archive.compact() == [Compacted(2, 1)]
    assert archive.rows() == before
    assert adopted(archive, parquet) == [0]
    assert len(archive.rows()) == 20


def test_a_segment_that_the_table_has_is_not_adopted(archive: Archive, parquet: Parquet) -> None:
    archive.file(0, 10)
    parquet.write(0, 10)
    assert adopted(archive, parquet) == [0]


def test_files_of_no_line_and_replaced_files_are_not_adopted(archive: Archive, parquet: Parquet) -> None:
    [old] = parquet.write(0, 10)
    [new] = parquet.write(10, 20)
    (old.parent / "foreign.parquet").write_bytes(old.read_bytes())
    with (old.parent / "_manifest.jsonl").open("a") as manifest:
        line = json.loads((old.parent / "_manifest.jsonl").read_text().splitlines()[1])
        print(json.dumps({**line, "replaces": [old.name]}), file=manifest)
    assert adopted(archive, parquet) == [1]
    assert names_in(old.parent) == {new.name}


def test_an_archive_under_compaction_is_not_adopted(archive: Archive, parquet: Parquet) -> None:
    parquet.write(0, 10)
    with (parquet.root / "_compact.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(StorageError, match="is locked by a compaction of the pipeline"):
            adopted(archive, parquet)
    assert not (parquet.root / MARKER).exists()


def test_rows_of_several_days_in_one_file_are_refused(archive: Archive, parquet: Parquet) -> None:
    [file] = parquet.write(0, 10)
    [other] = parquet.write(10, 20, at_ms=MIDNIGHT_MS)
    both = pq.read_table(file, partitioning=None), pq.read_table(other, partitioning=None)
    with pq.ParquetWriter(file, MESSAGES) as writer:
        for table in both:
            writer.write_table(table)
    with pytest.raises(StorageError, match="its rows are of several days"):
        adopted(archive, parquet)


def test_adopted_files_are_removed_once_no_snapshot_needs_them(archive: Archive, parquet: Parquet) -> None:
    [file] = parquet.write(0, 10)
    adopted(archive, parquet)
    archive.file(10, 20)
    archive.compact()
    assert tidy(archive.table, parquet.root, LATER) == 0
    expire_snapshots(archive.catalogue, archive.table, LATER)
    os.utime(file, (0, 0))
    tidy(archive.table, parquet.root, LATER)
    assert not file.exists()
    assert len(archive.rows()) == 20
