"""The program of ``make pipeline-cluster`` with few readings and one job: right sums, and no process is left."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pipeline.java import ENVIRONMENT

PIPELINE = Path(__file__).parents[3] / "pipeline"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


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


def test_two_workers_read_from_three_nodes(tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = ["--out", str(out), "--readings", "600", "--job", "rollup"]
    done = subprocess.run(
        [sys.executable, str(PIPELINE / "examples" / "cluster.py"), *arguments],
        env={**os.environ, **ENVIRONMENT, "PYTHONPATH": str(PIPELINE)},
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "200 readings of JFK published by MQTT at node b" in done.stdout
    assert "2 of 2 workers had executors" in done.stdout
    assert "counts and sums of 600 readings are those that were published" in done.stdout
    assert (out / "rollup" / "report.html").exists()
    assert processes_of(out) == []
