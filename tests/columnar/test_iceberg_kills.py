"""Kills by SIGKILL at each point of a commit: a reader sees whole segments, and after the repetition each row once."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.columnar.iceberg_tables import query, rows_in
from tests.columnar.killed_commits import POINTS
from tests.columnar.killed_workers import KilledWorkers

#: Points at which the segment is in the table.
COMMITTED = ("swap", "hint", "answer")


@pytest.fixture
def workers(tmp_path: Path) -> Iterator[KilledWorkers]:
    workers = KilledWorkers("tests.columnar.killed_commits", tmp_path)
    yield workers
    workers.end()


def offsets(directory: Path) -> list[int]:
    """Return the offsets that both readers find by the hint in the table's directory."""
    by_duck = sorted(offset for (offset,) in query(directory, '"offset"'))
    assert by_duck == sorted(rows_in(directory)["offset"].to_pylist())
    return by_duck


def test_a_kill_at_each_point_neither_loses_nor_repeats_a_row(workers: KilledWorkers, tmp_path: Path) -> None:
    assert "files" in workers.ask("answer", 0, 10)
    filed = 10
    for point in POINTS:
        answer = workers.ask(point, filed, filed + 10)
        assert (answer == "killed") is (point != "answer"), answer
        seen = offsets(tmp_path)  # the hint follows the commit, so that a reader may see the segment later
        assert seen in (list(range(filed)), list(range(filed + 10)))
        again = workers.ask("answer", filed, filed + 10)
        assert ("'files': []" in again) is (point in COMMITTED), (point, again)
        filed += 10
        assert offsets(tmp_path) == list(range(filed))


def test_a_kill_while_the_table_is_created_loses_nothing(workers: KilledWorkers, tmp_path: Path) -> None:
    assert [workers.ask(point, 0, 5) for point in ("metadata", "swap")] == ["killed", "killed"]
    assert "files" in workers.ask("answer", 0, 5)
    assert offsets(tmp_path) == list(range(5))


def test_a_worker_that_is_killed_again_and_again_files_the_segment_once(workers: KilledWorkers, tmp_path: Path) -> None:
    for point in POINTS:
        workers.ask(point, 0, 5)
    assert offsets(tmp_path) == list(range(5))
