"""Kills by SIGKILL at each point of a commit: a reader sees whole segments, and after the repetition each row once."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.columnar.iceberg_tables import query, rows_in
from tests.columnar.killed_commits import POINTS
from tests.running import PROJECT

#: Points at which the segment is in the table.
COMMITTED = ("swap", "hint", "answer")


class Workers:
    """The process whose forks are workers."""

    def __init__(self, directory: Path) -> None:
        command = [sys.executable, "-m", "tests.columnar.killed_commits", str(directory)]
        self._process = subprocess.Popen(
            command, cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={"PYTHONPATH": ":".join(path for path in sys.path if path)},
        )  # fmt: skip

    def file(self, point: str, first: int, end: int) -> str:
        """Let a worker file a segment up to a point; return its answer, or ``killed``."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(point, first, end, sep=";", file=self._process.stdin, flush=True)
        return self._process.stdout.readline().strip()

    def end(self) -> None:
        self._process.kill()
        self._process.communicate()


@pytest.fixture
def workers(tmp_path: Path) -> Iterator[Workers]:
    workers = Workers(tmp_path)
    yield workers
    workers.end()


def offsets(directory: Path) -> list[int]:
    """Return the offsets that both readers find by the hint in the table's directory."""
    by_duck = sorted(offset for (offset,) in query(directory, '"offset"'))
    assert by_duck == sorted(rows_in(directory)["offset"].to_pylist())
    return by_duck


def test_a_kill_at_each_point_neither_loses_nor_repeats_a_row(workers: Workers, tmp_path: Path) -> None:
    assert "files" in workers.file("answer", 0, 10)
    filed = 10
    for point in POINTS:
        answer = workers.file(point, filed, filed + 10)
        assert (answer == "killed") is (point != "answer"), answer
        seen = offsets(tmp_path)  # the hint follows the commit, so that a reader may see the segment later
        assert seen in (list(range(filed)), list(range(filed + 10)))
        again = workers.file("answer", filed, filed + 10)
        assert ("'files': []" in again) is (point in COMMITTED), (point, again)
        filed += 10
        assert offsets(tmp_path) == list(range(filed))


def test_a_kill_while_the_table_is_created_loses_nothing(workers: Workers, tmp_path: Path) -> None:
    assert [workers.file(point, 0, 5) for point in ("metadata", "swap")] == ["killed", "killed"]
    assert "files" in workers.file("answer", 0, 5)
    assert offsets(tmp_path) == list(range(5))


def test_a_worker_that_is_killed_again_and_again_files_the_segment_once(workers: Workers, tmp_path: Path) -> None:
    for point in POINTS:
        workers.file(point, 0, 5)
    assert offsets(tmp_path) == list(range(5))
