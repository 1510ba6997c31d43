"""Tables of a REST catalogue: segments are filed once although answers are lost, and the commands maintain them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.cli.main import main
from gateway.columnar.encoding.worker import Worker
from tests.columnar.iceberg_tables import query, rows_in
from tests.columnar.rest_catalogue import AFTER, BEFORE
from tests.columnar.served_tables import ServedTables, serving


@pytest.fixture
def served(tmp_path: Path) -> Iterator[ServedTables]:
    with serving(tmp_path) as served:
        yield served


def test_a_segment_is_filed_once_although_an_answer_is_lost(served: ServedTables) -> None:
    worker = Worker()
    assert served.file(worker, 0, 10) == ""
    for first, fault in ((10, BEFORE), (20, AFTER)):
        served.fail(fault)
        assert served.file(worker, first, first + 10) != ""
        assert served.offsets() == list(range(first if fault == BEFORE else first + 10))
        assert served.file(worker, first, first + 10) == ""
        assert served.offsets() == list(range(first + 10))
    assert rows_in(served.directory).num_rows == 30  # by the hint, without the catalogue


def test_the_table_is_created_once_although_the_answer_is_lost(served: ServedTables) -> None:
    served.fail(AFTER)
    assert served.file(Worker(), 0, 5) != ""
    assert served.file(Worker(), 0, 5) == ""
    assert served.offsets() == list(range(5))


def test_a_catalogue_that_was_away_gets_the_segments_later(served: ServedTables) -> None:
    worker = Worker()
    assert served.file(worker, 0, 5) == ""
    served.kill()
    assert "Connection refused" in served.file(worker, 5, 10)
    served.start()
    assert served.file(worker, 5, 10) == ""
    assert served.offsets() == list(range(10))


def test_the_commands_maintain_a_table(served: ServedTables, capsys: pytest.CaptureFixture[str]) -> None:
    worker = Worker()
    for first in range(3):
        assert served.file(worker, first, first + 1) == ""
    settings = (
        "archive.format=iceberg",
        f"archive.catalog={served.uri}",
        f"archive.warehouse={served.address.location}",
    )
    given = ["archive", "--data", str(served.directory), *(word for each in settings for word in ("--set", each))]
    for command in (["status"], ["compact"], ["expire", "--rows", "30m", "--snapshots", "30m"], ["tidy"]):
        assert main([*given, *command]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].startswith("archive rows=3 files=3 bytes=")
    assert shown[1:] == [
        "archive: 3 files merged into 1",
        "archive: 1 files of rows expired",
        "archive: 0 snapshots expired",
        "archive: 0 files removed",
    ]
    assert query(served.directory, "count(*)") == [(0,)]
    served.kill()
    (served.directory / "served" / "served.db").unlink()
    served.start()
    assert "gateway archive register" in served.file(Worker(), 3, 4)
    assert main([*given, "register", "archive"]) == 0
    assert served.file(worker, 3, 4) == ""
    assert served.offsets() == [3]
