"""``submit``: run the file of a job with spark-submit, for a cluster with a separate driver."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from gateway_spark.catalogue import JobEntry

#: Settings of the driver that must be known before its start.
EARLY: Final[Mapping[str, str]] = {"spark.sql.python.filterPushdown.enabled": "true", "spark.speculation": "false"}


def command(entry: JobEntry, master: str, deploy_mode: str, conf: Sequence[str], arguments: Sequence[str]) -> list[str]:
    """Return the command line that submits a job."""
    settings = [f"{name}={value}" for name, value in EARLY.items()] + list(conf)
    return [
        str(spark_submit()),
        *("--master", master, "--deploy-mode", deploy_mode, "--name", f"gateway {entry.name}"),
        *(word for setting in settings for word in ("--conf", setting)),
        str(entry.file),
        *arguments,
    ]


def submit(entry: JobEntry, master: str, deploy_mode: str, conf: Sequence[str], arguments: Sequence[str]) -> int:
    """Submit a job and wait for it; return the exit code."""
    environment = {"PYSPARK_PYTHON": sys.executable, **os.environ}
    shelf = str(Path(__file__).parents[1])
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, (shelf, os.environ.get("PYTHONPATH"))))
    return subprocess.run(command(entry, master, deploy_mode, conf, arguments), env=environment, check=False).returncode


def spark_submit() -> Path:
    """Return the program, from SPARK_HOME or the installed package."""
    home = os.environ.get("SPARK_HOME")
    if home:
        return Path(home) / "bin" / "spark-submit"
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "bin" / "spark-submit"
