"""External programs of the suite: lookup and execution; ``install-tools.sh`` installs them."""

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import pytest

#: Directories that are not in the path of every user.
_SYSTEM: Final = "/usr/sbin:/usr/local/sbin"

#: How long Maven may fetch the libraries of a package.
MAVEN_TIMEOUT_S: Final = 180.0


def program(name: str) -> str:
    """Return the path of a program; fail the test with an instruction if it is missing."""
    path = shutil.which(name) or shutil.which(name, path=_SYSTEM)
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
    """Run a program to its end, with a time limit and captured output; the caller checks the exit code."""
    return subprocess.run(command, input=stdin, capture_output=True, timeout=timeout_s, cwd=cwd, env=env, check=False)


def java_libraries(package: Path) -> Path:
    """Fetch the dependencies of a package with Maven, unless they are there; return their directory."""
    libraries = package / "lib"
    if not libraries.exists():
        command = [program("mvn"), "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={libraries}"]
        ended = run(command, cwd=package, timeout_s=MAVEN_TIMEOUT_S)
        assert ended.returncode == 0, (ended.stdout + ended.stderr).decode()
    return libraries
