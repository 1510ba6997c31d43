"""The Spark session that the jobs run in: everything on the loopback when it is this machine's own, times in UTC."""

import os
import sys
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

DEFAULT_MASTER: Final = "local[2]"

#: Spark's own default is 200 partitions after each shuffle, a task each: seconds of nothing for some thousand rows.
LOCAL_PARTITIONS: Final = 2

#: What every session of ours has, wherever it runs.
COMMON: Final[Mapping[str, str]] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.python.filterPushdown.enabled": "true",
    # A task that runs twice would stage its rows twice, see the sink.
    "spark.speculation": "false",
    "spark.ui.showConsoleProgress": "false",
    # Times in Parquet as everybody else reads them, not as Impala once did.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # A query may do this many batches between two looks at its progress.
    "spark.sql.streaming.numRecentProgressUpdates": "1000",
}

#: What one has besides that lives on this machine alone: nothing listens where others could reach it.
LOCAL: Final[Mapping[str, str]] = {
    "spark.sql.shuffle.partitions": str(LOCAL_PARTITIONS),
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.ui.enabled": "false",
    "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={Path(__file__).parent / 'log4j2.properties'}",
}


def session(application: str, master: str | None = None, settings: Mapping[str, str] | None = None) -> SparkSession:
    """Start a session, or return the one that runs already, as in a notebook or under spark-submit.

    ``master`` of ``None`` leaves the choice to spark-submit, and is ``local[2]`` without it; ``settings`` win over
    ours.
    """
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    chosen = master or (None if submitted else DEFAULT_MASTER)
    builder = SparkSession.builder.appName(application)
    if chosen is not None:
        builder = builder.master(chosen)
    if chosen is not None and chosen.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        builder = _with(builder, LOCAL)
    _share_python()
    started = _with(_with(builder, COMMON), settings or {}).getOrCreate()
    started.sparkContext.setLogLevel("ERROR")
    _register_source(started)
    _activate(started)
    return started


def _activate(session: SparkSession) -> None:
    """Let this thread write by this session again.

    A streaming query that hands its batches to a function leaves the copy it works with behind as the active one, which
    knows nothing of what is registered later: a write would not find ``format("gateway")``.
    """
    if (jvm := session._jvm) is not None:  # there is none behind Spark Connect
        SparkSession._get_j_spark_session_class(jvm).setActiveSession(session._jsparkSession)


def _with(builder: SparkSession.Builder, settings: Mapping[str, str]) -> SparkSession.Builder:
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder


def _share_python() -> None:
    """Have workers run the interpreter that runs us: another one would not find pyarrow."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)


def _register_source(session: SparkSession) -> None:
    """Register ``format("gateway")``; Spark finds it by itself only in what lies plainly on the path."""
    if find_spec("pyspark_gateway") is not None:
        session.dataSource.register(import_module("pyspark_gateway").DefaultSource)
