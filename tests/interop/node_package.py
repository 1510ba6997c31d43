"""The package of Node.js clients: lists the scenarios of its files and runs each in a separate process."""

import re
from pathlib import Path
from typing import Final

from tests.interop.tools import program, run

PACKAGE: Final = Path(__file__).parent / "node"
INSTALL_TIMEOUT_S: Final = 180.0
SCENARIO_TIMEOUT_S: Final = 30.0

#: The limit of a test that may have to install the package first.
TIMEOUT_S: Final = INSTALL_TIMEOUT_S + SCENARIO_TIMEOUT_S


def sentences(file: str) -> list[str]:
    """Return the names of the scenarios in a file."""
    return re.findall(r'^  "(.+)": async', (PACKAGE / file).read_text(), flags=re.MULTILINE)


def install(package: Path = PACKAGE) -> None:
    """Install the packages of a lock file by ``npm ci``, unless they are installed."""
    lock, installed = package / "package-lock.json", package / "node_modules" / ".package-lock.json"
    if not installed.exists() or installed.stat().st_mtime < lock.stat().st_mtime:
        ended = run([program("npm"), "ci", "--ignore-scripts"], cwd=package, timeout_s=INSTALL_TIMEOUT_S)
        assert ended.returncode == 0, ended.stderr.decode()


def check_scenario(file: str, url: str, sentence: str) -> None:
    """Run one scenario against a broker; it must succeed."""
    ended = run([program("node"), "run.mjs", file, url, sentence], cwd=PACKAGE, timeout_s=SCENARIO_TIMEOUT_S)
    assert ended.returncode == 0, ended.stderr.decode()
