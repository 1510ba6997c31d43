"""Runs the checkers: types, style, import contracts."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = [str(ROOT / folder) for folder in (".", "protocols", "storage", "plugins")]
CONTRACTS = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"

CHECKS = [
    pytest.param(["-m", "mypy"], id="types"),
    pytest.param(["-m", "ruff", "check", "--quiet", "."], id="style"),
    pytest.param(["-c", CONTRACTS], id="import contracts"),
]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("command", CHECKS)
def test_the_checker_reports_no_findings(command: list[str]) -> None:
    result = subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(SOURCES)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
