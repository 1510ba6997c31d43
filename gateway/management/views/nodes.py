"""JSON views of the node, its resources and its listeners."""

import os
import resource
from typing import Final

from gateway.kernel.alarms import Resource
from gateway.kernel.features.interceptors import DEDUPLICATED, DELAYED
from gateway.management.context import ApiContext
from gateway.management.http.call import Call
from gateway.management.http.routes import Fields
from gateway.management.statistics.subjects import NODE as NODE_KEY
from gateway.management.statistics.usage import memory
from gateway.management.views.enabled_plugins import enabled_plugins
from gateway.management.views.listeners import api_views
from gateway.management.views.numbers import NODE, with_rates
from gateway.net.watermarks import memory_total
from gateway.version import VERSION

#: Shown by tools; this broker does not use Erlang.
ERLANG_VERSION: Final = "25.0"

#: RabbitMQ's categories of memory that are not measured.
_UNMEASURED: Final = (
    "connection_readers", "connection_writers", "connection_channels", "connection_other", "queue_procs",
    "queue_slave_procs", "quorum_queue_procs", "quorum_queue_dlx_procs", "stream_queue_procs",
    "stream_queue_replica_reader_procs", "stream_queue_coordinator_procs", "plugins", "metrics", "mgmt_db", "mnesia",
    "quorum_ets", "other_ets", "binary", "msg_index", "code", "atom", "other_system", "allocated_unused",
    "reserved_unallocated", "metadata_store", "metadata_store_ets",
)  # fmt: skip

_SPECIFIED: Final = ("direct", "fanout", "headers", "topic")

#: RabbitMQ's descriptions of exchange types, shown by tools.
DESCRIPTIONS: Final = {
    **{name: f"AMQP {name} exchange, as per the AMQP specification" for name in _SPECIFIED},
    "x-consistent-hash": "Consistent Hashing Exchange",
    "x-jms-topic": "JMS selector exchange",
    "x-local-random": "Picks one random local binding (queue) to route via (to).",
    "x-lvc": "Last-value cache exchange.",
    "x-modulus-hash": "Modulus Hashing Exchange",
    "x-random": "Randomly picks a binding (queue) to route via (to).",
    "x-recent-history": "Recent History Exchange.",
    "x-rtopic": "AMQP reverse topic exchange",
    DELAYED: "Delayed Message Exchange.",
    DEDUPLICATED: "Message Deduplication Exchange.",
}


def node_view(call: Call) -> Fields:
    """Return the view of the node, measured now."""
    context, trend, control = call.context, call.trend(NODE_KEY), call.context.control
    broker, counts = context.broker, context.statistics.node_counts()
    standing = broker.alarms.standing
    files_limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    doubt = None if call.cluster is None else call.cluster.doubt
    is_drained = call.cluster is not None and call.cluster.is_this_node_drained
    return with_rates(counts, counts, trend, NODE) | {
        "applications": [{"name": "gateway", "description": "gateway message broker", "version": VERSION}],
        "auth_mechanisms": [{"name": name, "description": "", "enabled": True} for name in ("PLAIN", "AMQPLAIN")],
        "cluster_links": [],
        "contained_faults": dict(broker.faults.count_by_kind),
        "being_drained": is_drained or (control is not None and control.maintenance()["is_under_maintenance"]),
        "config_files": list(control.config_files()) if control is not None else [],
        "contexts": api_views(context),
        "db_dir": str(context.data),
        "disk_free_alarm": Resource.DISK in standing,
        "disk_free_limit": context.disk_free_limit,
        "enabled_plugins": enabled_plugins(context),
        "exchange_types": exchange_types(context),
        "fd_total": files_limit,
        "log_files": list(control.log_files()) if control is not None else [],
        "mem_alarm": Resource.MEMORY in standing,
        "mem_calculation_strategy": "rss",
        "mem_limit": context.memory_limit,
        "mem_total": memory_total(),
        "name": broker.node,
        "net_ticktime": 60,
        "os_pid": str(os.getpid()),
        "partitions": [],
        "proc_total": 1048576,
        "processors": os.cpu_count() or 1,
        "rates_mode": "detailed",
        "run_queue": 0,
        "running": True,
        "sockets_total": files_limit,
        "turns": dict(context.turns()),
        "type": "disc",
        "uptime": uptime_ms(context),
        **context.collections(),
        **({} if doubt is None else {"doubt": doubt}),
    }


def memory_view() -> Fields:
    """Return the memory of the process; RabbitMQ's other categories are parts of ``other_proc`` here, and 0."""
    resident, own = memory("VmRSS"), memory("RssAnon")
    return {
        "memory": {
            **dict.fromkeys(_UNMEASURED, 0),
            "mapped_files": max(resident - own, 0),
            "other_proc": own,
            "strategy": "rss",
            "total": {"rss": resident, "allocated": own, "erlang": own},
        }
    }


def relative_memory_view() -> Fields:
    """Return the memory of the process in percent of the total."""
    fields = memory_view()["memory"]
    total = max(fields["total"]["rss"], 1)
    parts = (*_UNMEASURED, "mapped_files", "other_proc")
    return {"memory": {"total": 100} | {name: -(-100 * fields[name] // total) for name in parts}}


def exchange_types(context: ApiContext) -> list[Fields]:
    """Return the exchange types that can be declared in some virtual host, including those with interceptors."""
    supplied = {name for vhost in context.broker.vhost_by_name.values() for name in vhost.exchange_types}
    return [
        {"name": name, "description": DESCRIPTIONS.get(name, f"{name} exchange"), "enabled": True}
        for name in sorted({*supplied, DELAYED, DEDUPLICATED})
    ]


def uptime_ms(context: ApiContext) -> int:
    """Return the uptime of the node."""
    return max(context.broker.clock.wall_ms() - context.started_at_ms, 0)
