"""A tracer that writes the messages of a virtual host to a file, in the formats of RabbitMQ's tracing plugin."""

import json
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from gateway.kernel.messages.message import Message
from gateway.kernel.messages.origin import Origin
from gateway.kernel.routing.topic_trie import TopicTrie
from gateway.management.messages import properties_view
from gateway.management.trace_files.line_writer import LineWriter
from gateway.management.views.json import encode

FORMATS: Final = ("json", "text")

#: Value of a field that does not apply, as in RabbitMQ's files.
_NONE: Final = "none"

_RULE: Final = "=" * 80


@dataclass(frozen=True, slots=True)
class TraceRequest:
    """The events to write, whose key (``publish.EXCHANGE``, ``deliver.QUEUE``) matches the ``pattern`` of a topic.

    ``max_payload_bytes`` cuts bodies; ``None`` is no limit.
    """

    name: str
    format: str
    pattern: str
    max_payload_bytes: int | None = None


class TraceFile:
    """Observes the messages of one virtual host; called for each."""

    def __init__(
        self, request: TraceRequest, vhost: str, node: str, writer: LineWriter, wall_ms: Callable[[], int]
    ) -> None:
        self.request = request
        self.vhost = vhost
        self.writer = writer
        self._node = node
        self._wall_ms = wall_ms
        self._pattern: TopicTrie[str, bool] = TopicTrie()
        self._pattern.insert(request.pattern, request.pattern, True)
        self._format = _text if request.format == "text" else _json

    def published(self, message: Message, queues: Sequence[str], origin: Origin) -> None:
        """Write a publish and its queues."""
        if self._pattern.match(f"publish.{message.exchange}"):
            self._write("published", message, origin, {"queue": _NONE, "routed_queues": list(queues)})

    def delivered(self, message: Message, queue: str, redelivered: bool, origin: Origin) -> None:
        """Write a delivery."""
        if self._pattern.match(f"deliver.{queue}"):
            self._write("received", message, origin, {"queue": queue, "routed_queues": _NONE})

    def _write(self, kind: str, message: Message, origin: Origin, queues: Mapping[str, Any]) -> None:
        row: dict[str, Any] = {
            "timestamp": _timestamp(self._wall_ms()),
            "type": kind,
            "node": self._node,
            "connection": origin.connection,
            "vhost": self.vhost,
            "user": origin.user,
            "channel": origin.channel,
            "exchange": message.exchange,
            **queues,
            "routing_keys": [message.routing_key, *message.header.sender_keys],
            "properties": properties_view(message.properties),
        }
        self.writer.put(self._format(row, bytes(message.body[: self.request.max_payload_bytes])))


def _timestamp(wall_ms: int) -> str:
    """Return a time as RabbitMQ's plugin writes it, to the millisecond."""
    moment = datetime.fromtimestamp(wall_ms // 1000, UTC)
    return f"{moment:%Y-%m-%d %H:%M:%S}:{wall_ms % 1000:03}"


def _json(row: Mapping[str, Any], payload: bytes) -> bytes:
    return encode({**row, "payload": b64encode(payload).decode()}) + b"\n"


def _text(row: Mapping[str, Any], payload: bytes) -> bytes:
    lines = [
        "",
        _RULE,
        f"{row['timestamp']}: Message {row['type']}",
        "",
        f"Node:         {row['node']}",
        f"Connection:   {row['connection']}",
        f"Virtual host: {row['vhost']}",
        f"User:         {row['user']}",
        f"Channel:      {row['channel']}",
        f"Exchange:     {row['exchange']}",
        f"Routing keys: {json.dumps(row['routing_keys'], ensure_ascii=False)}",
    ]
    if row["queue"] != _NONE:
        lines.append(f"Queue:        {row['queue']}")
    if row["routed_queues"] != _NONE:
        lines.append(f"Routed queues: {json.dumps(row['routed_queues'], ensure_ascii=False)}")
    head = "\n".join([*lines, f"Properties:   {encode(row['properties']).decode()}", "Payload: ", ""])
    return head.encode("utf-8", "replace") + payload + b"\n"
