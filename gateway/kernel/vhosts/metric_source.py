"""Metrics of plugins: counts and gauges that a plugin keeps itself, read for each scrape.

The numbers of metrics, samples and labels are bounded: a monitoring system stores each combination of labels for long.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Final, Literal, Protocol, TypeAlias, get_args

from gateway.kernel.budget import SLOW_S
from gateway.kernel.faults import BadAnswer, Faults, shown
from gateway.kernel.plugin_times import CallTime, PartTimes
from gateway.kernel.slow_calls import SlowCalls

#: The most metrics of one source, the most samples of one metric, and the most labels of one sample.
MOST_METRICS: Final = 100
MOST_SAMPLES: Final = 1000
MOST_LABELS: Final = 8

#: The longest name of a metric or label, the longest value of a label, and the longest help, in characters.
LONGEST_NAME: Final = 100
LONGEST_VALUE: Final = 256
LONGEST_HELP: Final = 500

#: The kind of the faults of metric sources.
FAULT: Final = "plugin metrics"

MetricKind: TypeAlias = Literal["counter", "gauge"]

MetricSample: TypeAlias = tuple[Mapping[str, str], float]
"""The labels of a sample, and its value."""

_NAME: Final = re.compile(r"[a-z][a-z0-9_]*")
_RESERVED: Final = frozenset({"vhost", "le", "quantile", "instance", "job"})


@dataclass(frozen=True, slots=True)
class PluginMetric:
    """A metric of a plugin: ``orders_total`` of the plugin ``shop`` becomes ``gateway_plugin_shop_orders_total``.

    The name of a counter ends with ``_total``. All samples have the same labels; the label ``vhost`` is added.
    """

    name: str
    kind: MetricKind
    help: str
    samples: Sequence[MetricSample]


class MetricSource(Protocol):
    """Supplies the metrics of a plugin in one virtual host."""

    def metrics(self) -> Sequence[PluginMetric]:
        """Return the metrics as they are now; called for each scrape, every few seconds. Must not wait.

        An exception, or a metric that breaks the rules, is a fault of the plugin: the scrape goes on without it.
        """
        ...


def problem_of_metric(metric: object) -> str | None:
    """Return the fault in a metric of a plugin, or ``None``."""
    if not isinstance(metric, PluginMetric):
        return f"{shown(metric)} is not a PluginMetric"
    if (problem := _problem_of_name(metric.name, "the name")) is not None:
        return problem
    if metric.kind not in get_args(MetricKind):
        return f"the kind of metric {metric.name!r} must be counter or gauge, not {shown(metric.kind)}"
    if (metric.kind == "counter") != metric.name.endswith("_total"):
        return f"the name of a counter, and of no other metric, ends with '_total': {metric.name!r}"
    if not isinstance(metric.help, str) or len(metric.help) > LONGEST_HELP:
        return f"the help of metric {metric.name!r} must be text of up to {LONGEST_HELP} characters"
    return _problem_of_samples(metric)


def _problem_of_samples(metric: PluginMetric) -> str | None:
    if len(metric.samples) > MOST_SAMPLES:
        return f"metric {metric.name!r} has {len(metric.samples)} samples; the limit is {MOST_SAMPLES}"
    seen: set[tuple[tuple[str, str], ...]] = set()
    names: set[str] | None = None
    for labels, value in metric.samples:
        if (problem := _problem_of_sample(labels, value)) is not None:
            return f"metric {metric.name!r}: {problem}"
        if names is not None and labels.keys() != names:
            return f"metric {metric.name!r}: all samples must have the same labels, not {sorted(labels)}"
        names = set(labels)
        if (key := tuple(sorted(labels.items()))) in seen:
            return f"metric {metric.name!r} has two samples with the labels {dict(labels)}"
        seen.add(key)
    return None


def _problem_of_sample(labels: object, value: object) -> str | None:
    if not isinstance(labels, Mapping) or len(labels) > MOST_LABELS:
        return f"the labels must be a mapping of up to {MOST_LABELS} names, not {shown(labels)}"
    for name, text in labels.items():
        if (problem := _problem_of_name(name, "a label")) is not None:
            return problem
        if name in _RESERVED:
            return f"the label {name!r} is reserved"
        if not isinstance(text, str) or len(text) > LONGEST_VALUE:
            return f"the value of label {name!r} must be text of up to {LONGEST_VALUE} characters, not {shown(text)}"
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        return f"the value must be a finite number, not {shown(value)}"
    return None


def _problem_of_name(name: object, what: str) -> str | None:
    if not isinstance(name, str) or len(name) > LONGEST_NAME or _NAME.fullmatch(name) is None:
        return f"{what} {shown(name)} must be of lower-case letters, digits and '_', up to {LONGEST_NAME} characters"
    return None


class PluginMetrics:
    """The metric sources of all virtual hosts of one node, and the times of their calls."""

    def __init__(self, faults: Faults, slow_calls: SlowCalls) -> None:
        self._faults = faults
        self._slow_calls = slow_calls
        self._monotonic_s = slow_calls.budget.monotonic_s
        self._sources_by_vhost: dict[str, tuple[MetricSource, ...]] = {}
        self._times_by_vhost: dict[str, PartTimes] = {}

    def use(self, vhost: str, sources: Sequence[MetricSource]) -> None:
        """Use these sources from now on, instead of earlier ones of the virtual host."""
        if sources:
            self._sources_by_vhost[vhost] = tuple(sources)
            self._times_by_vhost[vhost] = PartTimes(sources)
        else:
            self._sources_by_vhost.pop(vhost, None)
            self._times_by_vhost.pop(vhost, None)

    def times_in(self, vhost: str) -> Iterator[tuple[object, CallTime]]:
        """Return the sources of a virtual host with the times of their calls."""
        return iter(self._times_by_vhost.get(vhost, ()))

    def read(self) -> Iterator[tuple[str, MetricSource, Sequence[PluginMetric]]]:
        """Yield virtual host, source and valid metrics of each source, one call in each step."""
        for vhost, sources in tuple(self._sources_by_vhost.items()):
            for source in sources:
                if source in self._sources_by_vhost.get(vhost, ()):
                    yield vhost, source, self._read(vhost, source)

    def refuse(self, vhost: str, source: MetricSource, reason: str) -> None:
        """Count a metric that cannot be exported as a fault of its plugin."""
        self._faults.contain_in_part(FAULT, BadAnswer(reason), vhost, source, function=source.metrics)

    def _read(self, vhost: str, source: MetricSource) -> Sequence[PluginMetric]:
        """Call a source; leave out what breaks the rules."""
        starts_s = self._monotonic_s()
        found: Sequence[PluginMetric] = ()
        error: BaseException | None = None
        try:
            found = tuple(source.metrics())
        except BaseException as raised:  # plugin code: the scrape goes on without its metrics
            error = raised
        seconds = self._monotonic_s() - starts_s
        if error is not None:  # event listeners may take long with the report, which is not the time of the source
            self._faults.contain_in_part(FAULT, error, vhost, source, function=source.metrics)
            error = None  # its traceback refers to this frame: the cycle would stay in memory
        self._times_by_vhost[vhost].of(source).add(seconds)
        if seconds > SLOW_S:
            what = f"the metric source {type(source).__qualname__}"
            self._slow_calls.took(seconds, what, vhost, source, FAULT, source.metrics)
        return self._valid(vhost, source, found)

    def _valid(self, vhost: str, source: MetricSource, found: Sequence[PluginMetric]) -> Sequence[PluginMetric]:
        if len(found) > MOST_METRICS:
            self.refuse(vhost, source, f"metrics() returned {len(found)} metrics; the limit is {MOST_METRICS}")
        valid: dict[str, PluginMetric] = {}
        for metric in found[:MOST_METRICS]:
            problem = _checked(metric)
            if problem is None and metric.name in valid:
                problem = f"metric {metric.name!r} is returned twice"
            if problem is None:
                valid[metric.name] = metric
            else:
                self.refuse(vhost, source, f"metrics(): {problem}")
        return tuple(valid.values())


def _checked(metric: object) -> str | None:
    """Return the fault in a metric, also if reading an attribute of it fails."""
    try:
        return problem_of_metric(metric)
    except Exception as error:  # an object of a plugin in the place of a sequence or a mapping
        return f"{type(error).__name__} while its samples were read"
