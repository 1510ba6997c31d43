"""Sessions of Spark Connect: ``sc://host:port``, a server that runs the driver in another process.

The workers of the server get the code of this package as an artifact of the session, so they need no installation of
it. Spark does not pass artifacts on to the processes that follow a stream, so these need one. The results are written
by the server and read here, so both sides share a file system, as on any cluster.
"""

import os
import tempfile
import threading
import zipfile
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pyspark
from pyspark.errors import PySparkException, PySparkValueError
from pyspark.sql import SparkSession

from gateway_spark.errors import OptionError, PipelineError

SCHEME: Final = "sc://"

#: The port of a server, if a URL names none.
PORT: Final = 15_002

#: Repetitions of a request that the server does not answer, and the longest pause between two: 25 seconds in all. Spark
#: tries for ten minutes.
_RETRIES: Final = 6
_LONGEST_BACKOFF_MS: Final = 10_000

#: The packages whose code the server needs.
_PACKAGES: Final = ("gateway_spark", "pyspark_gateway")


def is_remote(master: str | None) -> bool:
    """Return whether a master is a server of Spark Connect."""
    return master is not None and master.startswith(SCHEME)


def answers_grpc(url: str, timeout_s: float) -> bool:
    """Return whether a server completes the handshakes of gRPC at ``url``, which may have parameters.

    What speaks another protocol accepts connections, too, and a session would repeat its first request for minutes.

    :raises OptionError: for parameters that are not ``name=value``.
    """
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # it prints each handshake that fails
    grpc: Any = import_module("grpc")
    builder: Any = import_module("pyspark.sql.connect.client").DefaultChannelBuilder
    try:
        channel = builder(url).toChannel()
    except PySparkValueError as error:
        reason = str(error).partition("\n")[0]
        raise OptionError(f"option '--master': {reason}") from None
    try:
        grpc.channel_ready_future(channel).result(timeout_s)
    except grpc.FutureTimeoutError:
        return False
    finally:
        channel.close()
    return True


def remote_session(url: str, common: Mapping[str, str], settings: Mapping[str, str]) -> SparkSession:
    """Connect to a server; return the session, with our source registered.

    The name of the application is that of the server. ``common`` are settings for every session, of which a server
    takes those that can change while it runs.

    :raises PipelineError: if it has another version of Spark.
    :raises OptionError: for one of ``settings`` that the server does not take.
    """
    session = SparkSession.builder.remote(url).getOrCreate()  # without further options it sends no request yet
    policy: Any = import_module("pyspark.sql.connect.client.retries").DefaultPolicy
    session.client.set_retry_policies([policy(max_retries=_RETRIES, max_backoff=_LONGEST_BACKOFF_MS)])
    require_version(session.version)
    for name, value in common.items():
        if name.startswith("spark.sql."):
            session.conf.set(name, value)
    for name, value in settings.items():
        _set(session, name, value)
    _send_code(session)
    session.dataSource.register(import_module("pyspark_gateway").DefaultSource)
    return session


def require_version(version: str) -> None:
    """Check the version of a server: sources in Python differ from one minor version to the next.

    :raises PipelineError: if it is another one than that of the installed PySpark.
    """
    if version.split(".")[:2] != pyspark.__version__.split(".")[:2]:
        raise PipelineError(
            f"the server has Spark {version}, and PySpark here is {pyspark.__version__}: install the same version"
        )


def _set(session: SparkSession, name: str, value: str) -> None:
    try:
        session.conf.set(name, value)
    except PySparkException as error:
        reason = str(error).partition("\n")[0]
        raise OptionError(f"--conf {name}: the server does not take it: {reason}") from None


def _send_code(session: SparkSession) -> None:
    """Send the code of our packages to the server, for all Python processes of the session."""
    with tempfile.TemporaryDirectory() as directory:
        archive = Path(directory) / "gateway_spark_code.zip"
        with zipfile.ZipFile(archive, "w") as packed:
            for package in _PACKAGES:
                [place] = import_module(package).__path__
                for file in sorted(Path(place).rglob("*")):
                    if file.is_file() and "__pycache__" not in file.parts:
                        packed.write(file, Path(package) / file.relative_to(place))
        session.addArtifacts(str(archive), pyfile=True)


class RemoteTasks:
    """The tasks of the server's running operations, as it reports them."""

    def __init__(self, session: SparkSession) -> None:
        self._lock = threading.Lock()
        self._progress: dict[str, tuple[int, int]] = {}
        handler: Any = self._note  # Spark's type has names of its own for the arguments
        session.registerProgressHandler(handler)

    def in_words(self) -> str:
        """Return how many tasks of the running stages are done; nothing if none runs."""
        with self._lock:
            done = sum(each for each, _ in self._progress.values())
            total = sum(each for _, each in self._progress.values())
        return f"{done} of {total} tasks done" if total else ""

    def _note(self, stages: Any, inflight_tasks: int, operation_id: str | None, done: bool) -> None:  # Spark's names
        with self._lock:
            if done:
                self._progress.pop(operation_id or "", None)
            else:
                found = list(stages or ())
                counts = sum(each.num_completed_tasks for each in found), sum(each.num_tasks for each in found)
                self._progress[operation_id or ""] = counts
