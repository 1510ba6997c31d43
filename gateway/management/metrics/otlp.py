"""Metrics for a collector of OpenTelemetry: the samples of the node as data of the official SDK, in batches.

Needs the libraries of the extra ``opentelemetry``.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias, TypeVar

from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from prometheus_client import Metric as Family
from prometheus_client.samples import Sample

#: Data points of one request: the exporter encodes a request in one piece.
LARGEST_BATCH: Final = 1000

#: Samples that are converted between two steps.
_STEP: Final = 100

_CUMULATIVE: Final = AggregationTemporality.CUMULATIVE

Labels: TypeAlias = tuple[tuple[str, str], ...]

T = TypeVar("T")


class OtlpPusher:
    """Sends all metrics at each call: gauges, cumulative sums for counters, histograms with their buckets.

    ``collect`` returns the metrics of the node, ``export`` sends batches and never waits. While ``is_busy``, nothing is
    collected: as sums are cumulative, the next batches make up for it. ``now_ns`` is the time since 1970.
    """

    def __init__(
        self,
        collect: Callable[[], Iterable[Family | None]],
        export: Callable[[Sequence[MetricsData]], None],
        is_busy: Callable[[], bool],
        resource: Mapping[str, str],
        now_ns: Callable[[], int],
    ) -> None:
        self._collect = collect
        self._export = export
        self._is_busy = is_busy
        self._resource = Resource.create(dict(resource))
        self._now_ns = now_ns
        self._started_ns = now_ns()

    def pushing(self) -> Iterator[None]:
        """Return the steps of one send."""
        if self._is_busy():
            return
        batches: list[MetricsData] = []
        metrics: list[Metric] = []
        size = 0
        for family in self._collect():
            for metric in () if family is None else _metrics(family, self._started_ns, self._now_ns()):
                metrics.append(metric)
                size += len(metric.data.data_points)
                if size >= LARGEST_BATCH:
                    batches.append(self._batch(metrics))
                    metrics, size = [], 0
                yield
            yield
        batches.append(self._batch(metrics))
        self._export(batches)

    def _batch(self, metrics: Sequence[Metric]) -> MetricsData:
        scope = ScopeMetrics(InstrumentationScope("gateway"), metrics, "")
        return MetricsData([ResourceMetrics(self._resource, [scope], "")])


def _metrics(family: Family, started_ns: int, now_ns: int) -> Iterator[Metric]:
    """Yield the metrics of a family, each with some of its samples."""
    if family.type == "histogram":
        for distributions in _parts(_distributions(family, started_ns, now_ns)):
            yield Metric(family.name, family.documentation, "", Histogram(distributions, _CUMULATIVE))
        return
    is_sum = family.type in ("counter", "summary")
    for name, samples in _by_name(family.samples).items():
        for part in _parts(samples):
            points = [NumberDataPoint(sample.labels, started_ns, now_ns, float(sample.value)) for sample in part]
            data = Sum(points, _CUMULATIVE, is_monotonic=True) if is_sum else Gauge(points)
            yield Metric(name, family.documentation, "", data)


def _by_name(samples: Iterable[Sample]) -> dict[str, list[Sample]]:
    """Return samples by their names: a summary has two."""
    found: dict[str, list[Sample]] = {}
    for sample in samples:
        found.setdefault(sample.name, []).append(sample)
    return found


def _distributions(family: Family, started_ns: int, now_ns: int) -> list[HistogramDataPoint]:
    """Return the data points of a histogram; those of OpenTelemetry count each bucket on its own."""
    buckets: dict[Labels, list[tuple[float, float]]] = {}
    sums: dict[Labels, float] = {}
    for sample in family.samples:
        labels = {name: value for name, value in sample.labels.items() if name != "le"}
        key = tuple(sorted(labels.items()))
        if sample.name.endswith("_bucket"):
            buckets.setdefault(key, []).append((float(sample.labels["le"]), sample.value))
        elif sample.name.endswith("_sum"):
            sums[key] = sample.value
    return [_distribution(key, reached, sums.get(key, 0.0), started_ns, now_ns) for key, reached in buckets.items()]


def _distribution(
    labels: Labels, reached: Sequence[tuple[float, float]], total: float, started_ns: int, now_ns: int
) -> HistogramDataPoint:
    """Return one data point; ``reached`` has the bounds of the buckets, and the counts up to each."""
    counts = [int(count) for _, count in reached]
    return HistogramDataPoint(
        attributes=dict(labels),
        start_time_unix_nano=started_ns,
        time_unix_nano=now_ns,
        count=counts[-1],
        sum=total,
        bucket_counts=[count - before for count, before in zip(counts, [0, *counts], strict=False)],
        explicit_bounds=[bound for bound, _ in reached[:-1]],
        min=None,  # type: ignore[arg-type]  # not known; the encoder leaves both out
        max=None,  # type: ignore[arg-type]
    )


def _parts(points: Sequence[T]) -> Iterator[Sequence[T]]:
    for start in range(0, len(points), _STEP):
        yield points[start : start + _STEP]
