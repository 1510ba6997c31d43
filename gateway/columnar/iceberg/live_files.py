"""The data files of a table's current snapshot, with the bounds of their times."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pyiceberg.conversions import from_bytes
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table
from pyiceberg.types import PrimitiveType


@dataclass(frozen=True, slots=True)
class LiveFile:
    """A data file. The times are those of its first and its last row; ``None`` if the file does not tell."""

    file: DataFile
    first_time: datetime | None
    last_time: datetime | None


def live_files(table: Table) -> Iterator[LiveFile]:
    """Yield the data files of the current snapshot."""
    time = table.schema().find_field("timestamp")
    kind = time.field_type
    assert isinstance(kind, PrimitiveType)

    def bound(bounds: dict[int, bytes] | None) -> datetime | None:
        encoded = (bounds or {}).get(time.field_id)
        return None if encoded is None else _moment(from_bytes(kind, encoded))

    for task in table.scan().plan_files():
        yield LiveFile(task.file, bound(task.file.lower_bounds), bound(task.file.upper_bounds))


def _moment(microseconds: Any) -> datetime:
    return datetime.fromtimestamp(microseconds / 1_000_000, UTC)
