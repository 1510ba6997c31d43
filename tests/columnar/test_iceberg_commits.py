"""Segments in an Iceberg table: each in one commit, exactly once."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException, CommitStateUnknownException
from pyiceberg.transforms import HourTransform

from gateway.columnar.encoding.worker import Worker
from gateway.columnar.iceberg.catalogue import open_catalogue
from gateway.columnar.iceberg.segment import FILED, with_identities
from gateway.columnar.tables.iceberg_address import IcebergAddress
from gateway.kernel.messages.message import Message, Properties
from gateway.kernel.messages.native_header import native_header
from gateway.worker_process.framing import Frame
from tests.columnar.iceberg_tables import address_in, query, request, rows_in, table_in
from tests.columnar.streams import MIDNIGHT_MS, NOON_MS, chunk, message


class Table:
    """A table and the worker that writes it."""

    def __init__(self, directory: Path, **settings: Any) -> None:
        self.directory = directory
        self.address: IcebergAddress = address_in(directory, **settings)
        self.worker = Worker()

    def restart(self) -> None:
        self.worker = Worker()

    def file(self, first: int, end: int, *, at_ms: int = NOON_MS, **fields: Any) -> list[str]:
        """File messages; return the new files."""
        chunks = chunk([message(b"%d" % number) for number in range(first, end)], first=first, at_ms=at_ms)
        answer = self.worker.answer(Frame(request(self.address, first, end, **fields), chunks))
        if error := answer.head.get("error"):
            raise RuntimeError(error)
        return list(answer.head["files"])

    def offsets(self) -> list[int]:
        """Return the offsets that both readers find."""
        by_duck = sorted(offset for (offset,) in query(self.directory, '"offset"'))
        assert by_duck == sorted(rows_in(self.directory)["offset"].to_pylist())
        return by_duck


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table(tmp_path)


def test_a_segment_is_one_snapshot_with_all_columns(table: Table) -> None:
    [file] = table.file(0, 3)
    columns = 'vhost, queue, source, source_name, "offset", epoch_ms(timestamp), protocol, decode(body)'
    assert query(table.directory, columns, rest='ORDER BY "offset"') == [
        ("/", "q", "queue", "q", number, NOON_MS + number, "amqp-0-9-1", str(number)) for number in range(3)
    ]
    found = table_in(table.directory)
    [snapshot] = found.snapshots()
    assert snapshot.summary is not None
    assert (snapshot.summary["gateway.first"], snapshot.summary["gateway.next"]) == ("0", "3")
    [planned] = found.scan(row_filter="source_name = 'q' and timestamp >= '2023-11-14T00:00:00+00:00'").plan_files()
    assert planned.file.file_path == file
    assert list(found.scan(row_filter="source_name = 'other'").plan_files()) == []


def test_a_segment_of_two_days_is_one_commit(table: Table) -> None:
    assert len(table.file(0, 10, at_ms=MIDNIGHT_MS - 5)) == 2
    found = table_in(table.directory)
    assert len(found.snapshots()) == 1
    assert sorted(entry.file.record_count for entry in found.scan().plan_files()) == [5, 5]


@pytest.mark.parametrize("is_restarted", [False, True])
def test_a_repeated_request_adds_nothing(table: Table, is_restarted: bool) -> None:
    for first in (0, 10, 20):
        assert table.file(first, first + 10)
        if is_restarted:
            table.restart()
        assert table.file(first, first + 10) == []
    assert table.offsets() == list(range(30))


def test_a_restored_store_that_uses_offsets_again_loses_nothing(table: Table) -> None:
    table.file(0, 10)
    assert table.file(5, 8)
    assert len(table.offsets()) == 13


def test_archives_of_one_name_are_told_apart_by_their_start(table: Table) -> None:
    assert table.file(0, 5)
    assert table.file(0, 5, since_ms=2)
    assert table.file(0, 5, vhost="other")
    assert table.file(0, 5, source="exchange", queue=None)
    assert len(table.offsets()) == 20


def test_two_workers_that_repeat_one_segment_add_it_once(tmp_path: Path) -> None:
    first, second = Table(tmp_path), Table(tmp_path)
    first.file(0, 10)
    second.file(10, 20)
    assert first.file(10, 20) == []  # its copy of the table is older than the commit
    assert first.file(20, 30)
    assert second.file(20, 30) == []
    assert first.offsets() == list(range(30))
    assert len(list((tmp_path / "iceberg/archive/data").iterdir())) == 3, "the files of the loser are removed"


@pytest.mark.parametrize("is_committed", [False, True])
def test_after_a_lost_answer_of_the_catalogue_the_outcome_is_found_out(
    table: Table, monkeypatch: pytest.MonkeyPatch, is_committed: bool
) -> None:
    table.file(0, 5)
    commit: Callable[..., Any] = SqlCatalog.commit_table

    def lost(*arguments: Any) -> None:
        if is_committed:
            commit(*arguments)
        raise CommitStateUnknownException("the connection was closed")

    with monkeypatch.context() as patched:
        patched.setattr(SqlCatalog, "commit_table", lost)
        with pytest.raises(RuntimeError, match="the connection was closed"):
            table.file(5, 9)
    assert bool(table.file(5, 9)) is not is_committed
    assert table.offsets() == list(range(9))


def test_a_commit_that_always_loses_fails_and_leaves_no_file(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    table.file(0, 5)

    def refused(*arguments: Any) -> None:
        raise CommitFailedException("another writer was first")

    with monkeypatch.context() as patched:
        patched.setattr(SqlCatalog, "commit_table", refused)
        with pytest.raises(RuntimeError, match="other writers of the table archive were faster 20 times"):
            table.file(5, 9)
    assert len(list((table.directory / "iceberg/archive/data").iterdir())) == 1
    assert table.file(5, 9)


def test_snapshots_are_bounded_and_their_expiry_repeats_nothing(tmp_path: Path) -> None:
    table = Table(tmp_path, snapshots=10)
    for number in range(14):
        table.file(number, number + 1)
    assert len(table_in(tmp_path).snapshots()) <= 11
    table.restart()
    assert table.file(13, 14) == []
    assert table.offsets() == list(range(14))


def test_the_identities_of_segments_are_bounded() -> None:
    kept = with_identities({FILED: " ".join(map(str, range(256)))}, ["new"]).split()
    assert (len(kept), kept[0], kept[-1]) == (256, "1", "new")


def test_columns_of_the_operator_stay_and_missing_ones_are_added(table: Table) -> None:
    table.file(0, 2)
    mine = open_catalogue(table.address).load_table("gateway.archive")
    with mine.update_schema() as update:
        update.add_column("note", mine.schema().find_type("vhost"))
        update.delete_column("app_id")
    table.restart()
    table.file(2, 4)
    assert query(table.directory, 'count(*), count(note), count("offset")') == [(4, 0, 4)]
    assert "app_id" in table_in(table.directory).schema().column_names


def test_partitions_that_divide_a_file_are_refused(table: Table) -> None:
    table.file(0, 2)
    with open_catalogue(table.address).load_table("gateway.archive").update_spec() as spec:
        spec.add_field("timestamp", HourTransform(), "hour")
    table.restart()
    with pytest.raises(RuntimeError, match="partition field hour has several values in one file"):
        table.file(2, 4)


def test_a_file_system_of_fsspec_can_be_used(tmp_path: Path) -> None:
    table = Table(tmp_path, catalog_properties="py-io-impl=pyiceberg.io.fsspec.FsspecFileIO")
    for _ in range(2):
        table.file(0, 3)
        table.restart()
    assert table.offsets() == [0, 1, 2]


def test_a_trace_is_a_table_of_its_own(table: Table) -> None:
    row = b'["publish",%d,5,"amqp091","c","guest",null,"e","k","m",9,null,null,null,null,4]' % NOON_MS
    turns = [Message("", "", native_header(Properties()), b"[%b]" % b",".join([row] * count)) for count in (1, 3)]
    fields = {"table": "trace", "kind": "trace", "queue": None, "source": "trace", "name": ""}
    for _ in range(2):
        answer = table.worker.answer(Frame(request(table.address, 0, 2, **fields), chunk(turns)))
        assert "error" not in answer.head
    assert query(table.directory, "event, trace_id, count(*)", "trace", "GROUP BY ALL") == [("publish", 9, 4)]
