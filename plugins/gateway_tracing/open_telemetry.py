"""tracing-opentelemetry: a span for each publish and each delivery, by the official SDK of OpenTelemetry.

The context of a message is its header ``traceparent`` (W3C Trace Context), with ``tracestate``: an AMQP header, an MQTT
user property, a STOMP header. The span of a publish continues the publisher's context, that of a delivery continues the
one of the publish, and the consumer gets the context of its delivery. A thread of the SDK exports the spans.

Needs the libraries of the extra: ``pip install 'gateway-broker[opentelemetry]'``.
"""

import threading
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from pydantic import Field

from gateway.api import (
    ConfigurationError,
    Decision,
    Interceptor,
    Message,
    Origin,
    PluginSettings,
    TracedVhost,
    Value,
    hookimpl,
)

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import SpanKind
    from opentelemetry.util.types import AttributeValue

#: The headers of W3C Trace Context.
CONTEXT_HEADERS: Final = ("traceparent", "tracestate")


class OpenTelemetrySettings(PluginSettings):
    """The settings of ``tracing-opentelemetry``."""

    endpoint: str = ""
    """The URL of the collector for OTLP over HTTP, with its path. Empty for ``OTEL_EXPORTER_OTLP_ENDPOINT``."""

    service_name: str = Field(default="gateway", min_length=1)
    """The name of the service in the spans."""

    sample: float = Field(default=1.0, ge=0, le=1)
    """The fraction of messages without a context that is sampled; otherwise the publisher's context decides."""

    max_waiting: int = Field(default=2048, ge=1, le=1_000_000)
    """Spans that may wait for the collector; further ones are dropped."""


class Spans(Interceptor):
    """Makes a span for each publish and delivery, and puts its context into the message."""

    on_error = "pass"

    def __init__(self, vhost: str, provider: "TracerProvider") -> None:
        from opentelemetry.trace import SpanKind
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self._vhost = vhost
        self._provider = provider
        self._tracer = provider.get_tracer("gateway")
        self._propagator = TraceContextTextMapPropagator()
        self._producer, self._consumer = SpanKind.PRODUCER, SpanKind.CONSUMER

    def on_publish(self, message: Message, origin: Origin) -> Decision:
        """Return the message with the context of its publish."""
        attributes = {"messaging.operation.type": "send", "messaging.destination.name": message.exchange}
        return self._spanned(
            f"publish {message.exchange or 'amq.default'}", self._producer, message, origin, attributes
        )

    def on_deliver(self, message: Message, queue: str, origin: Origin) -> Message:
        """Return the message with the context of its delivery."""
        attributes = {"messaging.operation.type": "receive", "messaging.destination.name": queue}
        return self._spanned(f"deliver {queue}", self._consumer, message, origin, attributes)

    def close(self) -> None:
        """Export what waits, in a thread: the collector may not answer."""
        threading.Thread(target=self._provider.shutdown, name="tracing-opentelemetry", daemon=True).start()

    def _spanned(
        self, name: str, kind: "SpanKind", message: Message, origin: Origin, attributes: Mapping[str, str]
    ) -> Message:
        parent = self._propagator.extract(_context_of(message))
        span = self._tracer.start_span(name, parent, kind)
        if span.is_recording():
            span.set_attributes({**attributes, **self._attributes(message, origin)})
        changed: dict[str, str] = {}
        from opentelemetry.trace import set_span_in_context

        self._propagator.inject(changed, set_span_in_context(span, parent))
        span.end()
        headers: dict[str, Value] = dict(changed)
        return message.edited(headers)

    def _attributes(self, message: Message, origin: Origin) -> "dict[str, AttributeValue]":
        """Return the attributes of OpenTelemetry's conventions for messaging."""
        attributes: dict[str, AttributeValue] = {
            "messaging.system": "gateway",
            "messaging.rabbitmq.destination.routing_key": message.routing_key,
            "messaging.message.body.size": len(message.body),
            "network.protocol.name": origin.protocol_in_traces,
            "gateway.vhost": self._vhost,
            "gateway.connection": origin.connection,
            "user.name": origin.user,
        }
        if origin.client_id:
            attributes["messaging.client.id"] = origin.client_id
        if (message_id := message.properties.message_id) is not None:
            attributes["messaging.message.id"] = message_id
        return attributes


def _context_of(message: Message) -> dict[str, str]:
    """Return the headers of the message's context; those of another type than text are ignored."""
    found = {name: message.headers.get(name) for name in CONTEXT_HEADERS}
    return {name: value for name, value in found.items() if isinstance(value, str)}


def provider_of(settings: OpenTelemetrySettings, vhost: str, node: str) -> "TracerProvider":
    """Return a provider that exports to the collector. :raises ConfigurationError: without the libraries."""
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased

        from gateway_tracing.span_export import ReportedExporter
    except ImportError as error:
        extra = "pip install 'gateway-broker[opentelemetry]'"
        raise ConfigurationError(f"needs the library {error.name}: {extra}") from None
    resource = Resource.create({"service.name": settings.service_name, "service.instance.id": node})
    provider = TracerProvider(ParentBased(TraceIdRatioBased(settings.sample)), resource)
    exporter = ReportedExporter(OTLPSpanExporter(settings.endpoint or None), vhost, time.monotonic)
    batch = min(512, settings.max_waiting)
    provider.add_span_processor(BatchSpanProcessor(exporter, settings.max_waiting, max_export_batch_size=batch))
    return provider


@hookimpl
def gateway_settings_model() -> type[PluginSettings]:
    """Describe the collector and the sampling."""
    return OpenTelemetrySettings


@hookimpl
def gateway_interceptors(vhost: TracedVhost, settings: OpenTelemetrySettings) -> Sequence[Interceptor]:
    """Offer the spans. :raises ConfigurationError: without the libraries."""
    return [Spans(vhost.name, provider_of(settings, vhost.name, vhost.node))]
