"""The columnar worker: rows and headers of messages, read from the chunks of a stream."""

from collections.abc import Iterable
from typing import Final

from gateway.columnar.encoding.direct_headers import AmqpHeaders
from gateway.columnar.encoding.direct_rows import DirectReader
from gateway.columnar.encoding.rows import rows_between
from gateway.kernel.errors import StorageError
from gateway_amqp.tables import MalformedField, encode_table
from tests.columnar.streams import chunk, message
from tests.fuzz.decoders.laws import attempt, refused, require, require_same
from tests.fuzz.decoders.target import Target

#: Beyond every offset.
_END: Final = 2**62


def _rows(data: bytes) -> None:
    """Rows are read from a chunk, or refused, as by the code that makes an object of each."""
    found = attempt(StorageError, _count, data)
    expected = attempt(StorageError, _count_by_objects, data)
    require(refused(found) == refused(expected), "both ways refuse the same chunks", found, expected)
    if not refused(found):
        require_same("both ways find the same number of rows", found, expected)


def _count(data: bytes) -> int:
    return sum(len(rows) for rows in DirectReader().batches(data, 0, _END))


def _count_by_objects(data: bytes) -> int:
    return sum(len(rows) for rows in rows_between([data], 0, _END))


def _headers(data: bytes) -> None:
    """A table of headers has columns, or is refused."""
    attempt(MalformedField, AmqpHeaders().columns, data)


def _row_seeds() -> Iterable[bytes]:
    yield chunk([message(b"body"), message(b"")])
    yield chunk([message(b"body")]) + chunk([message(b"x")], first=1)


def _header_seeds() -> Iterable[bytes]:
    yield encode_table(
        {"a": "text", "n": 7, "x-death": [{"queue": "q", "count": 1}], "m": {"b": b"bytes", "l": [None]}}
    )


TARGETS: Final = (
    Target("columns-rows", _rows, ("gateway.columnar.encoding.direct_rows:DirectReader.batches",), _row_seeds),
    Target(
        "columns-headers", _headers, ("gateway.columnar.encoding.direct_headers:AmqpHeaders.columns",), _header_seeds
    ),
)
