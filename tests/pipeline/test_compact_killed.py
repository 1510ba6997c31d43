"""``compact`` killed with SIGKILL at any time leaves every message in the archive exactly once."""

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any, Final

import pytest
from pyspark.sql import SparkSession

from gateway_spark.archive import days, read_archive
from gateway_spark.jobs.compact import JOB
from gateway_spark.jobs.running import main
from gateway_spark.manifest import files_in, lines_of
from tests.pipeline.archives import write_file
from tests.pipeline.frames import after, values
from tests.waiting import wait_until

DAYS: Final = 12
FILES: Final = 4

TIMEOUT_S: Final = 120.0


def content(spark: SparkSession, archive: Path) -> Counter[tuple[Any, ...]]:
    return Counter(values(read_archive(spark, archive), "queue", "offset", "body"))


def merged_days(archive: Path) -> int:
    return sum(any("replaces" in line for line in lines_of(day)) for day in days(archive))


def kill_after(archive: Path, out: Path, count: int) -> None:
    """Start the job, and kill it during the day after this many merged days."""
    command = [sys.executable, "-m", "gateway_spark", "run", "compact", "--archive", str(archive), "--grace", "0s"]
    shelf = {"PYTHONPATH": str(Path(__file__).parents[2] / "pipeline")}
    with (out / "output.txt").open("wb") as output:
        child = subprocess.Popen(
            [*command, "--out", str(out)],
            env=os.environ | shelf,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )

    def has_merged() -> bool:
        if merged_days(archive) >= count:
            return True
        assert child.poll() is None, (out / "output.txt").read_text()
        return False

    try:
        wait_until(has_merged, lambda: (out / "output.txt").read_text(), timeout_s=TIMEOUT_S, interval_s=0.002)
    finally:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()


@pytest.mark.timeout(600)
def test_every_message_is_present_once_whenever_the_job_is_killed(spark: SparkSession, tmp_path: Path) -> None:
    archive, out = tmp_path / "archive", tmp_path / "out"
    out.mkdir()
    for day in range(DAYS):
        for number in range(FILES):
            first = (day * FILES + number) * 10
            write_file(
                archive, [{"timestamp": after(days=day, seconds=first), "body": b"%d" % first}] * 10, first=first
            )
    before = content(spark, archive)
    assert sum(before.values()) == DAYS * FILES * 10
    kill_after(archive, out, 2)
    assert 2 <= merged_days(archive) < DAYS
    assert content(spark, archive) == before
    assert main(JOB, ["--archive", str(archive), "--out", str(out), "--grace", "0s"]) == 0
    assert content(spark, archive) == before
    assert [len(files_in(day)) for day in days(archive)] == [1] * DAYS
    assert sorted(path.name for day in days(archive) for path in day.glob("_compact-*")) == []
