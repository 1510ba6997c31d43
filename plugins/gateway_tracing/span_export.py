"""The export of spans with a log that stays short while the collector is down: one line a minute, and one at the end.

The exporter of OpenTelemetry's SDK logs each failed batch, which is a line a second, and each repetition of its own.
"""

import logging
import threading
from collections.abc import Callable, Sequence
from typing import Final

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from gateway.api import StructuredLog

#: The shortest time between two lines about the same failing collector, in seconds.
REPEAT_S: Final = 60.0

_log: Final = StructuredLog("tracing-opentelemetry")


class ReportedExporter(SpanExporter):
    """Exports by another exporter, whose log it replaces. Called by one thread of the SDK."""

    def __init__(self, exporter: SpanExporter, vhost: str, now: Callable[[], float]) -> None:
        self._exporter = exporter
        self._vhost = vhost
        self._now = now
        self._reasons = _reasons_of(type(exporter).__module__)
        self._failing_since: float | None = None
        self._reported_at = 0.0
        self._lost = 0  # spans since the last line

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send a batch, and report a failure."""
        result = self._exporter.export(spans)
        if result is SpanExportResult.SUCCESS:
            self._recovered()
        else:
            self._failed(len(spans))
        return result

    def shutdown(self) -> None:
        """End the export."""
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Send what the exporter keeps."""
        return self._exporter.force_flush(timeout_millis)

    def _failed(self, spans: int) -> None:
        now = self._now()
        self._lost += spans
        if self._failing_since is None:
            self._failing_since = now
        elif now - self._reported_at < REPEAT_S:
            return
        self._reported_at = now
        _log.warning(
            "the collector does not take spans", vhost=self._vhost, lost_spans=self._lost, reason=self._reasons.last
        )
        self._lost = 0

    def _recovered(self) -> None:
        if self._failing_since is not None:
            seconds = round(self._now() - self._failing_since)
            _log.info("the collector takes spans again", vhost=self._vhost, lost_spans=self._lost, after_s=seconds)
            self._failing_since, self._lost = None, 0


class _Reasons(logging.Filter):
    """Keeps the last message that each thread logged, instead of writing it."""

    def __init__(self) -> None:
        super().__init__()
        self._kept = threading.local()

    @property
    def last(self) -> str:
        """The last message of this thread."""
        return getattr(self._kept, "text", "")

    def filter(self, record: logging.LogRecord) -> bool:
        """Keep the message, without the traceback, and drop the record."""
        self._kept.text = record.getMessage()
        return False


def _reasons_of(module: str) -> _Reasons:
    """Return the filter of a module's log, which all exporters of the process share."""
    log = logging.getLogger(module)
    for found in log.filters:
        if isinstance(found, _Reasons):
            return found
    added = _Reasons()
    log.addFilter(added)
    return added
