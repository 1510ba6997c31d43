"""RabbitMQ's firehose tracer: publishes a copy of every traced message to ``amq.rabbitmq.trace``.

To use it, bind a queue to that exchange with ``publish.#``, ``deliver.#`` or a narrower key, and enable tracing for the
virtual host. A copy has the body of the original and its metadata as headers.
"""

from collections.abc import Sequence
from dataclasses import fields
from typing import Final

from gateway.api import Message, Origin, Properties, TracedVhost, Tracer, Value, hookimpl

TRACE_EXCHANGE: Final = "amq.rabbitmq.trace"
PROPERTY_NAMES: Final = tuple(field.name for field in fields(Properties))


class Firehose:
    """Publishes a copy of each message to the trace exchange, except of messages published there."""

    def __init__(self, vhost: TracedVhost) -> None:
        self._vhost = vhost

    def published(self, message: Message, queues: Sequence[str], origin: Origin) -> None:
        """Copy a published message, with routing key ``publish.`` and the exchange's name."""
        self._copy(f"publish.{message.exchange}", message, origin, {"routed_queues": list(queues)})

    def delivered(self, message: Message, queue: str, redelivered: bool, origin: Origin) -> None:
        """Copy a delivered message, with routing key ``deliver.`` and the queue's name."""
        self._copy(f"deliver.{queue}", message, origin, {"redelivered": int(redelivered)})

    def _copy(self, routing_key: str, message: Message, origin: Origin, extra: dict[str, Value]) -> None:
        if message.exchange == TRACE_EXCHANGE:
            return
        headers: dict[str, Value] = {
            "exchange_name": message.exchange,
            "routing_keys": [message.routing_key, *message.header.sender_keys],
            "properties": _table(message.properties),
            "node": self._vhost.node,
            "vhost": self._vhost.name,
            "connection": origin.connection,
            "channel": origin.channel,
            "user": origin.user,
            **extra,
        }
        self._vhost.publish(TRACE_EXCHANGE, routing_key, Properties(headers=headers), message.body)


def _table(properties: Properties) -> dict[str, Value]:
    """Return the properties that are set; the timestamp is in seconds since the epoch, as in RabbitMQ."""
    values: dict[str, Value] = {name: getattr(properties, name) for name in PROPERTY_NAMES}
    values["headers"] = dict(properties.headers) or None
    if properties.timestamp is not None:
        values["timestamp"] = int(properties.timestamp.timestamp())
    return {name: value for name, value in values.items() if value is not None}


@hookimpl
def gateway_tracers(vhost: TracedVhost) -> Sequence[Tracer]:
    """Offer the firehose."""
    return [Firehose(vhost)]
