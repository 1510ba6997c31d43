"""The job ``compact``: an archive has the same messages before, during and after it."""

import fcntl
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from pyspark.sql import SparkSession

from gateway_spark import compaction
from gateway_spark.archive import read_archive
from gateway_spark.compaction import Tidied, Tidying
from gateway_spark.jobs.compact import JOB
from gateway_spark.jobs.running import main
from gateway_spark.manifest import MANIFEST, files_in
from tests.pipeline.archives import write_file
from tests.pipeline.frames import after, values

MIB = 1024 * 1024


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """A day with five small files of one queue and three of another, and a day with one."""
    root = tmp_path / "archive"
    for first in range(0, 50, 10):
        write_file(root, [{}] * 10, first=first)
    for first in range(0, 30, 10):
        write_file(root, [{"queue": "mail"}] * 10, first=first, name="mail")
    write_file(root, [{"timestamp": after(days=1)}] * 10, first=100)
    return root


def day_of(root: Path) -> Path:
    return root / "vhost=%2F" / "date=2024-01-01"


def content(spark: SparkSession, root: Path) -> Counter[tuple[Any, ...]]:
    return Counter(values(read_archive(spark, root), "queue", "offset", "body", "timestamp"))


def compact(root: Path, *arguments: str) -> int:
    return main(JOB, ["--archive", str(root), "--out", str(root.parent / "out"), "--grace", "0s", *arguments])


def test_small_files_are_merged_to_one_for_each_archive(spark: SparkSession, archive: Path) -> None:
    before = content(spark, archive)
    assert compact(archive) == 0
    names = sorted(path.name for path in day_of(archive).glob("*.parquet"))
    assert [name.partition("-")[0] for name in names] == ["mail", "readings"]
    assert [file.rows for file in files_in(day_of(archive))] == [30, 50]
    assert content(spark, archive) == before
    assert compact(archive) == 0
    assert sorted(path.name for path in day_of(archive).glob("*.parquet")) == names
    assert "<svg" in (archive.parent / "out" / "report.html").read_text()


def test_a_merged_file_is_ordered_by_time(spark: SparkSession, archive: Path) -> None:
    compact(archive)
    path = next(day_of(archive).glob("readings*.parquet"))
    offsets = pyarrow.parquet.read_table(path).column("offset").to_pylist()
    assert offsets == list(range(50))


def test_a_merged_file_reaches_the_target_size_and_no_more(spark: SparkSession, archive: Path) -> None:
    size = next(day_of(archive).glob("readings*.parquet")).stat().st_size
    tidied = Tidying(spark, MIB, int(2.5 * size), 0).tidy(day_of(archive))
    assert (tidied.merged, tidied.made) == (4 + 2, 2 + 1)


def test_large_files_are_not_changed(spark: SparkSession, archive: Path) -> None:
    assert Tidying(spark, 10, MIB, 0).tidy(day_of(archive)) == Tidied.nothing(8)


def test_torn_and_left_over_files_are_deleted_and_unknown_ones_kept(spark: SparkSession, archive: Path) -> None:
    day = day_of(archive)
    (day / "torn-0-1.parquet").write_bytes(b"PAR1 torn")
    (day / "orphan-0-1-merged.parquet").write_bytes(next(day.glob("mail*")).read_bytes())
    (day / "foreign.parquet").write_bytes(next(day.glob("mail*")).read_bytes())
    (day / "_compact-1").mkdir()
    (day / "notes.txt").write_text("kept")
    before = content(spark, archive)
    assert Tidying(spark, 10, MIB, 3600).tidy(day).dropped == 0
    assert Tidying(spark, 10, MIB, 0).tidy(day).dropped == 2
    kept = {path.name for path in day.iterdir()}
    assert {"foreign.parquet", "notes.txt", MANIFEST} < kept
    assert not {"torn-0-1.parquet", "orphan-0-1-merged.parquet", "_compact-1"} & kept
    assert content(spark, archive) == before


def test_a_directory_without_a_manifest_gets_one(spark: SparkSession, archive: Path) -> None:
    (day_of(archive) / MANIFEST).unlink()
    before = content(spark, archive)
    assert Tidying(spark, MIB, MIB, 0).tidy(day_of(archive)).made == 2
    assert content(spark, archive) == before


class Killed(BaseException):
    """Simulates the end of the process: nothing in the job may catch it."""


STEPS: list[tuple[Any, str]] = [
    (compaction, "sync"),
    (Path, "rename"),
    (compaction, "append"),
    (Path, "unlink"),
    (compaction.shutil, "rmtree"),
    (os, "fsync"),
]


@pytest.mark.parametrize(("owner", "step"), STEPS, ids=[step for _, step in STEPS])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_job_killed_at_any_step_preserves_the_messages(
    spark: SparkSession, archive: Path, monkeypatch: pytest.MonkeyPatch, owner: Any, step: str, when: str
) -> None:
    before = content(spark, archive)
    real: Callable[..., Any] = getattr(owner, step)

    def dying(*arguments: Any, **options: Any) -> None:
        if when == "after":
            real(*arguments, **options)
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(owner, step, dying)
        with pytest.raises(Killed):
            Tidying(spark, MIB, MIB, 0).tidy(day_of(archive))
    assert content(spark, archive) == before
    Tidying(spark, MIB, MIB, 0).tidy(day_of(archive))
    Tidying(spark, MIB, MIB, 0).tidy(day_of(archive))
    assert content(spark, archive) == before
    assert len(list(day_of(archive).glob("*.parquet"))) == 2


def test_expired_days_are_deleted(spark: SparkSession, archive: Path) -> None:
    assert compact(archive, "--retain", "1d") == 0
    assert list((archive / "vhost=%2F").iterdir()) == []


def test_an_interrupted_deletion_is_completed(spark: SparkSession, archive: Path) -> None:
    day_of(archive).rename(day_of(archive).with_name("_expired-date=2024-01-01"))
    assert read_archive(spark, archive).count() == 10
    assert compact(archive) == 0
    assert [path.name for path in (archive / "vhost=%2F").iterdir()] == ["date=2024-01-02"]


def test_a_second_compaction_is_refused(spark: SparkSession, archive: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with (archive / "_compact.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert compact(archive) == 1
    assert "is locked by another compaction" in capsys.readouterr().err


def test_nothing_is_created_without_an_archive(spark: SparkSession, tmp_path: Path) -> None:
    assert compact(tmp_path / "absent") == 1
    assert not (tmp_path / "absent").exists()
