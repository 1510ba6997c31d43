"""Programs the suite drives beside Python: found here, installed by ``install-tools.sh``."""

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import pytest

#: What ``install-tools.sh`` unpacks instead of installing it.
BIN: Final = Path(__file__).parent / "bin"


def program(name: str) -> str:
    """Return the program's path; a test that needs a missing one fails with what to do."""
    path = shutil.which(name) or shutil.which(name, path=str(BIN))
    if path is None:
        pytest.fail(f"{name} is not installed: run tests/interop/install-tools.sh as root", pytrace=False)
    return path


def run(
    command: Sequence[str],
    *,
    stdin: bytes = b"",
    timeout_s: float = 20,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Run to the end, bounded in time, with output captured; the exit code is the caller's to judge."""
    return subprocess.run(command, input=stdin, capture_output=True, timeout=timeout_s, cwd=cwd, env=env, check=False)
