"""The columns of messages as Arrow types: exactly those that the broker sends."""

from typing import Final

import pyarrow as pa

TIME: Final = pa.timestamp("us", tz="UTC")
TEXTS: Final = pa.list_(pa.field("element", pa.string()))

DEATH: Final = pa.struct(
    [
        *((name, pa.string()) for name in ("queue", "reason")),
        ("count", pa.int64()),
        ("time", TIME),
        ("exchange", pa.string()),
        ("routing_keys", TEXTS),
    ]
)

MESSAGES: Final = pa.schema(
    [
        *((name, pa.string()) for name in ("vhost", "queue")),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", TIME),
        *(
            (name, pa.string())
            for name in ("exchange", "routing_key", "protocol", "user_id", "client_id", "message_id")
        ),
        *((name, pa.string()) for name in ("correlation_id", "reply_to", "content_type", "content_encoding", "type")),
        ("app_id", pa.string()),
        ("priority", pa.int32()),
        ("delivery_mode", pa.int32()),
        ("expiration", pa.string()),
        ("redelivered", pa.bool_()),
        ("message_timestamp", TIME),
        ("headers", pa.map_(pa.string(), pa.string())),
        ("headers_json", pa.string()),
        ("x_death", pa.list_(pa.field("element", DEATH))),
        ("mqtt", pa.struct([("topic", pa.string()), ("qos", pa.int32()), ("retain", pa.bool_())])),
        ("body", pa.binary()),
    ]
)
