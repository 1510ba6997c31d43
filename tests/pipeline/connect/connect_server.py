"""A server of Spark Connect as a process, whose Python has no packages of ours and listens on the loopback interface.

Spark's script ``start-connect-server.sh`` runs the same class, in the background.
"""

import os
import socket
import stat
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import pyspark

from tests.pipeline.java import ENVIRONMENT
from tests.ports import HOST, free_port
from tests.waiting import wait_until

#: The server is a JVM that loads all of Spark, on a machine that may be busy.
START_S: Final = 240.0


@contextmanager
def connect_server(directory: Path, *settings: str, packages: Path | None = None) -> Iterator[str]:
    """Run a server within the block; yield its URL. ``packages`` has further packages of its Python."""
    port = free_port()
    python = directory / "python"
    # Without the module site, an editable installation of our packages is not found.
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')
    python.chmod(python.stat().st_mode | stat.S_IXUSR)
    home = Path(str(pyspark.__file__)).parent
    given = {
        "spark.connect.grpc.binding.address": HOST,
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.host": HOST,
        "spark.local.dir": str(directory / "local"),
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
    }
    words = [f"{name}={value}" for name, value in given.items()] + list(settings)
    environment = {
        **os.environ,
        **ENVIRONMENT,
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": HOST,
        "PYSPARK_PYTHON": str(python),
        "PYTHONPATH": os.pathsep.join((*([] if packages is None else [str(packages)]), sysconfig.get_path("purelib"))),
    }
    with (directory / "log").open("wb") as log:
        server = subprocess.Popen(
            [
                str(home / "bin" / "spark-submit"),
                "--class", "org.apache.spark.sql.connect.service.SparkConnectServer",
                "--master", "local[2]",
                *(word for setting in words for word in ("--conf", setting)),
            ],
            env=environment, cwd=directory, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
    try:
        wait_until(
            lambda: _listens(port) or server.poll() is not None,
            lambda: (directory / "log").read_text()[-3000:],
            timeout_s=START_S,
        )
        assert server.poll() is None, (directory / "log").read_text()[-3000:]
        yield f"sc://localhost:{port}"  # a token without TLS is sent to this name only
    finally:
        server.terminate()
        with suppress(subprocess.TimeoutExpired):
            server.wait(20)
        server.kill()
        server.wait()


def _listens(port: int) -> bool:
    with suppress(OSError):
        socket.create_connection((HOST, port), 1).close()
        return True
    return False
