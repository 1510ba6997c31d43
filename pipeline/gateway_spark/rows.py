"""Encoding of rows for the broker: columns are checked once, and each row is a JSON head and a body.

A frame is two lengths of four bytes, big-endian, then the head, then the body. The head is an object with
``exchange``, ``routing_key``, ``properties``, and ``headers`` or ``headers_json``; the batch gives the defaults. A
head of length 0 repeats that of the previous row; the first row of a part has one.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from struct import Struct
from typing import Any, Final

from pyspark.sql.types import (
    BinaryType,
    ByteType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructType,
    TimestampType,
)

from gateway_spark.errors import OptionError, PipelineError
from gateway_spark.options import SinkOptions

LENGTHS: Final = Struct(">II")

_TEXT: Final = (StringType,)
_NUMBER: Final = (ByteType, ShortType, IntegerType, LongType)

#: Column to its AMQP property.
PROPERTY_BY_COLUMN: Final[Mapping[str, str]] = {
    "content_type": "content_type",
    "content_encoding": "content_encoding",
    "delivery_mode": "delivery_mode",
    "priority": "priority",
    "correlation_id": "correlation_id",
    "reply_to": "reply_to",
    "expiration": "expiration",
    "message_id": "message_id",
    "message_timestamp": "timestamp",
    "type": "type",
    "user_id": "user_id",
    "app_id": "app_id",
}

#: The permitted types of each column, and their description.
KINDS: Final[Mapping[str, tuple[tuple[type[DataType], ...], str]]] = {
    "body": ((BinaryType, StringType), "binary or string"),
    "exchange": (_TEXT, "string"),
    "routing_key": (_TEXT, "string"),
    "headers": ((MapType,), "map<string,string>"),
    "headers_json": (_TEXT, "string"),
    **{
        name: (_NUMBER, "int") if name in ("delivery_mode", "priority") else (_TEXT, "string")
        for name in PROPERTY_BY_COLUMN
    },
    "message_timestamp": ((TimestampType,), "timestamp"),
}


def require_publishable(schema: StructType, options: SinkOptions) -> None:
    """Check that the columns form messages. :raises OptionError: with the first invalid column."""
    for field in schema.fields:
        kinds, called = KINDS.get(field.name, ((), ""))
        if not kinds:
            raise OptionError(f"column '{field.name}' is not a message column; the sink accepts {', '.join(KINDS)}")
        is_map = isinstance(field.dataType, MapType)
        if not isinstance(field.dataType, kinds) or (is_map and not _is_text_map(field.dataType)):
            raise OptionError(f"column '{field.name}' must be {called}, not {field.dataType.simpleString()}")
    if "body" not in schema.names:
        raise OptionError("column 'body' is required: binary or string")
    if "exchange" not in schema.names and options.exchange is None:
        raise OptionError("column 'exchange' or option 'exchange' is required; '' is the default exchange")


def framed(batches: Iterable[Any], part_bytes: int) -> Iterator[tuple[bytes, int]]:
    """Yield the rows of Arrow batches in parts of about this many bytes, with the number of rows in each.

    :raises PipelineError: for a row without a body, or with headers that are not JSON.
    """
    part, count, earlier = bytearray(), 0, b""
    for batch in batches:
        for head, body in _rows(batch):
            written = b"" if head == earlier and count else head
            part += LENGTHS.pack(len(written), len(body)) + written + body
            earlier, count = head, count + 1
            if len(part) >= part_bytes:
                yield bytes(part), count
                part, count = bytearray(), 0
    if count:
        yield bytes(part), count


def _rows(batch: Any) -> Iterator[tuple[bytes, bytes]]:
    """Yield the head and the body of each row."""
    columns = {name: batch.column(index).to_pylist() for index, name in enumerate(batch.schema.names)}
    bodies = columns.pop("body")
    names = tuple(columns)
    constant = _head({}) if not names else b""
    for body, *values in zip(bodies, *columns.values(), strict=True):
        if body is None:
            raise PipelineError("column 'body' is null in a row; a message has a body, which may be empty")
        head = constant or _head(dict(zip(names, values, strict=True)))
        yield head, body.encode() if isinstance(body, str) else body


def _head(row: Mapping[str, Any]) -> bytes:
    head: dict[str, Any] = {}
    properties: dict[str, Any] = {}
    for name, value in row.items():
        if value is None:
            continue
        if name in PROPERTY_BY_COLUMN:
            properties[PROPERTY_BY_COLUMN[name]] = _WRITERS.get(type(value), _as_it_is)(value)
        else:
            head[name] = dict(value) if name == "headers" else value
    if properties:
        head["properties"] = properties
    return json.dumps(head, separators=(",", ":")).encode()


def _as_it_is(value: Any) -> Any:
    return value


def _seconds(value: datetime) -> int:
    """Return a time for AMQP; Arrow returns times with their zone."""
    return int((value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp() // 1)


_WRITERS: Final[Mapping[type, Callable[[Any], Any]]] = {datetime: _seconds}


def _is_text_map(kind: DataType) -> bool:
    return isinstance(kind, MapType) and isinstance(kind.keyType, StringType) and isinstance(kind.valueType, StringType)
