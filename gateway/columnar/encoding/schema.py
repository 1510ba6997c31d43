"""The columns of messages and of trace events, as Arrow types.

They are exactly the types that Spark derives from its own schema (names inside maps and lists, time zone,
nullability); Spark accepts no others. Everything is nullable except the keys of maps.
"""

from typing import Final

import pyarrow as pa

TIMESTAMP: Final = pa.timestamp("us", tz="UTC")


def _list(item: pa.DataType) -> pa.DataType:
    return pa.list_(pa.field("element", item))


DEATH: Final = pa.struct(
    [
        ("queue", pa.string()),
        ("reason", pa.string()),
        ("count", pa.int64()),
        ("time", TIMESTAMP),
        ("exchange", pa.string()),
        ("routing_keys", _list(pa.string())),
    ]
)
"""One entry of ``x-death``."""

MQTT: Final = pa.struct([("topic", pa.string()), ("qos", pa.int32()), ("retain", pa.bool_())])
"""Properties that only MQTT has; null for every other protocol."""

ORIGIN: Final = [
    ("vhost", pa.string()),
    ("queue", pa.string()),
    ("partition", pa.int32()),
    ("offset", pa.int64()),
    ("timestamp", TIMESTAMP),
]
"""The position and store time of a message."""

ENVELOPE: Final = [
    ("exchange", pa.string()),
    ("routing_key", pa.string()),
    ("protocol", pa.string()),
    ("user_id", pa.string()),
    ("client_id", pa.string()),
    ("message_id", pa.string()),
    ("correlation_id", pa.string()),
    ("reply_to", pa.string()),
    ("content_type", pa.string()),
    ("content_encoding", pa.string()),
    ("type", pa.string()),
    ("app_id", pa.string()),
    ("priority", pa.int32()),
    ("delivery_mode", pa.int32()),
    ("expiration", pa.string()),
    ("redelivered", pa.bool_()),
    ("message_timestamp", TIMESTAMP),
    ("headers", pa.map_(pa.string(), pa.string())),
    ("headers_json", pa.string()),
    ("x_death", _list(DEATH)),
    ("mqtt", MQTT),
]
"""The envelope of a message, in the order of ``EnvelopeColumns``: equal for all messages with the same envelope."""

MESSAGES: Final = pa.schema([*ORIGIN, *ENVELOPE, ("body", pa.binary())])

TRACE: Final = pa.schema(
    [
        ("vhost", pa.string()),
        ("event", pa.string()),
        ("timestamp", TIMESTAMP),
        ("monotonic_ns", pa.int64()),
        ("protocol", pa.string()),
        ("connection", pa.string()),
        ("user_id", pa.string()),
        ("queue", pa.string()),
        ("exchange", pa.string()),
        ("routing_key", pa.string()),
        ("message_id", pa.string()),
        ("trace_id", pa.int64()),
        ("position", pa.int64()),
        ("outcome", pa.string()),
        ("reason", pa.string()),
        ("redelivered", pa.bool_()),
        ("body_size", pa.int64()),
    ]
)
