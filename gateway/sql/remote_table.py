"""A table whose rows are at the broker, as DuckDB reads it: with the columns and the filter of the query."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.dataset as ds

#: Rows that are read at a time; their bodies are in memory.
BATCH_ROWS: Final = 16_384


class RemoteTable(ds.Dataset):  # type: ignore[misc]  # Arrow has no types
    """A table that DuckDB scans as it scans a dataset of Arrow's: it calls ``scanner`` for each use in a query.

    ``fault`` is the first exception of a scan: DuckDB passes on only its text.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self.fault: BaseException | None = None

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return self._schema

    def scanner(self, columns: Sequence[str] | None = None, filter: Any = None, **_: Any) -> "Scan":
        """Return a scan of some columns and of the rows that a filter selects."""
        return Scan(self, list(self._schema.names if columns is None else columns), filter)

    def batches(self, columns: list[str], wanted: Any) -> Iterator[pa.RecordBatch]:
        """Yield batches with at least these columns and at least the wanted rows."""
        raise NotImplementedError


class Scan:
    """One scan of a table."""

    def __init__(self, table: RemoteTable, columns: list[str], wanted: Any) -> None:
        self._table = table
        self._columns = columns
        self._wanted = wanted

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the selected rows; they are read while DuckDB asks for them."""
        schema = pa.schema([self._table.schema.field(name) for name in self._columns])
        return pa.RecordBatchReader.from_batches(schema, self._selected(schema))

    def _selected(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        try:
            for batch in self._table.batches(self._columns, self._wanted):
                found = pa.Table.from_batches([batch]).select(self._columns)
                if self._wanted is not None:
                    found = found.filter(self._wanted)
                yield from found.cast(schema).to_batches()
        except BaseException as fault:
            self._table.fault = self._table.fault or fault
            raise
