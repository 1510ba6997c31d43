"""The Spark session of jobs: a local one listens only on the loopback interface; times are in UTC."""

import os
import sys
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from gateway_spark.remote import is_remote, remote_session
from gateway_spark.spark_versions import HAS_LIMITS

DEFAULT_MASTER: Final = "local[2]"

#: Spark's default of 200 partitions after each shuffle, one task each, takes seconds even for some thousand rows.
LOCAL_PARTITIONS: Final = 2

#: Settings of every session.
COMMON: Final[Mapping[str, str]] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.python.filterPushdown.enabled": "true",
    # A speculative task would stage its rows twice, see the sink.
    "spark.speculation": "false",
    "spark.ui.showConsoleProgress": "false",
    # Times in Parquet in the standard format, not in the old format of Impala.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # Most batches of a query between two reads of its progress.
    "spark.sql.streaming.numRecentProgressUpdates": "1000",
}

#: Settings of a local session: no port is reachable from outside.
LOCAL: Final[Mapping[str, str]] = {
    "spark.sql.shuffle.partitions": str(LOCAL_PARTITIONS),
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.ui.enabled": "false",
    "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={Path(__file__).parent / 'log4j2.properties'}",
}

#: Spark's default for checkpoints on a local disk runs programs of the system for each file, 25 ms for one. This class
#: renames files itself, as atomically. Earlier versions have it elsewhere.
FAST_CHECKPOINTS: Final[Mapping[str, str]] = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    )
}


def session(application: str, master: str | None = None, settings: Mapping[str, str] | None = None) -> SparkSession:
    """Start a session, or return the running one, as in a notebook or under spark-submit.

    With ``master`` of ``None`` spark-submit chooses, and the default is ``local[2]``; ``settings`` override the
    defaults. A ``master`` of ``sc://host:port`` is a server of Spark Connect.
    """
    if master is not None and is_remote(master):
        _share_python()
        return remote_session(master, COMMON, settings or {})
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    chosen = master or (None if submitted else DEFAULT_MASTER)
    builder = SparkSession.builder.appName(application)
    if chosen is not None:
        builder = builder.master(chosen)
    if chosen is not None and chosen.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        builder = _with(_with(builder, LOCAL), FAST_CHECKPOINTS if HAS_LIMITS else {})
    _share_python()
    started = _with(_with(builder, COMMON), settings or {}).getOrCreate()
    started.sparkContext.setLogLevel("ERROR")
    _register_source(started)
    _activate(started)
    return started


def _activate(session: SparkSession) -> None:
    """Make this session the active one of this thread again.

    A streaming query that passes its batches to a function leaves its copy of the session active, which lacks later
    registrations: a write would not find ``format("gateway")``.
    """
    if (jvm := session._jvm) is not None:  # not available with Spark Connect
        SparkSession._get_j_spark_session_class(jvm).setActiveSession(session._jsparkSession)


def _with(builder: SparkSession.Builder, settings: Mapping[str, str]) -> SparkSession.Builder:
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder


def _share_python() -> None:
    """Let workers run the current interpreter: another one may lack pyarrow."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)


def _register_source(session: SparkSession) -> None:
    """Register ``format("gateway")``, which Spark finds by itself only for packages directly on the path."""
    if find_spec("pyspark_gateway") is None:
        return
    try:
        session.dataSource.register(import_module("pyspark_gateway").DefaultSource)
    except AnalysisException as error:
        if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":  # Spark 4.0 has found it
            raise
