"""Small data frames of messages and trace events for tests."""

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from gateway_spark.schema import MESSAGE_SCHEMA, TRACE_SCHEMA

#: The time of the first message in every test: a Monday, at midnight.
START: Final = datetime(2024, 1, 1, tzinfo=UTC)

USUAL: Final[Mapping[str, Any]] = {
    "vhost": "/",
    "queue": "readings",
    "partition": 0,
    "exchange": "amq.topic",
    "routing_key": "sensors.a",
    "protocol": "mqtt",
    "delivery_mode": 2,
    "redelivered": False,
    "body": b"{}",
}


def after(**duration: float) -> datetime:
    """Return the time that much after the start."""
    return START + timedelta(**duration)


def messages(spark: SparkSession, rows: Iterable[Mapping[str, Any]]) -> DataFrame:
    """Return messages with the given columns, consecutive offsets, one second apart, and defaults for other
    columns.

    A ``body`` that is not bytes is encoded as JSON.
    """
    return _frame(spark, MESSAGE_SCHEMA, [_message(number, row) for number, row in enumerate(rows)])


def trace(spark: SparkSession, rows: Iterable[Mapping[str, Any]]) -> DataFrame:
    """Return trace events, ``ms`` milliseconds after the start each, with defaults for other columns."""
    return _frame(spark, TRACE_SCHEMA, [_event(row) for row in rows])


def values(frame: DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    """Return the rows of some columns."""
    return [tuple(row) for row in frame.select(*columns).collect()]


def _message(number: int, row: Mapping[str, Any]) -> dict[str, Any]:
    message = {**USUAL, "offset": number, "timestamp": after(seconds=number), **row}
    if not isinstance(message["body"], bytes | None):
        message["body"] = json.dumps(message["body"]).encode()
    return message


def _event(row: Mapping[str, Any]) -> dict[str, Any]:
    ms = row["ms"]
    usual = {"vhost": "/", "queue": "orders", "protocol": "amqp", "position": 1, "timestamp": after(milliseconds=ms)}
    given = {name: value for name, value in row.items() if name != "ms"}
    return {**usual, "monotonic_ns": int(ms * 1e6), **given}


def _frame(spark: SparkSession, schema: StructType, rows: list[dict[str, Any]]) -> DataFrame:
    return spark.createDataFrame([tuple(row.get(name) for name in schema.names) for row in rows], schema)
