"""Kills by SIGKILL at each point of both commits of a typed segment: each message is in exactly one table, once."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.columnar.iceberg_tables import query, rows_in
from tests.columnar.killed_typed_commits import DEAD, POINTS, TYPED
from tests.columnar.killed_workers import KilledWorkers


class Workers(KilledWorkers):
    """The process whose forks are workers."""

    def __init__(self, directory: Path) -> None:
        super().__init__("tests.columnar.killed_typed_commits", directory)
        self._directory = directory

    def file(self, first: int, point: str = "answer", table: str = TYPED, most: int = 4) -> str:
        """Let a worker file a segment of ten messages up to a point; return its answer, or ``killed``.

        The schema accepts the numbers up to ``most`` of 0 to 9.
        """
        return self.ask(point, table, first, first + 10, most)

    def offsets(self, table: str) -> list[int]:
        """Return the offsets that both readers find by the hint in a table's directory."""
        if not (self._directory / "iceberg" / table).exists():
            return []
        by_duck = sorted(offset for (offset,) in query(self._directory, '"offset"', table))
        assert by_duck == sorted(rows_in(self._directory, table)["offset"].to_pylist())
        return by_duck


@pytest.fixture
def workers(tmp_path: Path) -> Iterator[Workers]:
    workers = Workers(tmp_path)
    yield workers
    workers.end()


def test_a_kill_at_each_point_of_both_commits_neither_loses_nor_repeats_a_row(workers: Workers) -> None:
    assert "files" in workers.file(0)
    count = 10
    for table in (TYPED, DEAD):
        for point in POINTS:
            assert workers.file(count, point, table) == "killed"
            assert "files" in workers.file(count)
            count += 10
        assert workers.offsets(DEAD) == [offset for offset in range(count) if offset % 10 > 4], table
        assert "'files': []" in workers.file(count - 10)
        assert workers.offsets(TYPED) == [offset for offset in range(count) if offset % 10 <= 4], table


@pytest.mark.parametrize(("before", "after"), [(4, 9), (9, -1)])
def test_another_schema_after_a_kill_between_the_commits_does_not_move_rows(
    workers: Workers, before: int, after: int
) -> None:
    workers.file(0)
    assert workers.file(10, "swap", TYPED, before) == "killed"
    assert "files" in workers.file(10, most=after)
    decided = range(10, 11 + before)
    assert workers.offsets(TYPED) == [*range(5), *decided], "the first commit has decided"
    assert workers.offsets(DEAD) == [*range(5, 10), *range(decided.stop, 20)]


def test_kills_of_every_worker_with_other_schemas_lose_nothing(workers: Workers) -> None:
    workers.file(0)
    for most, (table, point) in enumerate(
        [(TYPED, "data files"), (TYPED, "swap"), (DEAD, "data files"), (DEAD, "swap")]
    ):
        assert workers.file(10, point, table, most) == "killed"
    assert "files" in workers.file(10, most=9)
    both = [*workers.offsets(TYPED), *workers.offsets(DEAD)]
    assert sorted(both) == list(range(20))
