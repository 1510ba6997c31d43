"""The parts a roll-up writes batch by batch: they stay bounded, and their result is correct whenever the driver is
killed.
"""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from gateway_spark.errors import OptionError
from gateway_spark.jobs import updates as module
from gateway_spark.jobs.outputs import SPARKS_END, Outputs
from gateway_spark.jobs.updates import Updates

FOLD = 2
DEVICES = ("a", "b", "c")


@pytest.fixture(scope="module", autouse=True)
def often() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "FOLD", FOLD)
        yield


def checkpoint_of(directory: Path, query: str, *commits: int) -> Path:
    """Write the parts of a checkpoint that are read."""
    for name in ("offsets", "commits"):
        (directory / name).mkdir(parents=True, exist_ok=True)
        for batch in commits:
            (directory / name / str(batch)).write_text("v1\n{}\n")
    (directory / "metadata").write_text(json.dumps({"id": query}))
    return directory


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return checkpoint_of(tmp_path / "checkpoint", "one")


def updates_in(out: Path, checkpoint: Path | None) -> Updates:
    return Updates(Outputs(out), ["device"], checkpoint)


def changed(spark: SparkSession, batch: int) -> DataFrame:
    """Return the change of a batch: the window of one device, whose count is the number of the batch."""
    schema = "device string, window_start long, window_end long, field string, count long"
    return spark.createDataFrame([(DEVICES[batch % 3], 0, 1, "t", batch)], schema)


def counts(spark: SparkSession, updates: Updates) -> dict[str, int]:
    windows = updates.latest(spark)
    return {} if windows is None else {row["device"]: row["count"] for row in windows.collect()}


def expected(last: int) -> dict[str, int]:
    return {DEVICES[batch % 3]: batch for batch in range(last + 1)}


def parts(out: Path) -> list[int]:
    return sorted(int(path.name.partition("=")[2]) for path in (out / "updates").glob("batch=*"))


def test_the_number_of_parts_is_bounded_and_the_latest_windows_are_read(
    spark: SparkSession, tmp_path: Path, checkpoint: Path
) -> None:
    updates = updates_in(tmp_path, checkpoint)
    updates.begin()
    found = []
    for batch in range(7):
        updates.write(changed(spark, batch), batch)
        found.append(parts(tmp_path))
    assert counts(spark, updates) == expected(6)
    assert found == [[0], [0, 1], [0, 1, 2], [0, 1, 2, 3], [2, 3, 4], [2, 3, 4, 5], [4, 5, 6]]


def test_a_reader_during_a_fold_can_finish(spark: SparkSession, tmp_path: Path, checkpoint: Path) -> None:
    updates = updates_in(tmp_path, checkpoint)
    for batch in range(FOLD):
        updates.write(changed(spark, batch), batch)
    reader = updates.latest(spark)
    assert reader is not None
    for batch in range(FOLD, 2 * FOLD):
        updates.write(changed(spark, batch), batch)
    assert {row["device"]: row["count"] for row in reader.collect()} == expected(FOLD - 1)


@pytest.fixture(scope="module")
def followed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of a query that is about to fold for the second time."""
    out = tmp_path_factory.mktemp("followed")
    updates = updates_in(out, checkpoint_of(out / "checkpoint", "one"))
    for batch in range(2 * FOLD):
        updates.write(changed(spark, batch), batch)
    return out


class Killed(Exception):
    """Simulates the death of the driver."""


def before_the_part(real: Callable[..., None], outputs: Outputs, *part: Any) -> None:
    raise Killed


def with_a_torn_part(real: Callable[..., None], outputs: Outputs, *part: Any) -> None:
    real(outputs, *part)
    (outputs.directory / part[0] / f"{part[1]}={part[2]}" / SPARKS_END).unlink()
    raise Killed


def behind_the_part(real: Callable[..., None], outputs: Outputs, *part: Any) -> None:
    real(outputs, *part)
    raise Killed


def amid_an_old_part(real: Callable[..., None], path: Path, **options: Any) -> None:
    if options:  # this part is not one that deletes old parts
        real(path, **options)
        return
    (path / SPARKS_END).unlink()
    raise Killed


def behind_an_old_part(real: Callable[..., None], path: Path, **options: Any) -> None:
    real(path, **options)
    if not options:
        raise Killed


WRITES, REMOVES = "gateway_spark.jobs.outputs.Outputs.write_part", "shutil.rmtree"
DEATHS = [
    (WRITES, Outputs.write_part, before_the_part),
    (WRITES, Outputs.write_part, with_a_torn_part),
    (WRITES, Outputs.write_part, behind_the_part),
    (REMOVES, shutil.rmtree, amid_an_old_part),
    (REMOVES, shutil.rmtree, behind_an_old_part),
]


@pytest.mark.parametrize(("name", "real", "death"), DEATHS, ids=lambda value: getattr(value, "__name__", ""))
def test_a_driver_killed_at_a_fold_leaves_correct_results(
    spark: SparkSession,
    followed: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    real: Callable[..., None],
    death: Callable[..., None],
) -> None:
    out = shutil.copytree(followed, tmp_path / "out")
    batch = 2 * FOLD
    with monkeypatch.context() as patch:
        patch.setattr(name, lambda *given, **options: death(real, *given, **options))
        with pytest.raises(Killed):
            updates_in(out, out / "checkpoint").write(changed(spark, batch), batch)
    after = updates_in(out, out / "checkpoint")
    after.begin()
    after.write(changed(spark, batch), batch)  # Spark repeats batches without a recorded end
    for later in range(batch + 1, batch + FOLD + 1):
        after.write(changed(spark, later), later)
    assert counts(spark, after) == expected(batch + FOLD)
    assert parts(out) == [batch, batch + 1, batch + 2]


def test_a_repeated_batch_is_not_written_again(spark: SparkSession, tmp_path: Path, checkpoint: Path) -> None:
    updates = updates_in(tmp_path, checkpoint)
    updates.write(changed(spark, 0), 0)
    written = sorted((tmp_path / "updates" / "batch=0").iterdir())
    updates.write(changed(spark, 0), 0)
    assert sorted((tmp_path / "updates" / "batch=0").iterdir()) == written


def test_a_query_without_a_checkpoint_starts_from_the_beginning(spark: SparkSession, tmp_path: Path) -> None:
    first, second = updates_in(tmp_path, None), updates_in(tmp_path, None)
    first.begin()
    for batch in range(2):
        first.write(changed(spark, batch), batch)
    second.begin()
    assert second.latest(spark) is None
    second.write(changed(spark, 0), 0)
    assert counts(spark, second) == {"a": 0}


def test_the_updates_of_another_query_are_not_changed(spark: SparkSession, tmp_path: Path, checkpoint: Path) -> None:
    first = updates_in(tmp_path, checkpoint)
    first.begin()
    first.write(changed(spark, 0), 0)
    for other in (checkpoint_of(tmp_path / "other", "two", 0), tmp_path / "fresh"):
        with pytest.raises(OptionError, match="belongs to another query than"):
            updates_in(tmp_path, other).begin()
    updates_in(tmp_path, checkpoint).begin()
    assert counts(spark, first) == {"a": 0}


def test_a_continued_query_requires_its_earlier_updates(spark: SparkSession, tmp_path: Path) -> None:
    checkpoint = checkpoint_of(tmp_path / "checkpoint", "one", 0, 1)
    with pytest.raises(OptionError, match="its earlier results are not in"):
        updates_in(tmp_path, checkpoint).begin()


def test_updates_without_an_owner_are_replaced_by_a_new_query(spark: SparkSession, tmp_path: Path) -> None:
    unclaimed = updates_in(tmp_path, None)
    unclaimed.write(changed(spark, 1), 1)
    fresh = updates_in(tmp_path, tmp_path / "fresh")
    fresh.begin()
    assert fresh.latest(spark) is None
