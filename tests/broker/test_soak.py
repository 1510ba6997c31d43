"""A short soak with every activity of ``make soak``. Memory growth is checked only by long runs."""

import csv
import subprocess
import sys
from pathlib import Path

from benchmarks.soak.churn import CHURN
from benchmarks.soak.operators import OPERATED
from benchmarks.soak.traffic import STEADY
from tests.interop.broker import PROJECT

#: Long enough for one round of every activity except the reload, which runs every half minute.
HOURS = 8 / 3600


def test_a_short_soak_loses_nothing_and_leaves_nothing_behind(tmp_path: Path) -> None:
    options = ["--hours", f"{HOURS}", "--interval", "1", "--warm-up", "0", "--rest", "5", "--output", str(tmp_path)]
    command = [sys.executable, "-m", "benchmarks.soak", "--directory", str(tmp_path), *options]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=110, check=False)
    report = (tmp_path / "soak.md").read_text()
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in report.splitlines() if line.startswith("|")]
    met = {name: state for name, *_, state in cells}
    for owed in ("confirmed messages lost", "rounds that failed", "left behind at the end"):
        assert met[owed] == "yes", done.stdout + done.stderr
    assert {name for name, rounds, *_ in cells if rounds.isdecimal()} >= {*STEADY, *CHURN, *OPERATED} - {"reloads"}
    with (tmp_path / "soak.csv").open() as file:
        samples = list(csv.DictReader(file))
    assert len(samples) >= 4
    assert int(samples[-1]["confirmed"]) > int(samples[0]["confirmed"])
    assert (tmp_path / "soak.svg").read_text().startswith("<?xml")
