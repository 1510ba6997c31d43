"""The archive and the trace as data frames: ``<root>/vhost=<name>/date=YYYY-MM-DD/*.parquet``, read without a
broker.

Only listed files are read (see `gateway_spark.manifest`), and of those only the ones that may contain matching
rows.
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
from gateway_spark.iceberg import is_table, table_files
from gateway_spark.manifest import ArchiveFile, files_in
from gateway_spark.schema import MESSAGE_SCHEMA, TRACE_SCHEMA

#: A segment is sealed at midnight, and its last messages may be in the directory of the day before.
MARGIN: Final = timedelta(days=1)

#: A longer percent-encoded name of a virtual host is cut here in the name of its directory.
LONGEST_NAME: Final = 120

#: A column that identifies each table.
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
    """Return archived messages, optionally limited to a virtual host and to the archives of queues or exchanges.

    A message that passed an archived exchange and an archived queue is in both archives; ``queue`` is ``null`` in
    that of the exchange. If both exist, select one. The archive of an exchange also contains messages that arrived
    over bindings; the column ``exchange`` names the exchange they were published to.

    ``since`` is inclusive, ``until`` exclusive; both are compared with the time at which the broker received the
    message, and times without a zone are UTC. :raises OptionError: if the archive does not exist.
    """
    files = _files_of(path, vhost, since, until, "body")
    if queue is None and exchange is None:
        return _between(_frame(spark, files, MESSAGE_SCHEMA), since, until)
    queues, exchanges = _names(queue), _names(exchange)
    wanted = {*(("queue", name) for name in queues), *(("exchange", name) for name in exchanges)}
    chosen = [file for file in files if (file.line.get("kind"), file.line.get("name")) in wanted]
    # A file that the broker's manifest does not assign to an archive is assigned by its rows.
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
    """Return trace events, optionally limited to a virtual host; times as in `read_archive`.

    :raises OptionError: if the trace does not exist.
    """
    return _between(_frame(spark, _files_of(path, vhost, since, until, "event"), TRACE_SCHEMA), since, until)


def days(root: Path, vhost: str | None = None) -> list[Path]:
    """Return the directories of an archive, one for each virtual host and day, the earliest day first."""
    of_vhost = "*" if vhost is None else shortened(vhost)
    found = (path for path in root.glob(f"vhost={of_vhost}/date=*") if path.is_dir() and date_of(path) is not None)
    return sorted(found, key=lambda path: (path.name, path.parent.name))


def shortened(name: str) -> str:
    """Return a name as the broker writes it in a path: a long one ends with a digest."""
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
    """Return the files of a table that may overlap a period; ``column`` identifies the table.

    :raises OptionError: if the directory does not exist, or contains the other table.
    """
    require_table(Path(path))
    root = Path(path).absolute()  # Spark's working directory is the one at its start
    find = table_files if is_table(root) else _files
    files = list(find(root, vhost, _in_utc(since), _in_utc(until)))
    if files:
        columns = set(pq.read_schema(files[0].path).names)
        for other in TELLING.keys() - {column}:
            if other in columns and column not in columns:
                raise OptionError(f"{path} is {TELLING[other]}, not {TELLING[column]}")
    return files


def require_table(root: Path) -> None:
    """Check that a directory may have the files of a table. :raises OptionError: if not; it names tables below it."""
    if not root.is_dir():
        raise OptionError(f"{root}: the directory does not exist")
    if _is_root(root) or not any(root.iterdir()):
        return
    found = (child for depth in ("*", "*/*") for child in root.glob(depth))
    below = sorted(str(child.relative_to(root)) for child in found if _is_root(child))
    hint = f"; below it are {', '.join(below)}" if below else ""
    raise OptionError(f"{root} is not the directory of an archive or a trace{hint}")


def _is_root(directory: Path) -> bool:
    return is_table(directory) or next(directory.glob("vhost=*"), None) is not None


def _names(one_or_more: str | Sequence[str] | None) -> list[str]:
    return [one_or_more] if isinstance(one_or_more, str) else list(one_or_more or ())


def _files(root: Path, vhost: str | None, since: datetime | None, until: datetime | None) -> Iterator[ArchiveFile]:
    """Yield the files that may contain messages of a period, the earliest day first."""
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
    """Return the midnight at which the day of a directory began, or ``None`` for any other directory."""
    try:
        return datetime.strptime(directory.name, "date=%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        return None


def _in_utc(moment: datetime | None) -> datetime | None:
    if moment is None or moment.tzinfo is not None:
        return moment
    return moment.replace(tzinfo=UTC)
