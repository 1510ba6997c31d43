"""The log of ``tracing-opentelemetry`` about a collector that is down."""

import logging
from collections.abc import Sequence

import pytest

pytest.importorskip("opentelemetry.sdk")

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from gateway.logs.fields import fields_of
from gateway.testing.clock import FakeClock
from gateway_tracing.span_export import ReportedExporter

SPANS = [ReadableSpan("one"), ReadableSpan("two")]


class Collector(SpanExporter):
    """Logs each failure, as the exporter of OpenTelemetry does."""

    is_up = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        if self.is_up:
            return SpanExportResult.SUCCESS
        logging.getLogger(__name__).warning("%s refused", "connection")
        return SpanExportResult.FAILURE


def lines(caplog: pytest.LogCaptureFixture) -> list[tuple[str, object, object]]:
    """Return the lines since the last call: the text, the lost spans and the reason or the duration."""
    found = [(record.getMessage(), fields_of(record)) for record in caplog.records]
    caplog.clear()
    return [(text, fields["lost_spans"], fields.get("reason", fields.get("after_s"))) for text, fields in found]


def test_a_collector_that_is_down_is_named_at_once_and_then_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    clock, collector = FakeClock(), Collector()
    exporter = ReportedExporter(collector, "/", clock.monotonic_s)
    down = "the collector does not take spans"
    assert exporter.export(SPANS) is SpanExportResult.FAILURE
    assert lines(caplog) == [(down, 2, "connection refused")]
    for _ in range(119):
        clock.advance(1)
        exporter.export(SPANS)
    assert lines(caplog) == [(down, 120, "connection refused")]
    collector.is_up = True
    for _ in range(3):
        clock.advance(1)
        assert exporter.export(SPANS) is SpanExportResult.SUCCESS
    assert lines(caplog) == [("the collector takes spans again", 118, 120)]
    collector.is_up = False
    exporter.export(SPANS)
    assert lines(caplog) == [(down, 2, "connection refused")]


def test_a_collector_that_is_up_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    collector = Collector()
    collector.is_up = True
    ReportedExporter(collector, "/", FakeClock().monotonic_s).export(SPANS)
    assert caplog.records == []
