"""The files of an archive or trace that is an Iceberg table on a local disk, found by the hint in its directory.

Spark reads them as plain Parquet, so that it needs no library for Iceberg. Files of one snapshot are returned, and none
is removed before a grace time has passed.
"""

from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gateway_spark.errors import OptionError
from gateway_spark.manifest import ArchiveFile

if TYPE_CHECKING:
    from pyiceberg.table import FileScanTask, StaticTable

HINT: Final = "metadata/version-hint.text"

#: In the root of an archive in the Parquet layout: its files belong to an Iceberg table.
ADOPTED: Final = "_iceberg"


def is_table(root: Path) -> bool:
    """Return whether a directory is that of an Iceberg table."""
    return (root / HINT).exists()


def table_files(root: Path, vhost: str | None, since: datetime | None, until: datetime | None) -> list[ArchiveFile]:
    """Return the data files that may contain messages of a virtual host and period.

    :raises OptionError: if pyiceberg is not installed.
    """
    try:
        expressions: Any = import_module("pyiceberg.expressions")  # Any: mypy does not know its constructors
        from pyiceberg.table import StaticTable
    except ImportError:
        raise OptionError(f"{root} is an Iceberg table: pip install 'gateway-broker[archive]'") from None
    wanted = expressions.AlwaysTrue()
    if vhost is not None:
        wanted = expressions.And(wanted, expressions.EqualTo("vhost", vhost))
    if since is not None:
        wanted = expressions.And(wanted, expressions.GreaterThanOrEqual("timestamp", since.isoformat()))
    if until is not None:
        wanted = expressions.And(wanted, expressions.LessThan("timestamp", until.isoformat()))
    table = StaticTable.from_metadata(str(root))
    return [_file(table, task) for task in table.scan(row_filter=wanted).plan_files()]


def _file(table: "StaticTable", task: "FileScanTask") -> ArchiveFile:
    file = task.file
    path = Path(file.file_path.removeprefix("file://"))
    return ArchiveFile(path, file.file_size_in_bytes, file.record_count, line=_source(table, task))


def _source(table: "StaticTable", task: "FileScanTask") -> dict[str, Any]:
    """Return the exchange or queue of a file, as the manifest of the Parquet layout names it."""
    names = [field.name for field in table.specs()[task.file.spec_id].fields]
    values = {name: task.file.partition[place] for place, name in enumerate(names)}
    if "source" not in values:
        return {}
    return {"kind": values["source"], "name": values["source_name"]}
