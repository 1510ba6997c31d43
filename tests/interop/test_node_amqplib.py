"""npm's amqplib: every scenario of ``node/scenarios.mjs``, each in a Node.js process of its own."""

import re
from pathlib import Path
from typing import Final

import pytest

from tests.interop.broker import Broker
from tests.interop.tools import program, run

PACKAGE: Final = Path(__file__).parent / "node"
INSTALL_TIMEOUT_S: Final = 180.0
SCENARIO_TIMEOUT_S: Final = 30.0

SENTENCES: Final = re.findall(r'^  "(.+)": async', (PACKAGE / "scenarios.mjs").read_text(), flags=re.MULTILINE)


@pytest.fixture(scope="session")
def installed_package() -> Path:
    """The package with what its lock file names, installed by ``npm ci`` unless it already is."""
    lock, installed = PACKAGE / "package-lock.json", PACKAGE / "node_modules" / ".package-lock.json"
    if not installed.exists() or installed.stat().st_mtime < lock.stat().st_mtime:
        ended = run([program("npm"), "ci", "--ignore-scripts"], cwd=PACKAGE, timeout_s=INSTALL_TIMEOUT_S)
        assert ended.returncode == 0, ended.stderr.decode()
    return PACKAGE


@pytest.mark.timeout(INSTALL_TIMEOUT_S + SCENARIO_TIMEOUT_S)
@pytest.mark.parametrize("sentence", SENTENCES)
def test_amqplib(broker: Broker, installed_package: Path, sentence: str) -> None:
    ended = run([program("node"), "run.mjs", broker.url, sentence], cwd=installed_package, timeout_s=SCENARIO_TIMEOUT_S)
    assert ended.returncode == 0, ended.stderr.decode()
