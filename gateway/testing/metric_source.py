"""The contract of ``gateway.api.MetricSource`` as a check for any source of metrics."""

from collections.abc import Callable, Sequence
from typing import Final

from gateway.kernel.plugin_times import CALL_LIMIT_S
from gateway.kernel.vhosts.metric_source import MOST_METRICS, MetricSource, PluginMetric, problem_of_metric
from gateway.testing.call_timer import CallTimer, is_slower

#: Calls between which the counters are compared.
_CALLS: Final = 3


def check_metric_source(source: MetricSource, use: Callable[[], None] = lambda: None) -> None:
    """Check the metrics of a source, before and after ``use`` makes the plugin count something.

    :raises AssertionError: with a sentence that names the broken promise.
    """
    before = _counters(_metrics_of(source))
    for _ in range(_CALLS):
        use()
        counters = _counters(_metrics_of(source))
        for key, value in before.items():
            if counters.get(key, value) < value:
                raise AssertionError(f"The counter {key[0]} fell from {value:g} to {counters[key]:g}.")
        before = counters


def _metrics_of(source: MetricSource) -> Sequence[PluginMetric]:
    timer = CallTimer()
    try:
        found = tuple(source.metrics())
    except Exception as error:  # foreign code: any exception is a finding
        raise AssertionError(f"metrics() raised {error!r}.") from error
    seconds = timer.seconds
    if is_slower(lambda: tuple(source.metrics()), seconds, CALL_LIMIT_S):
        raise AssertionError(f"metrics() took {seconds * 1e3:.0f} ms; the limit is {CALL_LIMIT_S * 1e3:.0f} ms.")
    if len(found) > MOST_METRICS:
        raise AssertionError(f"metrics() returned {len(found)} metrics; the limit is {MOST_METRICS}.")
    names: set[str] = set()
    for metric in found:
        if (problem := problem_of_metric(metric)) is not None:
            raise AssertionError(f"metrics() returned a wrong metric: {problem}.")
        if metric.name in names:
            raise AssertionError(f"metrics() returned {metric.name!r} twice.")
        names.add(metric.name)
    return found


def _counters(metrics: Sequence[PluginMetric]) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (metric.name, tuple(sorted(labels.items()))): value
        for metric in metrics
        if metric.kind == "counter"
        for labels, value in metric.samples
    }
