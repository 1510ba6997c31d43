"""The OpenTelemetry plugin: spans of publishes and deliveries, and their context on the wire of every protocol."""

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("opentelemetry.sdk")

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ParentBased
from opentelemetry.trace import SpanKind

from gateway.api import ConfigurationError, Message, Origin
from gateway.plugins.registry import load_plugins
from gateway.testing import check_interceptor, plain_message
from gateway_mqtt.codec.properties import PropertyId, write_block
from gateway_tracing.open_telemetry import OpenTelemetrySettings, Spans, provider_of
from tests.scenarios.all_protocols_broker import AllProtocolsBroker, fetched, properties_of, published, queue

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = f"00-{TRACE}-b7ad6b7169203331-01"
UNSAMPLED = f"00-{TRACE}-b7ad6b7169203331-00"
ORIGIN = Origin("client", 1, "guest", "amqp091")


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


def spans_to(exporter: InMemorySpanExporter, sampler: Any = None) -> Spans:
    provider = TracerProvider(sampler)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return Spans("/", provider)


def id_of(span: ReadableSpan) -> str:
    assert span.context is not None
    return f"{span.context.span_id:016x}"


def parent_of(span: ReadableSpan) -> str:
    return "" if span.parent is None else f"{span.parent.span_id:016x}"


def traceparent(message: object) -> str:
    assert isinstance(message, Message)
    value = message.headers["traceparent"]
    assert isinstance(value, str)
    return value


def by_amqp(gateway: AllProtocolsBroker) -> None:
    gateway.peer().send(published("t.1", b"hi", headers={"traceparent": PARENT})).receive()


def by_mqtt(gateway: AllProtocolsBroker) -> None:
    properties = write_block({PropertyId.USER_PROPERTY: [("traceparent", PARENT)]})
    gateway.client("sensor").publish("t/1", b"hi", properties=properties)


def by_stomp(gateway: AllProtocolsBroker) -> None:
    gateway.stomp().publish("/topic/t.1", b"hi", {"traceparent": PARENT})


@pytest.mark.parametrize("send", [by_amqp, by_mqtt, by_stomp])
def test_the_context_of_a_publisher_continues_to_the_consumer(
    exporter: InMemorySpanExporter, send: Callable[[AllProtocolsBroker], None]
) -> None:
    gateway = AllProtocolsBroker()
    gateway.peer().send(*queue("q", "t.#")).receive()
    gateway.vhost.interception.apply([spans_to(exporter)])
    gateway.settle()
    send(gateway)
    received = properties_of(fetched(gateway.peer(), "q"))
    publish, delivery = exporter.get_finished_spans()
    assert (publish.name, publish.kind, parent_of(publish)) == ("publish amq.topic", SpanKind.PRODUCER, PARENT[36:52])
    assert (delivery.name, delivery.kind, parent_of(delivery)) == ("deliver q", SpanKind.CONSUMER, id_of(publish))
    assert received.headers["traceparent"] == f"00-{TRACE}-{id_of(delivery)}-01"


def test_a_subscriber_of_each_protocol_gets_the_context(exporter: InMemorySpanExporter) -> None:
    gateway = AllProtocolsBroker()
    gateway.vhost.interception.apply([spans_to(exporter)])
    sensor, shop = gateway.client("s"), gateway.stomp()
    sensor.request(sensor.write.subscribe(("t/#", 0)))
    shop.command("SUBSCRIBE", {"destination": "/topic/t.#", "id": "1"})
    by_amqp(gateway)
    [to_sensor] = [line for line in sensor.receive() if line.startswith("PUBLISH")]
    assert TRACE in to_sensor
    assert TRACE in "".join(map(str, shop.receive()))


def test_a_message_without_a_context_begins_a_trace(exporter: InMemorySpanExporter) -> None:
    spans = spans_to(exporter)
    first = traceparent(spans.on_publish(plain_message(headers={"traceparent": 7}), ORIGIN))
    second = traceparent(spans.on_publish(plain_message(), ORIGIN))
    assert [parent_of(span) for span in exporter.get_finished_spans()] == ["", ""]
    assert first[3:35] != second[3:35]


def test_the_state_of_a_vendor_is_passed_on(exporter: InMemorySpanExporter) -> None:
    message = plain_message(headers={"traceparent": PARENT, "tracestate": "vendor=1"})
    changed = spans_to(exporter).on_publish(message, ORIGIN)
    assert isinstance(changed, Message)
    assert changed.headers["tracestate"] == "vendor=1"


def test_spans_have_the_attributes_of_messaging(exporter: InMemorySpanExporter) -> None:
    spans_to(exporter).on_deliver(plain_message(), "q", Origin("c", 0, "al", "MQTT 5.0", "sensor-1"))
    [span] = exporter.get_finished_spans()
    attributes = dict(span.attributes or {})
    assert attributes["messaging.operation.type"] == "receive"
    assert attributes["messaging.destination.name"] == "q"
    assert (attributes["user.name"], attributes["messaging.client.id"]) == ("al", "sensor-1")


def test_the_publisher_decides_whether_its_trace_is_sampled(exporter: InMemorySpanExporter) -> None:
    spans = spans_to(exporter, ParentBased(ALWAYS_OFF))
    assert traceparent(spans.on_publish(plain_message(headers={"traceparent": UNSAMPLED}), ORIGIN)).endswith("-00")
    assert exporter.get_finished_spans() == ()
    spans.on_publish(plain_message(headers={"traceparent": PARENT}), ORIGIN)
    assert len(exporter.get_finished_spans()) == 1


def test_it_fulfils_the_contract_of_interceptors(exporter: InMemorySpanExporter) -> None:
    spans = spans_to(exporter)
    check_interceptor(spans)
    assert spans.on_error == "pass"


def test_the_service_and_the_node_are_the_resource() -> None:
    provider = provider_of(OpenTelemetrySettings(service_name="shop"), "/", "gateway@here")
    attributes = provider.resource.attributes
    provider.shutdown()
    assert (attributes["service.name"], attributes["service.instance.id"]) == ("shop", "gateway@here")


@pytest.mark.parametrize("settings", [{"sample": 2.0}, {"service_name": ""}, {"max_waiting": 0}, {"url": "x"}])
def test_wrong_settings_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(settings))):
        load_plugins().view("/", {"tracing-opentelemetry": settings})
