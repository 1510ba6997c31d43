"""The bodies of a table, as samples."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

from pyiceberg.table import Table


def bodies_of(table: Table, values: Mapping[str, str | None], most: int) -> Iterator[bytes]:
    """Yield at most so many bodies of the rows with these values in columns."""
    expressions: Any = import_module("pyiceberg.expressions")  # Any: mypy does not know its constructors
    equal = [expressions.EqualTo(name, value) for name, value in values.items()]
    found = table.scan(expressions.And(*equal), selected_fields=("body",), limit=most)
    for batch in found.to_arrow_batch_reader():
        yield from batch.column("body").to_pylist()
