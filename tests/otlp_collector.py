"""A collector of OpenTelemetry on a free port, which keeps the metrics that it gets by OTLP over HTTP."""

import gzip
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest


@dataclass
class Collector:
    """Paths and headers of all requests, the resource, and the last metrics by name. ``status`` is that of answers."""

    port: int = 0
    status: int = 200
    paths: list[str] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)
    resource: dict[str, str] = field(default_factory=dict)
    metrics: dict[str, Any] = field(default_factory=dict)

    def take(self, request: ExportMetricsServiceRequest) -> None:
        """Keep the metrics of a request."""
        for of_resource in request.resource_metrics:
            self.resource.update({each.key: each.value.string_value for each in of_resource.resource.attributes})
            for scope in of_resource.scope_metrics:
                self.metrics.update({metric.name: metric for metric in scope.metrics})


@contextmanager
def collector() -> Iterator[Collector]:
    """Run a collector."""
    found = Collector()

    class Requests(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            found.paths.append(self.path)
            found.headers.append({name.lower(): value for name, value in self.headers.items()})
            if found.status == 200:
                found.take(ExportMetricsServiceRequest.FromString(body))
            self.send_response(found.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *values: object) -> None:
            """Write nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Requests) as server:
        found.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield found
        finally:
            server.shutdown()
            thread.join()
