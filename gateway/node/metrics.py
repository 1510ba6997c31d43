"""The metrics of a node: their sources, the listeners that Prometheus scrapes, and the servers they are sent to."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Final

from twisted.internet.protocol import DatagramProtocol

from gateway.config import Settings
from gateway.management.context import ApiContext
from gateway.management.http.site import site_of
from gateway.management.metrics.paths import metric_paths
from gateway.management.metrics.scrapes import node_scrape
from gateway.management.metrics.sources import MetricSources, PluginTime
from gateway.management.metrics.statsd import StatsdPusher
from gateway.management.web.factory import HttpFactory
from gateway.net.listeners import Listeners
from gateway.net.turn_watch import TurnWatch
from gateway.node.clockwork import Clockwork
from gateway.node.live_plugins import LivePlugins
from gateway.node.otlp import start_otlp
from gateway.node.plugin_faults import PluginFaults
from gateway.node.store import StoreFiles

PROMETHEUS_TLS: Final = "prometheus_tls"

#: The listeners: the tables of their settings, and whether they use TLS.
_LISTENERS = {"prometheus": False, PROMETHEUS_TLS: True}


def metric_sources(
    context: ApiContext, turns: TurnWatch, store_files: StoreFiles, live: LivePlugins, faults: PluginFaults
) -> MetricSources:
    """Return the parts of a node that its metrics are read from."""
    return MetricSources(
        context,
        turns,
        commits=lambda: None if store_files.store is None else store_files.store.commit_times,
        plugin_times=lambda: list(_plugin_times(live)),
        plugin_faults=lambda: faults.count,
        staged_bytes=lambda: context.pipeline.staging.size,
    )


def bind_metrics(settings: Settings, listeners: Listeners) -> None:
    """Bind the ports of the listeners that are not off. :raises ConfigurationError: if one cannot be bound."""
    for name in _LISTENERS:
        if (port := getattr(settings, name).port) is not None:
            listeners.bind(name, port, settings.prometheus.bind)


def serve_metrics(listeners: Listeners, factory: Callable[[], Any], tls: Callable[[], Any]) -> None:
    """Serve scrapers at the bound ports by a factory of connections."""
    for name, is_tls in _LISTENERS.items():
        if name in listeners.addresses:
            listeners.serve(name, factory(), tls() if is_tls else None)


def start_pushes(settings: Settings, sources: MetricSources, reactor: Any, clockwork: Clockwork) -> None:
    """Send the metrics to the servers that the settings name, from now on."""
    _start_statsd(settings, sources, reactor, clockwork)
    start_otlp(settings.otlp, sources, clockwork)


def _start_statsd(settings: Settings, sources: MetricSources, reactor: Any, clockwork: Clockwork) -> None:
    rules = settings.statsd
    if not rules.host:
        return
    port = reactor.listenUDP(0, DatagramProtocol(), "::" if ":" in rules.host else "0.0.0.0")

    def send(packet: bytes) -> None:
        with suppress(OSError):  # no server listens, or the network is down: the next send may succeed
            port.write(packet, (rules.host, rules.port))

    pusher = StatsdPusher(lambda: node_scrape(sources), send)
    clockwork.start_sliced(rules.interval_s, pusher.pushing)


def metrics_factory(settings: Settings, sources: MetricSources) -> HttpFactory:
    """Return the factory of the listeners."""
    rules = settings.prometheus
    paths = metric_paths(sources, requires_login=rules.authentication, per_object=rules.per_object)
    return site_of(sources.api, paths)


def _plugin_times(live: LivePlugins) -> Iterator[PluginTime]:
    """Yield the times of the components of plugins that were called."""
    in_use = live.broker.plugins_in_use
    for vhost in live.broker.vhost_by_name.values():
        enabled = live.enabled(vhost.name)
        for part, method, time in live.times(vhost.name):
            plugin = in_use.plugin_of(vhost.name, part)
            if time.calls and plugin in enabled:
                version = enabled[plugin].number
                yield PluginTime(vhost.name, plugin, version, method, time.calls, time.total_s, time.longest_s)
