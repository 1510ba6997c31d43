"""The archive and the trace as data frames: ``<root>/vhost=<name>/date=YYYY-MM-DD/*.parquet``, read without a broker.

Only files that count are read (see `gateway_spark.manifest`), and of those only the ones that can hold what is asked
for.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from pathlib import Path
from typing import Final
from urllib.parse import quote

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from gateway_spark.errors import OptionError
from gateway_spark.manifest import ArchiveFile, files_in
from gateway_spark.schema import MESSAGE_SCHEMA, TRACE_SCHEMA

#: A file is sealed at midnight, and what was on its way then may be in the directory of the day before.
MARGIN: Final = timedelta(days=1)

#: The name of a virtual host that is longer, percent-encoded, is cut here in the name of its directory.
LONGEST_NAME: Final = 120

#: Which table a file is of, by a column that the other has not.
TELLING: Final = {"body": "the archive", "event": "the trace"}


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
    in that of the exchange. Where both are kept, choose one. The archive of an exchange has what came by it over
    bindings, too: the column ``exchange`` tells where that was published.

    ``since`` is included, ``until`` is not; both are compared with the time at which the broker took the message, and
    a time without a zone is one of UTC. :raises OptionError: when there is no archive.
    """
    files = _files_of(path, vhost, since, until, "body")
    if queue is None and exchange is None:
        return _between(_frame(spark, files, MESSAGE_SCHEMA), since, until)
    queues, exchanges = _names(queue), _names(exchange)
    wanted = {*(("queue", name) for name in queues), *(("exchange", name) for name in exchanges)}
    chosen = [file for file in files if (file.line.get("kind"), file.line.get("name")) in wanted]
    # Where no line of the broker's says whose archive a file is, its rows have to.
    untold = [file for file in files if "kind" not in file.line]
    is_wanted = F.col("queue").isin(queues) | (F.col("queue").isNull() & F.col("exchange").isin(exchanges))
    rows = _frame(spark, untold, MESSAGE_SCHEMA).where(is_wanted)
    return _between(_frame(spark, chosen, MESSAGE_SCHEMA).unionByName(rows) if chosen else rows, since, until)


def read_trace(
    spark: SparkSession,
    path: str | Path,
    vhost: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> DataFrame:
    """Return the trace events of some or all virtual hosts; times as in `read_archive`.

    :raises OptionError: when there is no trace.
    """
    return _between(_frame(spark, _files_of(path, vhost, since, until, "event"), TRACE_SCHEMA), since, until)


def days(root: Path, vhost: str | None = None) -> list[Path]:
    """Return the directories of an archive, one for each virtual host and day, the earliest day first."""
    of_vhost = "*" if vhost is None else shortened(vhost)
    found = (path for path in root.glob(f"vhost={of_vhost}/date=*") if path.is_dir() and date_of(path) is not None)
    return sorted(found, key=lambda path: (path.name, path.parent.name))


def shortened(name: str) -> str:
    """Return a name as the broker writes it in a path: one that is too long ends with a digest of it."""
    encoded = quote(name, safe="")
    if len(encoded) <= LONGEST_NAME:
        return encoded
    return f"{encoded[:LONGEST_NAME].rstrip('%')}~{blake2b(name.encode(), digest_size=16).hexdigest()}"


def _frame(spark: SparkSession, files: Sequence[ArchiveFile], schema: StructType) -> DataFrame:
    paths = [str(file.path) for file in files]
    return spark.read.schema(schema).parquet(*paths) if paths else spark.createDataFrame([], schema)


def _between(frame: DataFrame, since: datetime | None, until: datetime | None) -> DataFrame:
    if since is not None:
        frame = frame.where(F.col("timestamp") >= F.lit(_in_utc(since)))
    if until is not None:
        frame = frame.where(F.col("timestamp") < F.lit(_in_utc(until)))
    return frame


def _files_of(
    path: str | Path, vhost: str | None, since: datetime | None, until: datetime | None, column: str
) -> list[ArchiveFile]:
    """Return the files of a table that may hold what came between two moments; ``column`` is one that it has alone.

    :raises OptionError: when there is no such directory, or it is that of the other table.
    """
    root = Path(path).absolute()  # Spark's idea of the present directory is that of its start
    if not root.is_dir():
        raise OptionError(f"{path}: there is no such directory")
    files = list(_files(root, vhost, _in_utc(since), _in_utc(until)))
    if files:
        columns = set(pq.read_schema(files[0].path).names)
        for other in TELLING.keys() - {column}:
            if other in columns and column not in columns:
                raise OptionError(f"{path} is {TELLING[other]}, not {TELLING[column]}")
    return files


def _names(one_or_more: str | Sequence[str] | None) -> list[str]:
    return [one_or_more] if isinstance(one_or_more, str) else list(one_or_more or ())


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
