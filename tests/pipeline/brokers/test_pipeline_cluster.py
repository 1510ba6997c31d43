"""``make pipeline-cluster``: the whole on few readings, its comparison of results, and its Spark cluster."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pandas
import pytest

from gateway_spark.masters import require_master

EXAMPLES: Final = Path(__file__).parents[3] / "pipeline" / "examples"

READINGS: Final = {
    "EWR": [{"temp": 1.5, "wind_speed": 3.0, "pressure": None}, {"temp": 2.0, "wind_speed": None, "pressure": 1000.0}]
}


@pytest.fixture(scope="module")
def example() -> Any:
    """The program, which is no package."""
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(str(EXAMPLES))
        import cluster

        yield cluster
    for name in ("cluster", "weather"):
        sys.modules.pop(name, None)


def windows(count: int = 2, avg: float = 1.75) -> dict[str, pandas.DataFrame]:
    rows = [("EWR", "temp", count, avg), ("EWR", "wind_speed", 1, 3.0), ("EWR", "pressure", 1, 1000.0)]
    return {"windows": pandas.DataFrame(rows, columns=["origin", "field", "count", "avg"])}


def test_equal_sums_are_right(example: Any) -> None:
    assert list(example.wrong_sums(READINGS, windows())) == []


def test_a_missing_reading_and_another_sum_are_found(example: Any) -> None:
    assert list(example.wrong_sums(READINGS, windows(count=1))) == ["EWR temp: 1 with the sum 1.75, not 2 with 3.5"]
    assert list(example.wrong_sums(READINGS, windows(avg=1.0))) == ["EWR temp: 2 with the sum 2.0, not 2 with 3.5"]


def test_a_missing_message_is_found(example: Any) -> None:
    devices = {"devices": pandas.DataFrame({"origin": ["EWR"], "messages": [2]})}
    assert list(example.wrong_devices(READINGS, devices)) == []
    devices["devices"]["messages"] = 1
    assert list(example.wrong_devices(READINGS, devices)) == ["presence has {'EWR': 1} messages, not {'EWR': 2}"]


def processes_of(directory: Path) -> list[str]:
    """Return the command lines of the running processes that name a directory."""
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = place.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:  # it has ended meanwhile
            continue
        if str(directory) in line:
            found.append(line)
    return found


def test_a_spark_cluster_runs_and_ends(example: Any, tmp_path: Path) -> None:
    with example.spark_cluster(tmp_path / "spark") as spark:
        require_master(spark.url)
        assert len(processes_of(tmp_path)) == 1 + example.WORKERS
    assert processes_of(tmp_path) == []


def test_the_whole_example_compares_the_readings_of_three_nodes(tmp_path: Path) -> None:
    command = [sys.executable, str(EXAMPLES / "cluster.py"), "--out", str(tmp_path / "out")]
    command += ["--readings", "3000", "--job", "presence"]
    environment = os.environ | {"PYTHONPATH": str(EXAMPLES.parent)}
    found = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=600, check=False)
    assert found.returncode == 0, found.stdout + found.stderr
    assert "2 of 2 workers had executors" in found.stdout
    assert "counts and sums of 3000 readings are those that were published" in found.stdout
    assert (tmp_path / "out" / "presence" / "report.html").stat().st_size > 0
    assert processes_of(tmp_path) == []
