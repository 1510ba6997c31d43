"""The scrapes: what each path of the listener answers, as pieces that are generated while they are sent."""

from collections.abc import Callable, Collection, Generator, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from prometheus_client import Metric

from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.management.metrics import (
    broker_metrics,
    cluster_metrics,
    exporter,
    node_metrics,
    plugin_metrics,
    sum_metrics,
    traffic_metrics,
)
from gateway.management.metrics.cluster_objects import CLUSTER_GROUPS
from gateway.management.metrics.exposition import Exposition
from gateway.management.metrics.family import Family, Reading, read_all
from gateway.management.metrics.node_metrics import Churn
from gateway.management.metrics.objects import GROUPS, ObjectGroup
from gateway.management.metrics.sources import MetricSources
from gateway.management.metrics.totals import Totals, adding_up

Pieces: TypeAlias = Iterator[bytes]
"""The bytes of a scrape; an empty piece only ends a step."""

Collected: TypeAlias = Generator[Metric | None, None, None]
"""The metrics of a node; ``None`` at points where the reactor may run other work."""

#: The prefix of the metrics of single objects, and of those that a query selects.
PREFIX: Final = "rabbitmq_"
DETAILED_PREFIX: Final = "rabbitmq_detailed_"


def node_scrape(sources: MetricSources) -> Collected:
    """Collect the metrics of the node, without single queues, channels and connections."""
    totals = yield from adding_up(sources.api.broker)
    yield from node_metrics.identity(sources.api, "aggregated")
    yield from _node_metrics(sources, totals)
    yield from sum_metrics.sums(sources.api, totals)
    yield from broker_metrics.messages(sources, totals)
    yield from _own_metrics(sources)


def per_object_scrape(sources: MetricSources, exposition: Exposition) -> Pieces:
    """Return the metrics of the node, and those of each queue, exchange, channel and connection instead of sums."""
    yield from _encoded(exposition, _per_object_node(sources))
    vhosts = list(sources.api.broker.vhost_by_name.values())
    for group in GROUPS:
        if group.name != "queue_consumer_count":  # part of ``queue_metrics``
            yield from group.pieces(exposition, sources.api, vhosts, PREFIX)


def detailed_scrape(
    sources: MetricSources, exposition: Exposition, families: Collection[str], vhosts: Collection[VirtualHost]
) -> Pieces:
    """Return the requested groups of metrics, those of queues and exchanges in these virtual hosts only."""
    yield from _encoded(exposition, node_metrics.identity(sources.api, "detailed"))
    if not NODE_GROUPS.keys().isdisjoint(families):
        yield from _encoded(exposition, _node_groups(sources, families))
    for group in _selected(families):
        yield from group.pieces(exposition, sources.api, vhosts, DETAILED_PREFIX)
    for group in CLUSTER_GROUPS:
        if group.name in families:
            yield from group.pieces(exposition, sources.api, vhosts, PREFIX)


def exporter_scrape(sources: MetricSources, exposition: Exposition) -> Pieces:
    """Return the metrics under the names of rabbitmq_exporter."""
    yield from _encoded(exposition, _exporter_overview(sources))
    vhosts = list(sources.api.broker.vhost_by_name.values())
    for group in exporter.GROUPS:
        yield from group.pieces(exposition, sources.api, vhosts, "rabbitmq_")


def encoded_scrape(exposition: Exposition, collected: Collected) -> Pieces:
    """Encode collected metrics."""
    yield from _encoded(exposition, collected)


def _encoded(exposition: Exposition, collected: Iterable[Metric | None]) -> Pieces:
    for metric in collected:
        yield b"" if metric is None else exposition.encoded(metric)


def _node_metrics(sources: MetricSources, totals: Totals) -> Collected:
    context = sources.api
    yield from node_metrics.resources(context)
    yield from node_metrics.churn(context, totals)
    yield from node_metrics.logins(context)
    yield from node_metrics.alarms(context)
    yield from traffic_metrics.publishes(context.broker)
    yield from traffic_metrics.deliveries(context.broker)
    yield from traffic_metrics.clients(totals)
    yield from traffic_metrics.dead_letters(context.broker, totals)


def _own_metrics(sources: MetricSources) -> Collected:
    yield from plugin_metrics.collected(sources.api.broker.plugins_in_use)  # their faults are counted below
    yield from broker_metrics.process(sources)
    yield from broker_metrics.store(sources)
    yield from broker_metrics.logins(sources)
    yield from broker_metrics.plugins(sources)
    yield from broker_metrics.bridges(sources)
    yield from broker_metrics.traces(sources)
    yield from broker_metrics.sessions(sources)
    yield from broker_metrics.archives(sources)
    yield from broker_metrics.pipeline(sources)
    yield from cluster_metrics.cluster(sources.api.cluster())


def _per_object_node(sources: MetricSources) -> Collected:
    totals = yield from adding_up(sources.api.broker)
    yield from node_metrics.identity(sources.api, "per-object")
    yield from _node_metrics(sources, totals)
    yield from broker_metrics.messages(sources, totals)
    yield from _own_metrics(sources)


def _exporter_overview(sources: MetricSources) -> Collected:
    totals = yield from adding_up(sources.api.broker)
    yield from exporter.overview(sources.api, totals)


# -- Groups of RabbitMQ's query that concern the node -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """A group of metrics of the node."""

    families: tuple[Family, ...]
    collect: Callable[[MetricSources, Totals], Iterable[Metric]]


def _families(readings: Iterable[Reading[Churn]] | Iterable[Reading[node_metrics.NodeReadings]]) -> tuple[Family, ...]:
    return tuple(reading.family for reading in readings)


NODE_GROUPS: Final = {
    "connection_churn_metrics": NodeGroup(
        _families(node_metrics.CHURN),
        lambda sources, totals: read_all(node_metrics.CHURN, Churn(sources.api, totals)),
    ),
    "node_coarse_metrics": NodeGroup(
        _families(node_metrics.COARSE),
        lambda sources, totals: read_all(node_metrics.COARSE, node_metrics.node_readings(sources.api)),
    ),
    "node_metrics": NodeGroup(
        _families(node_metrics.LIMITS),
        lambda sources, totals: read_all(node_metrics.LIMITS, node_metrics.node_readings(sources.api)),
    ),
    "node_persister_metrics": NodeGroup(
        _families(node_metrics.PERSISTER),
        lambda sources, totals: read_all(node_metrics.PERSISTER, node_metrics.node_readings(sources.api)),
    ),
    "auth_attempt_metrics": NodeGroup(
        node_metrics.LOGINS, lambda sources, totals: list(node_metrics.logins(sources.api))
    ),
    "auth_attempt_detailed_metrics": NodeGroup(
        node_metrics.LOGINS_BY_PROTOCOL, lambda sources, totals: list(node_metrics.logins_by_protocol(sources.api))
    ),
}

#: Groups that RabbitMQ has and that are empty here: there are no Erlang processes, no Raft logs and no other nodes.
_EMPTY: Final = frozenset(
    {
        *("ra_metrics", "channel_process_metrics", "node_node_metrics", "channel_queue_exchange_metrics"),
        "stream_consumer_metrics",
    }
)

#: All groups that a query may select.
DETAILED_GROUPS: Final = frozenset({*NODE_GROUPS, *(group.name for group in (*GROUPS, *CLUSTER_GROUPS)), *_EMPTY})


def _node_groups(sources: MetricSources, families: Collection[str]) -> Collected:
    totals = Totals()
    for name, group in NODE_GROUPS.items():
        if name in families:
            for metric in group.collect(sources, totals):
                yield _renamed(metric)


def _renamed(metric: Metric) -> Metric:
    """Return a metric of the node under the name that a query shows."""
    name = DETAILED_PREFIX + metric.name.removeprefix(PREFIX)
    renamed = Metric(name, metric.documentation, metric.type)
    for sample in metric.samples:
        renamed.add_sample(DETAILED_PREFIX + sample.name.removeprefix(PREFIX), sample.labels, sample.value)
    return renamed


def _selected(families: Collection[str]) -> list[ObjectGroup]:
    """Return the groups of objects; one that is part of another requested one is left out."""
    return [
        group
        for group in GROUPS
        if group.name in families and not (group.name == "queue_consumer_count" and "queue_metrics" in families)
    ]
