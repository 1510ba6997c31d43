"""Bugs that the simulation found stay repaired, and their plans find them again without the repair."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.simulation.mutations.importing import mutated
from tests.simulation.regressions.playing import broken_by
from tests.simulation.regressions.store_plan import PLANS, plan_of
from tests.simulation.regressions.table import REGRESSIONS, Regression

NAMES = [regression.plan for regression in REGRESSIONS]


def test_each_plan_is_in_the_table_and_has_a_sentence() -> None:
    assert sorted(path.stem for path in PLANS.iterdir()) == sorted(NAMES)
    assert all(plan_of(name)["says"].endswith(".") for name in NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_no_promise_is_broken_by_a_plan_that_once_broke_one(name: str) -> None:
    assert broken_by(name) == []


@pytest.mark.parametrize("regression", REGRESSIONS, ids=NAMES)
def test_the_repair_is_there_once(regression: Regression) -> None:
    found = find_spec(regression.undone.module)
    assert found is not None
    assert found.origin is not None
    source = Path(found.origin).read_text()
    assert mutated(source, regression.undone) != source


@pytest.mark.parametrize("name", NAMES)
def test_a_plan_finds_its_bug_without_the_repair(name: str) -> None:
    command = [sys.executable, "-m", "tests.simulation.regressions", name]
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    ended = subprocess.run(command, capture_output=True, text=True, env=environment, stdin=subprocess.DEVNULL)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout.strip()
