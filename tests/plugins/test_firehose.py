"""The firehose reports every message as RabbitMQ's does, and not its own.

Rules: R145.
"""

from datetime import UTC, datetime

from gateway.api import Message, Origin, Properties, Tracer, Value
from gateway.kernel.messages.message import Header
from gateway_tracing.firehose import gateway_tracers

ORIGIN = Origin(connection="127.0.0.1:5001 -> 127.0.0.1:5672", channel=3, user="guest", protocol="AMQP 0-9-1")
PROPERTIES = Properties(
    content_type="text/plain",
    headers={"h": 1},
    delivery_mode=2,
    timestamp=datetime(2024, 1, 1, tzinfo=UTC),
)


class Format:
    name = "test"

    def header(self, raw: bytes) -> Header:
        return Header(self, raw, sender_keys=("copy", "blind"))

    def properties(self, raw: bytes) -> Properties:
        return PROPERTIES


class RecordingVhost:
    name = "/"
    node = "gateway@here"

    def __init__(self) -> None:
        self.publishes: list[tuple[str, str, Properties, bytes]] = []

    def publish(self, exchange: str, routing_key: str, properties: Properties, body: bytes) -> None:
        self.publishes.append((exchange, routing_key, properties, body))


def tracer_of(vhost: RecordingVhost) -> Tracer:
    (tracer,) = gateway_tracers(vhost)
    return tracer


def message_to(exchange: str) -> Message:
    return Message(exchange, "key", Format().header(b""), b"body")


COMMON: dict[str, Value] = {
    "exchange_name": "logs",
    "routing_keys": ["key", "copy", "blind"],
    "properties": {
        "content_type": "text/plain",
        "headers": {"h": 1},
        "delivery_mode": 2,
        "timestamp": 1704067200,
    },
    "node": "gateway@here",
    "vhost": "/",
    "connection": "127.0.0.1:5001 -> 127.0.0.1:5672",
    "channel": 3,
    "user": "guest",
}


def test_a_publish_is_copied_with_the_name_of_its_exchange() -> None:
    vhost = RecordingVhost()
    tracer_of(vhost).published(message_to("logs"), ["one", "two"], ORIGIN)
    [(exchange, routing_key, properties, body)] = vhost.publishes
    assert (exchange, routing_key, body) == ("amq.rabbitmq.trace", "publish.logs", b"body")
    assert properties == Properties(headers={**COMMON, "routed_queues": ["one", "two"]})


def test_a_publish_to_the_default_exchange_has_an_empty_name() -> None:
    vhost = RecordingVhost()
    tracer_of(vhost).published(message_to(""), [], ORIGIN)
    assert vhost.publishes[0][1] == "publish."


def test_a_delivery_is_copied_with_the_name_of_its_queue() -> None:
    vhost = RecordingVhost()
    tracer_of(vhost).delivered(message_to("logs"), "inbox", True, ORIGIN)
    [(exchange, routing_key, properties, body)] = vhost.publishes
    assert (exchange, routing_key, body) == ("amq.rabbitmq.trace", "deliver.inbox", b"body")
    assert properties == Properties(headers={**COMMON, "redelivered": 1})


def test_a_first_delivery_is_not_marked_as_redelivered() -> None:
    vhost = RecordingVhost()
    tracer_of(vhost).delivered(message_to("logs"), "inbox", False, ORIGIN)
    assert vhost.publishes[0][2].headers["redelivered"] == 0


def test_messages_of_the_trace_exchange_are_not_traced() -> None:
    vhost = RecordingVhost()
    tracer = tracer_of(vhost)
    tracer.published(message_to("amq.rabbitmq.trace"), ["traces"], ORIGIN)
    tracer.delivered(message_to("amq.rabbitmq.trace"), "traces", False, ORIGIN)
    assert vhost.publishes == []
