"""The Parquet files of a table: one for each day, listed in the manifest, written once despite repeated requests."""

import json
from collections.abc import Iterable
from datetime import date
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from gateway.columnar.encoding.parquet import Source, write_table
from gateway.columnar.encoding.pieces import Piece
from gateway.columnar.encoding.schema import MESSAGES
from gateway.columnar.tables.manifest import NAME, KnownNames, append_line, lines
from gateway.columnar.tables.table_directory import day_directory, exclusively, shortened, sweep
from tests.columnar.streams import MIDNIGHT_MS, NOON_MS, chunk, message, pieces

STEM = "queue-q-18bd0"


def written(table: Path, found: Iterable[Piece], known: KnownNames | None = None) -> list[str]:
    source = Source(table, "/", STEM, {"kind": "queue", "name": "q", "queue": "q"})
    return write_table(source, MESSAGES, found, known or KnownNames())


def day_of(table: Path) -> Path:
    return day_directory(table, "/", date(2023, 11, 14))


def test_a_file_has_the_rows_and_is_listed_in_the_manifest(tmp_path: Path) -> None:
    [name] = written(tmp_path, pieces([chunk([message()] * 10, first=5)]))
    assert name == f"vhost=%2F/date=2023-11-14/{STEM}-{5:020}-{15:020}.parquet"
    table = pq.ParquetFile(tmp_path / name).read()
    assert table.schema.equals(MESSAGES)
    assert table["offset"].to_pylist() == list(range(5, 15))
    [line] = lines((tmp_path / name).parent)
    assert line == {
        "file": Path(name).name, "kind": "queue", "name": "q", "queue": "q", "rows": 10, "first": 5, "next": 15,
        "first_ms": NOON_MS, "last_ms": NOON_MS + 9, "bytes": (tmp_path / name).stat().st_size,
    }  # fmt: skip


def test_rows_on_both_sides_of_midnight_are_written_to_one_file_for_each_day(tmp_path: Path) -> None:
    one, other = written(tmp_path, pieces([chunk([message()] * 10, at_ms=MIDNIGHT_MS - 4)]))
    assert one == f"vhost=%2F/date=2023-11-14/{STEM}-{0:020}-{4:020}.parquet"
    assert other == f"vhost=%2F/date=2023-11-15/{STEM}-{4:020}-{10:020}.parquet"


def test_writing_again_changes_nothing(tmp_path: Path) -> None:
    found = pieces([chunk([message()] * 10, at_ms=MIDNIGHT_MS - 4)])
    first = written(tmp_path, found)
    before = {name: (tmp_path / name).stat().st_ino for name in first}
    assert written(tmp_path, found) == first
    assert {name: (tmp_path / name).stat().st_ino for name in first} == before
    assert len(list(lines(day_of(tmp_path)))) == 1


def test_a_file_without_its_manifest_line_is_written_again(tmp_path: Path) -> None:
    """A crash between the two leaves the file; the next run writes the same file and adds its line."""
    found = pieces([chunk([message()] * 10)])
    [name] = written(tmp_path, found)
    (tmp_path / name).write_bytes(b"torn")
    (day_of(tmp_path) / NAME).unlink()
    assert written(tmp_path, found) == [name]
    assert pq.ParquetFile(tmp_path / name).metadata.num_rows == 10


@pytest.mark.parametrize("line", [{"replaces": True}, {"replaces": False}])
def test_files_replaced_by_a_compaction_are_not_written_again(tmp_path: Path, line: dict[str, bool]) -> None:
    found = pieces([chunk([message()] * 10)])
    [name] = written(tmp_path, found)
    if line["replaces"]:
        (day_of(tmp_path) / NAME).unlink()
        append_line(day_of(tmp_path), {"file": "compact-1.parquet", "replaces": [Path(name).name]})
    (tmp_path / name).unlink()
    written(tmp_path, found)
    assert not (tmp_path / name).exists()


def test_torn_and_invalid_lines_are_skipped_and_the_next_line_is_complete(tmp_path: Path) -> None:
    manifest = tmp_path / NAME
    manifest.write_bytes(b'{"file":"a"}\nnonsense\n[1]\n{"no":"file"}\n\xff\xfe\n{"file":"torn')
    append_line(tmp_path, {"file": "b", "replaces": ["c", 5]})
    assert [line["file"] for line in lines(tmp_path)] == ["a", "b"]
    assert KnownNames().names_in(tmp_path) == {"a", "b", "c"}
    assert json.loads(manifest.read_bytes().splitlines()[-1])["file"] == "b"


def test_a_manifest_is_read_incrementally_including_lines_of_others(tmp_path: Path) -> None:
    known = KnownNames()
    assert known.names_in(tmp_path) == set()
    append_line(tmp_path, {"file": "a"})
    assert known.names_in(tmp_path) == {"a"}
    with (tmp_path / NAME).open("ab") as manifest:
        manifest.write(b'{"file":"torn')
    assert known.names_in(tmp_path) == {"a"}
    append_line(tmp_path, {"file": "b"})
    assert known.names_in(tmp_path) == {"a", "b"}


def test_a_file_in_the_cache_of_names_is_not_written_again(tmp_path: Path) -> None:
    known, found = KnownNames(), pieces([chunk([message()] * 10)])
    assert written(tmp_path, found, known) == written(tmp_path, found, known)
    assert len(list(lines(day_of(tmp_path)))) == 1


def test_unknown_files_are_ignored_and_partial_files_are_removed(tmp_path: Path) -> None:
    directory = day_of(tmp_path)
    directory.mkdir(parents=True)
    half = directory / ".queue-q-1-0-5.parquet.123.tmp"
    foreign = directory / "holiday.parquet"
    for path in (half, foreign):
        path.write_bytes(b"nonsense")
    with exclusively(tmp_path):
        sweep(tmp_path)
        written(tmp_path, pieces([chunk([message()])]))
    assert not half.exists()
    assert foreign.read_bytes() == b"nonsense"


@pytest.mark.parametrize(
    ("name", "path"),
    [("/", "%2F"), ("_hidden", "_hidden"), ("a.b", "a.b"), ("", ""), ("ä b", "%C3%A4%20b"), ("..", "..")],
)
def test_names_are_encoded_so_that_they_contain_no_path(name: str, path: str) -> None:
    assert shortened(name) == path


def test_long_names_stay_distinct_and_fit_into_a_file_name() -> None:
    names = [shortened("ß" * 120 + end) for end in ("1", "2")]
    assert len(set(names)) == 2
    assert all(len(name) < 160 for name in names)
