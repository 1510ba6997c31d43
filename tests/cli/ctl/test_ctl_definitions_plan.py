"""``gatewayctl definitions diff`` and ``apply``: the plan, and the exit codes."""

from pathlib import Path
from typing import Any

import pytest

from tests.cli.ctl.fake_api import FakeApi
from tests.cli.ctl.running import Ctl


def plan(*actions: str) -> dict[str, Any]:
    steps = [
        {"action": action, "category": "policies", "vhost": "/", "name": "p", "before": {"priority": 0},
         "after": {"priority": 7}, **({"reason": "why"} if action == "conflict" else {})}
        for action in actions
    ]  # fmt: skip
    counts = {name: actions.count(name) for name in ("create", "change", "delete", "conflict")}
    return {**counts, "steps": steps}


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "definitions.json"
    path.write_text('{"policies": []}')
    return str(path)


@pytest.mark.parametrize(
    ("actions", "code"),
    [((), 0), (("create",), 2), (("change",), 2), (("delete",), 2), (("change", "conflict"), 3)],
)
def test_the_exit_code_tells_what_would_change(
    api: FakeApi, ctl: Ctl, file: str, actions: tuple[str, ...], code: int
) -> None:
    api.answer("POST definitions-plan", plan(*actions))
    assert ctl("definitions", "diff", file).code == code
    assert ctl("definitions", "apply", file, "--dry-run").code == code


def test_a_plan_is_readable(api: FakeApi, ctl: Ctl, file: str) -> None:
    api.answer("POST definitions-plan/v1", plan("create", "change", "conflict"))
    result = ctl("definitions", "diff", file, "--prune", "-p", "v1")
    assert result.out.splitlines() == [
        "+ policies 'p' in vhost '/'",
        "~ policies 'p' in vhost '/'",
        "    priority: 0 -> 7",
        "! policies 'p' in vhost '/': why",
        "    priority: 0 -> 7",
        "1 to create, 1 to change, 0 to delete, 1 conflicts",
    ]
    assert api.received[-1].target == "/api/definitions-plan/v1?prune=true"


def test_applying_ends_with_0(api: FakeApi, ctl: Ctl, file: str) -> None:
    api.answer("POST definitions-apply", plan("create"))
    result = ctl("definitions", "apply", file)
    assert (result.code, "1 to create" in result.out) == (0, True)


def test_a_refusal_is_an_error(api: FakeApi, ctl: Ctl, file: str) -> None:
    api.answer("POST definitions-apply", {"error": "conflict", "reason": "1 conflicts, nothing was changed"}, 409)
    result = ctl("definitions", "apply", file)
    assert (result.code, "nothing was changed" in result.err) == (69, True)
