"""The columns that form messages, checked once, and the heads of rows: what a message has besides its body.

A head is a JSON object with ``exchange``, ``routing_key``, ``properties``, and ``headers`` or ``headers_json``; the
batch gives the defaults.
"""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
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

from gateway_spark.errors import OptionError
from gateway_spark.options import SinkOptions

#: Heads that are kept until there are more: with their keys a few megabytes at most, if they are short.
_HEADS_KEPT: Final = 10_000

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


class Heads:
    """Encodes the heads of rows with one schema. Most are repeated, so the last ones are kept."""

    def __init__(self) -> None:
        self._head_by_values: dict[tuple[Any, ...], bytes] = {}

    def of(self, batch: Any) -> list[bytes]:
        """Return the head of each row of an Arrow batch. :raises PipelineError: if headers are not JSON."""
        names = [name for name in batch.schema.names if name != "body"]
        if not names:
            return [_head({})] * len(batch)
        columns = [batch.column(name).to_pylist() for name in names]
        if "headers" in names:  # lists of pairs
            at = names.index("headers")
            columns[at] = [None if each is None else tuple(each) for each in columns[at]]
        return [self._head(names, values) for values in zip(*columns, strict=True)]

    def _head(self, names: list[str], values: tuple[Any, ...]) -> bytes:
        head = self._head_by_values.get(values)
        if head is None:
            if len(self._head_by_values) >= _HEADS_KEPT:
                self._head_by_values.clear()
            head = self._head_by_values[values] = _head(dict(zip(names, values, strict=True)))
        return head


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
