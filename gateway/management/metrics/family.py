"""A metric's description: its name, kind, meaning and labels; and the readings that become its samples."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, TypeAlias, TypeVar

from prometheus_client import Metric
from prometheus_client.utils import floatToGoString

T = TypeVar("T")

Kind: TypeAlias = Literal["counter", "gauge", "histogram", "summary"]

Labelled: TypeAlias = tuple[Sequence[str], float]
"""The values of the labels, and the value of the sample."""


@dataclass(frozen=True, slots=True)
class Family:
    """A metric. ``name`` is that of its samples, so that of a counter ends with ``_total``."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()

    def metric(self, rows: Iterable[Labelled]) -> Metric:
        """Return the metric with a sample for each row."""
        metric = self.empty()
        for values, value in rows:
            metric.add_sample(self.name, dict(zip(self.labels, values, strict=True)), value)
        return metric

    def single(self, value: float) -> Metric:
        """Return the metric with one sample without labels."""
        return self.metric([((), value)])

    def empty(self) -> Metric:
        """Return the metric without samples; the client library names a counter without ``_total``."""
        name = self.name.removesuffix("_total") if self.kind == "counter" else self.name
        return Metric(name, self.help, self.kind)

    def renamed(self, name: str) -> "Family":
        """Return the family under another name."""
        return Family(name, self.kind, self.help, self.labels)


def counter(name: str, help: str, *labels: str) -> Family:
    """Return the family of a number that only grows."""
    return Family(name, "counter", help, labels)


def gauge(name: str, help: str, *labels: str) -> Family:
    """Return the family of a number that rises and falls."""
    return Family(name, "gauge", help, labels)


def histogram(name: str, help: str, *labels: str) -> Family:
    """Return the family of a distribution."""
    return Family(name, "histogram", help, labels)


@dataclass(frozen=True)
class Reading(Generic[T]):
    """A family, and how its value is read from an object. Without slots, with which ``Reading[T](...)`` fails."""

    family: Family
    read: Callable[[T], float]


def read_all(readings: Iterable[Reading[T]], source: T) -> Iterable[Metric]:
    """Return the metrics of readings without labels."""
    return [reading.family.single(reading.read(source)) for reading in readings]


def add_buckets(
    metric: Metric, family: Family, values: Sequence[str], bounds: Sequence[float], counts: Sequence[int], total: float
) -> None:
    """Add a distribution: ``counts`` has the number in each class, one more than ``bounds``; ``total`` is their sum."""
    labels, reached = dict(zip(family.labels, values, strict=True)), 0
    for bound, count in zip((*map(floatToGoString, bounds), "+Inf"), counts, strict=True):
        reached += count
        metric.add_sample(f"{family.name}_bucket", {**labels, "le": bound}, reached)
    metric.add_sample(f"{family.name}_count", labels, reached)
    metric.add_sample(f"{family.name}_sum", labels, total)
