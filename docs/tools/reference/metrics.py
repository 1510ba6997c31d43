"""The list of all metrics as a page of the documentation, which ``make docs`` writes."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from docs.tools.reference.table import NOTE, code, table
from gateway.management.metrics import (
    broker_metrics,
    cluster_metrics,
    exporter,
    node_metrics,
    sum_metrics,
    traffic_metrics,
)
from gateway.management.metrics.cluster_objects import CLUSTER_GROUPS
from gateway.management.metrics.family import Family
from gateway.management.metrics.objects import GROUPS
from gateway.management.metrics.scrapes import NODE_GROUPS

PAGE: Final = Path("docs/metrics.md")

_HEAD: Final = f"""\
# Metrics

Every metric of the gateway. [monitoring.md](monitoring.md) explains the paths, the settings and how to use them.
{NOTE}
"""


def page() -> str:
    """Return the page."""
    return "\n".join(_lines()) + "\n"


def node_families() -> tuple[Family, ...]:
    """Return the metrics of ``/metrics``."""
    modules = (node_metrics, traffic_metrics, sum_metrics, broker_metrics, cluster_metrics)
    return tuple(family for module in modules for family in module.FAMILIES)


def _lines() -> Iterator[str]:
    yield _HEAD
    yield "## `/metrics`\n"
    yield "The node: its resources, its messages, and the sums of its queues, channels and connections.\n"
    yield from _table(node_families())
    yield "\n## `/metrics/per-object`\n"
    yield "Instead of sums: each queue, exchange, channel and connection. `/metrics/detailed?family=NAME` has one"
    yield "or several of the families alone, with the prefix `rabbitmq_detailed_` for `rabbitmq_`."
    for group in (*GROUPS, *CLUSTER_GROUPS):
        yield f"\n### Family `{group.name}`\n"
        yield from _table(reading.family for reading in group.readings)
    yield "\n## Other families of `/metrics/detailed`\n"
    rows = (
        (code(name), ", ".join(code(each.name.removeprefix("rabbitmq_")) for each in group.families))
        for name, group in NODE_GROUPS.items()
    )
    yield from table(("Family", "Metrics, after `rabbitmq_detailed_`"), rows)
    yield "\n## `/metrics/exporter`\n"
    yield "The names of the program rabbitmq_exporter (kbudde), which reads RabbitMQ's HTTP API.\n"
    yield from _table(exporter.FAMILIES)


def _table(families: Iterable[Family]) -> Iterator[str]:
    rows = ((code(each.name), each.kind, ", ".join(map(code, each.labels)), each.help) for each in families)
    yield from table(("Metric", "Kind", "Labels", "Meaning"), rows)
