"""The prerequisites of jobs, and one line on how to install a missing one.

``python -m gateway_spark.prerequisites`` prints that line and fails, or prints nothing.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final

#: The packages of the extra, by import name.
PACKAGES: Final = ("pyspark", "pyarrow", "pandas", "matplotlib", "jinja2")

#: Further packages for Spark Connect.
REMOTE_PACKAGES: Final = ("grpc", "grpc_status")

LEAST_JAVA: Final = 17

INSTALL_EXTRA: Final = "pip install 'gateway-broker[spark]' (in a checkout: pip install '.[spark]')"
INSTALL_JAVA: Final = "apt-get install openjdk-17-jre-headless, or set JAVA_HOME"


def missing(arguments: Sequence[str] = ()) -> str | None:
    """Return the missing prerequisite of a job's command line in one line, or ``None``.

    A server of Spark Connect has its own Java.
    """
    if any(word.removeprefix("--master=").startswith("sc://") for word in arguments):
        return missing_packages(REMOTE_PACKAGES)
    return missing_packages() or missing_java()


def missing_packages(further: Sequence[str] = ()) -> str | None:
    """Return the missing packages and how to install them, or ``None``."""
    absent = [name for name in (*PACKAGES, *further) if find_spec(name) is None]
    if absent:
        return f"the pipeline needs {', '.join(absent)}: {INSTALL_EXTRA}"
    return None


def missing_java() -> str | None:
    """Return the problem with the Java that Spark would use, or ``None``."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home) / "bin")) if home else shutil.which("java")
    if java is None:
        where = f"JAVA_HOME, {home}, has none" if home else "java is not on the path"
        return f"Spark needs Java {LEAST_JAVA} or newer, and {where}: {INSTALL_JAVA}"
    version = _version(java)
    if version < LEAST_JAVA:
        return f"Spark needs Java {LEAST_JAVA} or newer, and {java} is {version or 'none'}: {INSTALL_JAVA}"
    return None


def _version(java: str) -> int:
    """Return the major version of a Java, 0 if unknown."""
    answer = subprocess.run([java, "-version"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    found = re.search(r'version "(\d+)', answer.stderr)
    return int(found[1]) if found else 0


if __name__ == "__main__":
    sys.exit(missing())
