"""The metrics of plugins in a scrape: those of all virtual hosts together, as ``gateway_plugin_PLUGIN_NAME``."""

import re
from collections.abc import Generator
from typing import Final

from prometheus_client import Metric

from gateway.kernel.broker.plugins_in_use import PluginsInUse
from gateway.kernel.vhosts.metric_source import PluginMetric

PREFIX: Final = "gateway_plugin_"

#: Names of the gateway's own metrics that begin with the prefix.
_TAKEN: Final = re.compile(r"(seconds|longest_call_seconds|faults)(_total)?")


def collected(in_use: PluginsInUse) -> Generator[Metric | None, None, None]:
    """Call the metric sources of all virtual hosts, one in each step; then yield their metrics."""
    metrics: dict[str, Metric] = {}
    owners: dict[str, str] = {}
    for vhost, source, found in in_use.metrics.read():
        plugin = in_use.plugin_of(vhost, source)
        for each in found:
            if (problem := _add(metrics, owners, vhost, plugin, each)) is not None:
                in_use.metrics.refuse(vhost, source, problem)
        yield None
    yield from metrics.values()


def exported_name(plugin: str, name: str) -> str:
    """Return the exported name of a metric of a plugin."""
    return f"{PREFIX}{re.sub(r'[^a-z0-9_]', '_', plugin.lower())}_{name}"


def _add(
    metrics: dict[str, Metric], owners: dict[str, str], vhost: str, plugin: str, found: PluginMetric
) -> str | None:
    """Add the samples of a metric in one virtual host; return why that is impossible, or ``None``."""
    name = exported_name(plugin, found.name)
    if _TAKEN.fullmatch(name.removeprefix(PREFIX)):
        return f"metric {found.name!r} would be exported as {name!r}, which is a metric of the gateway"
    if (owner := owners.setdefault(name, plugin)) != plugin:
        return f"metric {found.name!r} would be exported as {name!r}, as one of the plugin {owner!r} is"
    metric = metrics.get(name)
    if metric is None:
        metric = metrics[name] = Metric(name.removesuffix("_total"), found.help or found.name, found.kind)
    elif metric.type != found.kind:
        return f"metric {found.name!r} is a {found.kind} here and a {metric.type} in another virtual host"
    for labels, value in found.samples:
        metric.add_sample(name, {**labels, "vhost": vhost}, value)
    return None
