"""A piece of a stream as columns, with what its file and its index have to say of it."""

from typing import Final, NamedTuple

import pyarrow as pa

DAY_MS: Final = 86_400_000
"""Milliseconds of a day of UTC, which knows no others."""


class Piece(NamedTuple):
    """The messages from offset ``first`` to before ``end``, which came from ``first_ms`` to ``last_ms`` of one day."""

    first: int
    end: int
    first_ms: int
    last_ms: int
    batch: pa.RecordBatch
