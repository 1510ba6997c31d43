"""The export of a node's metrics to a collector of OpenTelemetry, by the official exporter in a thread."""

import logging
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit, urlunsplit

from gateway.config.otlp import Otlp
from gateway.logs import StructuredLog
from gateway.management.metrics.scrapes import node_scrape
from gateway.management.metrics.sources import MetricSources
from gateway.node.clockwork import Clockwork

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics.export import MetricsData

_log: Final = StructuredLog("node")

#: The longest time for one export with its repetitions, in seconds.
_TIMEOUT_S: Final = 10

_PATH: Final = "/v1/metrics"


class OtlpExport:
    """Sends batches from a thread, one export at a time. ``send`` returns whether the collector took a batch."""

    def __init__(self, send: Callable[["MetricsData"], bool], reason: Callable[[], str]) -> None:
        self._send = send
        self._reason = reason
        self._thread: threading.Thread | None = None
        self._is_failing = False

    @property
    def is_busy(self) -> bool:
        """Whether the last export is not finished."""
        return self._thread is not None and self._thread.is_alive()

    def start(self, batches: Sequence["MetricsData"]) -> None:
        """Send batches; the process may end meanwhile."""
        self._thread = threading.Thread(target=self._export, args=(batches,), name="otlp", daemon=True)
        self._thread.start()

    def _export(self, batches: Sequence["MetricsData"]) -> None:
        try:
            has_failed = not all(map(self._send, batches))
            reason = self._reason()
        except Exception as error:  # whatever the exporter raises: an export may fail, the next ones go on
            has_failed, reason = True, repr(error)
        if has_failed and not self._is_failing:
            _log.warning("the collector of otlp.endpoint does not take metrics", reason=reason)
        if self._is_failing and not has_failed:
            _log.info("the collector of otlp.endpoint takes metrics again")
        self._is_failing = has_failed


class _LastMessage(logging.Filter):
    """Keeps the last message of a library's log instead of writing it."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""

    def filter(self, record: logging.LogRecord) -> bool:
        """Keep the message, without the traceback, and drop the record."""
        self.text = record.getMessage()
        return False


def start_otlp(rules: Otlp, sources: MetricSources, clockwork: Clockwork) -> None:
    """Send the metrics to a collector from now on, if the settings name one."""
    if not rules.endpoint:
        return
    from gateway.management.metrics.otlp import OtlpPusher

    export = _export_to(rules)
    broker = sources.api.broker
    resource = {"service.name": rules.service_name, "service.instance.id": broker.node}
    pusher = OtlpPusher(
        lambda: node_scrape(sources),
        export.start,
        lambda: export.is_busy,
        resource,
        lambda: broker.clock.wall_ms() * 1_000_000,
    )
    clockwork.start_sliced(rules.interval_s, pusher.pushing)


def endpoint_of(url: str) -> str:
    """Return the URL of a collector's metrics: one without a path gets the path of the protocol's specification."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(path=_PATH)) if parts.path in ("", "/") else url


def _export_to(rules: Otlp) -> OtlpExport:
    from opentelemetry.exporter.otlp.proto.http import metric_exporter
    from opentelemetry.sdk.metrics.export import MetricExportResult
    from opentelemetry.util.re import parse_env_headers

    last = _LastMessage()
    log = logging.getLogger(metric_exporter.__name__)
    log.filters[:] = [last]  # those of a node before this one in the same process are gone with it
    exporter = metric_exporter.OTLPMetricExporter(
        endpoint_of(rules.endpoint),
        headers=dict(parse_env_headers(rules.headers.get_secret_value(), liberal=True)) or None,
        timeout=_TIMEOUT_S,
    )
    return OtlpExport(lambda batch: exporter.export(batch) is MetricExportResult.SUCCESS, lambda: last.text)
