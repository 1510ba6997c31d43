"""The text formats of Prometheus: bytes of a scrape, piece by piece, so that no turn is long.

The client library encodes the metrics of the node, and the head of every metric. Samples of single queues, connections
and channels can be hundreds of thousands: their labels are encoded once per object instead of once per sample, which
takes a tenth of the library's time. A test compares both.
"""

import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeAlias

from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST as OPEN_METRICS_TYPE
from prometheus_client.openmetrics.exposition import generate_latest as generate_open_metrics

from gateway.management.metrics.family import Family

#: Content type of the text format, which every scraper accepts.
TEXT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

Lines: TypeAlias = Iterable[tuple[str, float] | None]
"""The labels of each sample as text, and its value; ``None`` at points where the reactor may run other work."""

#: The end of a scrape in the format OpenMetrics.
_END: Final = b"# EOF\n"

#: Samples encoded between two steps.
_STEP: Final = 64

#: Level of compression: the fastest; a step of 64 KB takes a millisecond.
_LEVEL: Final = 1


class Exposition:
    """Encodes one scrape in the text format, or in OpenMetrics if the scraper asks for it."""

    def __init__(self, accept: str) -> None:
        self._is_open = "application/openmetrics-text" in accept

    @property
    def content_type(self) -> str:
        """The content type of the scrape."""
        return OPEN_METRICS_TYPE if self._is_open else TEXT_TYPE

    @property
    def end(self) -> bytes:
        """The bytes that end the scrape."""
        return _END if self._is_open else b""

    def encoded(self, metric: Metric) -> bytes:
        """Encode a metric with its samples, by the client library."""
        registry = _One(metric)
        if self._is_open:
            encoded: bytes = generate_open_metrics(registry)  # type: ignore[no-untyped-call]
            return encoded.removesuffix(_END)
        return generate_latest(registry)

    def lines(self, family: Family, lines: Lines) -> Iterator[bytes]:
        """Encode a family with very many samples; an empty piece ends a step."""
        name = family.name
        pieces = [self.encoded(family.empty()).decode()]
        for line in lines:
            if line is not None:
                pieces.append(f"{name}{line[0]} {_number(line[1])}\n")
            if line is None or len(pieces) >= _STEP:
                yield "".join(pieces).encode()
                pieces = []
        yield "".join(pieces).encode()


def label_text(labels: Mapping[str, str]) -> str:
    """Encode labels, in the client library's order."""
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in sorted(labels.items())) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def _number(value: float) -> str:
    return repr(float(value))


def compressed(pieces: Iterable[bytes | None]) -> Iterator[bytes]:
    """Compress pieces with gzip, step by step."""
    compressor = zlib.compressobj(_LEVEL, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    for piece in pieces:
        yield compressor.compress(piece) if piece else b""
    yield compressor.flush()


class _One(CollectorRegistry):
    """A registry of one metric, for the library's encoders."""

    def __init__(self, metric: Metric) -> None:
        super().__init__(auto_describe=False)
        self._metric = metric

    def collect(self) -> Iterable[Metric]:
        """Return the metric."""
        return [self._metric]
