"""The columns of messages and of trace events, the same for streams and the archive."""

from typing import Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

TEXT: Final = StringType()
TIME: Final = TimestampType()


def _columns(**types: object) -> StructType:
    return StructType([StructField(name, kind) for name, kind in types.items()])  # type: ignore[arg-type]


#: One ``x-death`` entry.
DEATH_SCHEMA: Final = _columns(
    queue=TEXT, reason=TEXT, count=LongType(), time=TIME, exchange=TEXT, routing_keys=ArrayType(TEXT)
)

MESSAGE_SCHEMA: Final = _columns(
    vhost=TEXT,
    queue=TEXT,
    partition=IntegerType(),
    offset=LongType(),
    timestamp=TIME,
    exchange=TEXT,
    routing_key=TEXT,
    protocol=TEXT,
    user_id=TEXT,
    client_id=TEXT,
    message_id=TEXT,
    correlation_id=TEXT,
    reply_to=TEXT,
    content_type=TEXT,
    content_encoding=TEXT,
    type=TEXT,
    app_id=TEXT,
    priority=IntegerType(),
    delivery_mode=IntegerType(),
    expiration=TEXT,
    redelivered=BooleanType(),
    message_timestamp=TIME,
    headers=MapType(TEXT, TEXT),
    headers_json=TEXT,
    x_death=ArrayType(DEATH_SCHEMA),
    mqtt=_columns(topic=TEXT, qos=IntegerType(), retain=BooleanType()),
    body=BinaryType(),
)

#: The last column of a source that reads from several brokers: the name of the message's broker.
BROKER_FIELD: Final = StructField("broker", TEXT)

#: Trace events of messages. ``trace_id`` is the broker's number of a published message, ``null`` once it was paged
#: out; ``position`` is its permanent position in a queue.
TRACE_SCHEMA: Final = _columns(
    vhost=TEXT,
    event=TEXT,
    timestamp=TIME,
    monotonic_ns=LongType(),
    protocol=TEXT,
    connection=TEXT,
    user_id=TEXT,
    queue=TEXT,
    exchange=TEXT,
    routing_key=TEXT,
    message_id=TEXT,
    trace_id=LongType(),
    position=LongType(),
    outcome=TEXT,
    reason=TEXT,
    redelivered=BooleanType(),
    body_size=LongType(),
)
