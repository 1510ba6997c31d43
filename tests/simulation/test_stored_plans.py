"""Plans of runs as files: a run of the file is the run of the seed, and a file that is no plan is refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.kernel.errors import ConfigurationError
from gateway.simulation.plan import RunPlan
from gateway.simulation.run import RunOutcome, run_seed
from gateway.simulation.scene import Scene
from gateway.simulation.stored_plan import StoredPlan, write_plan

SEED = 5


def save(path: Path, only: frozenset[int] | None = None) -> RunOutcome:
    """Run a seed, and write its plan."""

    def plan_for(scene: Scene) -> RunPlan:
        plan = RunPlan.chosen(scene, only)
        write_plan(plan, SEED, path)
        return plan

    return run_seed(SEED, traces=True, plan_for=plan_for)


def run(path: Path) -> RunOutcome:
    stored = StoredPlan(path)
    return run_seed(stored.seed, traces=True, plan_for=stored.plan)


def test_a_stored_plan_runs_as_its_seed(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    saved = save(path)
    assert saved.lines == run_seed(SEED, traces=True).lines
    assert run(path).lines == saved.lines


def test_a_stored_plan_has_the_kept_items_alone(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    saved = save(path, frozenset({0}))
    document = json.loads(path.read_text())
    assert [each["number"] for each in [*document["programs"], *document["faults"]]] == [0]
    assert run(path).lines == saved.lines


def test_the_times_of_a_fault_are_those_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    save(path, frozenset({0}))
    document = json.loads(path.read_text())
    document["faults"] = [{"kind": "Restart", "number": 9, "at_s": 0.25, "lasts_s": 0.125}]
    path.write_text(json.dumps(document))
    began = next(line for line in run(path).lines if "restart-9" in line)
    assert float(began.split()[0]) == pytest.approx(0.25, abs=0.2)


PLAN: dict[str, Any] = {
    "simulation_plan": 1,
    "seed": 1,
    "exchange": "amq.topic",
    "qos": 1,
    "priorities": [None],
    "queues": [],
    "programs": [],
    "faults": [],
}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("{", "not a plan: "),
        ("[]", "this is no plan: 'simulation_plan' is not 1"),
        (json.dumps(PLAN | {"simulation_plan": 2}), "this is no plan: 'simulation_plan' is not 1"),
        (json.dumps({name: value for name, value in PLAN.items() if name != "qos"}), "'qos' is missing"),
        (json.dumps(PLAN | {"faults": [{"kind": "Flood"}]}), "'Flood' is missing, or a kind that does not exist"),
        (json.dumps(PLAN | {"programs": 7}), "not a plan: 'int' object is not iterable"),
    ],
)
def test_a_file_that_is_no_plan_is_refused_with_the_reason(content: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(content)
    with pytest.raises(ConfigurationError) as refused:
        StoredPlan(path)
    assert reason in str(refused.value)
