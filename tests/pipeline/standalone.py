"""A standalone Spark cluster on the loopback interface: one master and one worker, from the installed package."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import pyspark

from tests.waiting import wait_until

START_TIMEOUT_S: Final = 90.0

DEPLOY: Final = "org.apache.spark.deploy"

HOME: Final = Path(pyspark.__file__).parent


@contextmanager
def standalone(directory: Path) -> Iterator[str]:
    """Run a cluster within the block; yield the URL of its master. All its processes end with the block."""
    groups: list[int] = []
    try:
        log = _start(directory, groups, "master", f"{DEPLOY}.master.Master", "--port", "0")
        url = _wait_for(log, r"Starting Spark master at (spark://\S+)")
        log = _start(directory, groups, "worker", f"{DEPLOY}.worker.Worker", "--cores", "1", "--memory", "1g", url)
        _wait_for(log, r"(Successfully registered) with master")
        yield url
    finally:
        for group in groups:
            with suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)


def _start(directory: Path, groups: list[int], name: str, *words: str) -> Path:
    """Start a Spark daemon in its own process group; return its log."""
    main, *options = words
    here = ["--host", "127.0.0.1", "--webui-port", "0"]
    command = [str(HOME / "bin" / "spark-class"), main, *here, *options]
    places = {"SPARK_WORKER_DIR": str(directory / "work"), "SPARK_LOCAL_DIRS": str(directory / "local")}
    environment = {**os.environ, **places, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    log = directory / f"{name}.log"
    with log.open("wb") as output:
        child = subprocess.Popen(command, env=environment, stdout=output, stderr=output, start_new_session=True)
    groups.append(child.pid)
    return log


def _wait_for(log: Path, pattern: str) -> str:
    """Wait until a log matches a pattern; return the pattern's group."""
    found = wait_until(
        lambda: re.search(pattern, log.read_text(errors="replace")),
        lambda: log.read_text(errors="replace"),
        timeout_s=START_TIMEOUT_S,
    )
    assert found is not None
    return found[1]
