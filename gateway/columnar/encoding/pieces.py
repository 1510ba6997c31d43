"""A piece of a stream in columns, with the bounds that its file and index record."""

from typing import Final, NamedTuple

import pyarrow as pa

DAY_MS: Final = 86_400_000
"""Milliseconds in a day of UTC."""


class Piece(NamedTuple):
    """The messages from offset ``first`` to before ``end``, stored from ``first_ms`` to ``last_ms`` on one day."""

    first: int
    end: int
    first_ms: int
    last_ms: int
    batch: pa.RecordBatch
