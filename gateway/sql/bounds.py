"""The bounds of a column that a filter implies: rows outside are not selected.

Arrow's expressions cannot be taken apart. But Arrow decides whether a file can have wanted rows if all of its rows
fulfil a guarantee, so the bounds are found by a binary search with guarantees.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyarrow.fs import LocalFileSystem

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

#: 9999-12-31T23:59:59.999Z in milliseconds.
_LAST_MS: Final = 253_402_300_799_999

_FORMAT: Final = ds.ParquetFileFormat()


class Bounds(NamedTuple):
    """Values from ``first`` up to, not including, ``end``."""

    first: int
    end: int


def may_select(wanted: Any, guarantee: Any, schema: pa.Schema) -> bool:
    """Return whether a filter may select rows that all fulfil a guarantee; both are expressions of Arrow."""
    fragment = _FORMAT.make_fragment("none", filesystem=LocalFileSystem(), partition_expression=guarantee)
    return any(True for _ in ds.FileSystemDataset([fragment], schema, _FORMAT).get_fragments(wanted))


def offset_bounds(wanted: Any, schema: pa.Schema, within: Bounds) -> Bounds:
    """Return the offsets that a filter may select, within others."""
    offset = pc.field("offset")
    return _bounds(wanted, schema, within, lambda last: offset <= last, lambda first: offset >= first)


def time_bounds_ms(wanted: Any, schema: pa.Schema) -> Bounds:
    """Return the times that a filter may select, in milliseconds since the epoch."""
    time, within = pc.field("timestamp"), Bounds(0, _LAST_MS)
    return _bounds(wanted, schema, within, lambda last: time < moment(last + 1), lambda first: time >= moment(first))


def moment(ms: int) -> Any:
    """Return a time in milliseconds since the epoch as a value of Arrow."""
    return pa.scalar(_EPOCH + timedelta(milliseconds=ms), pa.timestamp("us", tz="UTC"))


def _bounds(
    wanted: Any, schema: pa.Schema, within: Bounds, up_to: Callable[[int], Any], since: Callable[[int], Any]
) -> Bounds:
    """Return the bounds of a column; ``up_to`` and ``since`` return guarantees of its values."""
    if wanted is None:
        return within
    first = _least(within, lambda value: may_select(wanted, up_to(value), schema))
    end = _least(within, lambda value: not may_select(wanted, since(value), schema))
    return Bounds(first, end)


def _least(within: Bounds, is_reached: Callable[[int], bool]) -> int:
    """Return the least value for which a condition holds that holds for all greater ones; ``end`` if there is none."""
    low, high = within
    while low < high:
        middle = (low + high) // 2
        if is_reached(middle):
            high = middle
        else:
            low = middle + 1
    return low
