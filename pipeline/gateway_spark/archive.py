"""The archive and the trace as data frames: ``<root>/vhost=<name>/date=YYYY-MM-DD/*.parquet``, read without a broker.

Only files that count are read (see `gateway_spark.manifest`), and of those only the ones that can hold what is asked
for.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final
from urllib.parse import quote

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from gateway_spark.manifest import ArchiveFile, files_in
from gateway_spark.schema import MESSAGE_SCHEMA, TRACE_SCHEMA

#: A file is sealed at midnight, and what was on its way then may be in the directory of the day before.
MARGIN: Final = timedelta(days=1)


def read_archive(
    spark: SparkSession,
    path: str | Path,
    vhost: str | None = None,
    queue: str | Sequence[str] | None = None,
    exchange: str | Sequence[str] | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> DataFrame:
    """Return the archived messages of some or all virtual hosts, of the archives of some queues or exchanges or of all.

    A message that came through an archived exchange into an archived queue is in both archives; ``queue`` is ``null``
    in that of the exchange. Where both are kept, choose one.

    ``since`` is included, ``until`` is not; both are compared with the time at which the broker took the message, and
    a time without a zone is one of UTC.
    """
    frame = _read(spark, Path(path), vhost, since, until, MESSAGE_SCHEMA)
    if queue is not None:
        frame = frame.where(F.col("queue").isin(_names(queue)))
    if exchange is not None:
        frame = frame.where(F.col("queue").isNull() & F.col("exchange").isin(_names(exchange)))
    return frame


def read_trace(
    spark: SparkSession,
    path: str | Path,
    vhost: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> DataFrame:
    """Return the trace events of some or all virtual hosts; times as in `read_archive`."""
    return _read(spark, Path(path), vhost, since, until, TRACE_SCHEMA)


def _read(
    spark: SparkSession,
    root: Path,
    vhost: str | None,
    since: datetime | None,
    until: datetime | None,
    schema: StructType,
) -> DataFrame:
    since, until = _in_utc(since), _in_utc(until)
    # Spark's idea of the present directory is that of its start.
    paths = [str(file.path) for file in _files(root.absolute(), vhost, since, until)]
    frame = spark.read.schema(schema).parquet(*paths) if paths else spark.createDataFrame([], schema)
    if since is not None:
        frame = frame.where(F.col("timestamp") >= F.lit(since))
    if until is not None:
        frame = frame.where(F.col("timestamp") < F.lit(until))
    return frame


def days(root: Path, vhost: str | None = None) -> list[Path]:
    """Return the directories of an archive, one for each virtual host and day, the earliest day first."""
    of_vhost = "*" if vhost is None else quote(vhost, safe="")
    found = (path for path in root.glob(f"vhost={of_vhost}/date=*") if path.is_dir() and date_of(path) is not None)
    return sorted(found, key=lambda path: (path.name, path.parent.name))


def _names(one_or_more: str | Sequence[str]) -> list[str]:
    return [one_or_more] if isinstance(one_or_more, str) else list(one_or_more)


def _files(root: Path, vhost: str | None, since: datetime | None, until: datetime | None) -> Iterator[ArchiveFile]:
    """Yield the files that may hold messages of a time, the earliest day first."""
    for directory in days(root, vhost):
        day = date_of(directory)
        assert day is not None
        if (since is not None and day + 2 * MARGIN < since) or (until is not None and day - MARGIN > until):
            continue
        yield from (file for file in files_in(directory) if _overlaps(file, since, until))


def _overlaps(file: ArchiveFile, since: datetime | None, until: datetime | None) -> bool:
    too_early = since is not None and file.last_ms is not None and file.last_ms < int(since.timestamp() * 1000)
    too_late = until is not None and file.first_ms is not None and file.first_ms >= until.timestamp() * 1000
    return not (too_early or too_late)


def date_of(directory: Path) -> datetime | None:
    """Return the midnight with which the day of a directory began, or ``None`` for a directory of something else."""
    try:
        return datetime.strptime(directory.name, "date=%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        return None


def _in_utc(moment: datetime | None) -> datetime | None:
    if moment is None or moment.tzinfo is not None:
        return moment
    return moment.replace(tzinfo=UTC)
