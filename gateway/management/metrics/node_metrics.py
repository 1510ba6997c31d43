"""RabbitMQ's metrics of the node: its identity, resources, alarms, churn and logins."""

import resource
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from typing import Final

from prometheus_client import Metric

from gateway.kernel.alarms import Resource
from gateway.management.context import ApiContext
from gateway.management.metrics.family import Family, Reading, counter, gauge, read_all
from gateway.management.metrics.totals import Totals
from gateway.management.statistics.subjects import NODE
from gateway.management.views.nodes import ERLANG_VERSION, uptime_ms
from gateway.version import RABBITMQ_VERSION, VERSION

IDENTITY: Final = gauge(
    "rabbitmq_identity_info",
    "The node and its cluster; always 1",
    *("rabbitmq_node", "rabbitmq_cluster", "rabbitmq_cluster_permanent_id", "rabbitmq_endpoint"),
)
BUILD: Final = gauge(
    "rabbitmq_build_info",
    "The versions of the broker, and of RabbitMQ that it is compatible with; always 1",
    *("rabbitmq_version", "erlang_version", "prometheus_client_version", "prometheus_plugin_version"),
    *("product_name", "product_version"),
)
ALARMS: Final = (
    gauge("rabbitmq_alarms_memory_used_watermark", "1 while the memory alarm is raised"),
    gauge("rabbitmq_alarms_free_disk_space_watermark", "1 while the disk alarm is raised"),
    gauge("rabbitmq_alarms_file_descriptor_limit", "1 while file descriptors are used up; always 0 here"),
)
STORE_ALARM: Final = gauge("gateway_alarms_store", "1 while the store cannot write")
LOGINS: Final = (
    counter("rabbitmq_auth_attempts_total", "Login attempts"),
    counter("rabbitmq_auth_attempts_succeeded_total", "Successful logins"),
    counter("rabbitmq_auth_attempts_failed_total", "Failed logins"),
)
LOGINS_BY_PROTOCOL: Final = (
    counter("rabbitmq_auth_attempts_detailed_total", "Login attempts by protocol", "protocol"),
    counter("rabbitmq_auth_attempts_detailed_succeeded_total", "Successful logins by protocol", "protocol"),
    counter("rabbitmq_auth_attempts_detailed_failed_total", "Failed logins by protocol", "protocol"),
)


@dataclass(frozen=True, slots=True)
class NodeReadings:
    """The resources of the node at the last sample, which is at most five seconds old, and its limits."""

    used: Mapping[str, int]
    context: ApiContext

    def count(self, name: str) -> int:
        """Return one of the sampled figures; 0 before the first sample."""
        return self.used.get(name, 0)


#: Metrics by RabbitMQ's group.
COARSE: Final[tuple[Reading[NodeReadings], ...]] = (
    Reading(gauge("rabbitmq_process_open_fds", "Open file descriptors"), lambda node: node.count("fd_used")),
    Reading(gauge("rabbitmq_process_open_tcp_sockets", "Open sockets of clients"), lambda n: n.count("sockets_used")),
    Reading(
        gauge("rabbitmq_process_resident_memory_bytes", "Memory that counts for the memory alarm, in bytes"),
        lambda node: node.count("mem_used"),
    ),
    Reading(
        gauge("rabbitmq_disk_space_available_bytes", "Free disk space at the data directory, in bytes"),
        lambda node: node.count("disk_free"),
    ),
    Reading(gauge("rabbitmq_erlang_processes_used", "Threads of the process"), lambda node: node.count("proc_used")),
    Reading(
        counter("rabbitmq_erlang_gc_runs_total", "Collections of the garbage collector"), lambda n: n.count("gc_num")
    ),
    Reading(
        counter("rabbitmq_erlang_scheduler_context_switches_total", "Context switches of the process"),
        lambda node: node.count("context_switches"),
    ),
)
LIMITS: Final[tuple[Reading[NodeReadings], ...]] = (
    Reading(gauge("rabbitmq_process_max_fds", "Limit of open file descriptors"), lambda node: files_limit()),
    Reading(gauge("rabbitmq_process_max_tcp_sockets", "Limit of open sockets"), lambda node: files_limit()),
    Reading(
        gauge("rabbitmq_resident_memory_limit_bytes", "Memory use above which publishers are blocked, in bytes"),
        lambda node: node.context.memory_limit,
    ),
    Reading(
        gauge(
            "rabbitmq_disk_space_available_limit_bytes", "Free disk space below which publishers are blocked, in bytes"
        ),
        lambda node: node.context.disk_free_limit,
    ),
    Reading(gauge("rabbitmq_erlang_processes_limit", "As RabbitMQ shows it by default"), lambda node: 1048576),
    Reading(gauge("rabbitmq_erlang_scheduler_run_queue", "Always 0: there is no scheduler"), lambda node: 0),
    Reading(gauge("rabbitmq_erlang_net_ticktime_seconds", "As RabbitMQ shows it by default"), lambda node: 60),
    Reading(
        gauge("rabbitmq_erlang_uptime_seconds", "Time since the start of the node, in seconds"),
        lambda node: uptime_ms(node.context) / 1000,
    ),
)
PERSISTER: Final[tuple[Reading[NodeReadings], ...]] = (
    Reading(counter("rabbitmq_io_read_bytes_total", "Bytes read from disks"), lambda node: node.count("io_read_bytes")),
    Reading(
        counter("rabbitmq_io_write_bytes_total", "Bytes written to disks"), lambda node: node.count("io_write_bytes")
    ),
    Reading(
        counter("rabbitmq_msg_store_read_total", "Messages read from the store"),
        lambda node: node.count("msg_store_read_count"),
    ),
    Reading(
        counter("rabbitmq_msg_store_write_total", "Messages written to the store"),
        lambda node: node.count("msg_store_write_count"),
    ),
)


@dataclass(frozen=True, slots=True)
class Churn:
    """Numbers of connections, channels and queues that were opened, and those that are open now."""

    context: ApiContext
    totals: Totals

    @property
    def queues_created(self) -> int:
        """The number of queues created since the start."""
        return self.context.statistics.queues_created

    @property
    def queues_deleted(self) -> int:
        """The number of queues deleted since the start."""
        return self.context.statistics.queues_deleted


CHURN: Final[tuple[Reading[Churn], ...]] = (
    Reading(
        counter("rabbitmq_connections_opened_total", "Connections opened"),
        lambda churn: churn.context.broker.connections.opened,
    ),
    Reading(
        counter("rabbitmq_connections_closed_total", "Connections closed"),
        lambda churn: churn.context.broker.connections.opened - len(churn.context.broker.connections),
    ),
    Reading(
        counter("rabbitmq_channels_opened_total", "Channels opened"),
        lambda churn: churn.context.broker.connections.channels_opened,
    ),
    Reading(
        counter("rabbitmq_channels_closed_total", "Channels closed"),
        lambda churn: churn.context.broker.connections.channels_closed,
    ),
    Reading(counter("rabbitmq_queues_declared_total", "Queues declared"), lambda churn: churn.queues_created),
    Reading(counter("rabbitmq_queues_created_total", "Queues created"), lambda churn: churn.queues_created),
    Reading(counter("rabbitmq_queues_deleted_total", "Queues deleted"), lambda churn: churn.queues_deleted),
)
OPEN: Final[tuple[Reading[Churn], ...]] = (
    Reading(gauge("rabbitmq_connections", "Open connections"), lambda churn: len(churn.context.broker.connections)),
    Reading(gauge("rabbitmq_channels", "Open channels"), lambda churn: churn.totals.channels.channels),
    Reading(gauge("rabbitmq_consumers", "Consumers"), lambda churn: churn.totals.queues.consumers),
    Reading(gauge("rabbitmq_queues", "Queues"), lambda churn: churn.totals.queues.queues),
)

FAMILIES: Final[tuple[Family, ...]] = (
    IDENTITY,
    BUILD,
    *ALARMS,
    STORE_ALARM,
    *(reading.family for reading in (*COARSE, *LIMITS, *PERSISTER)),
    *(reading.family for reading in (*CHURN, *OPEN)),
    *LOGINS,
)


def identity(context: ApiContext, endpoint: str) -> Iterator[Metric]:
    """Yield who the node is; ``endpoint`` is the path of the scrape, by RabbitMQ's name."""
    node, cluster = context.broker.node, cluster_name(context)
    permanent_id = _parameter(context, "internal_cluster_id", "")
    yield IDENTITY.metric([((node, cluster, permanent_id, endpoint), 1)])
    client = prometheus_version()
    yield BUILD.metric([((RABBITMQ_VERSION, ERLANG_VERSION, client, VERSION, "gateway", VERSION), 1)])


def cluster_name(context: ApiContext) -> str:
    """Return the cluster name if one was set, else that of the settings, or of the node if it runs alone."""
    state = context.cluster()
    return _parameter(context, "cluster_name", context.broker.node if state is None else state.name)


def _parameter(context: ApiContext, name: str, default: str) -> str:
    """Return the value of a global parameter."""
    parameter = context.broker.parameters.get(("", "", name))
    return str(parameter.value) if parameter is not None else default


@cache
def prometheus_version() -> str:
    """Return the version of the client library."""
    return version("prometheus-client")


def alarms(context: ApiContext) -> Iterator[Metric]:
    """Yield the alarms."""
    standing = context.broker.alarms.standing
    memory, disk, files = ALARMS
    yield memory.single(Resource.MEMORY in standing)
    yield disk.single(Resource.DISK in standing)
    yield files.single(0)
    yield STORE_ALARM.single(Resource.STORE in standing)


def resources(context: ApiContext) -> Iterable[Metric]:
    """Return the resources of the node and their limits."""
    readings = node_readings(context)
    return [*read_all(COARSE, readings), *read_all(LIMITS, readings), *read_all(PERSISTER, readings)]


def node_readings(context: ApiContext) -> NodeReadings:
    """Return the resources at the last sample."""
    return NodeReadings(context.statistics.sampled(NODE), context)


def churn(context: ApiContext, totals: Totals) -> Iterable[Metric]:
    """Return what was opened and closed, and what is open."""
    return [*read_all(CHURN, Churn(context, totals)), *read_all(OPEN, Churn(context, totals))]


def logins(context: ApiContext) -> Iterator[Metric]:
    """Yield the login attempts of all protocols."""
    counts = context.broker.connections.logins_by_protocol.values()
    succeeded, failed = sum(each.succeeded for each in counts), sum(each.failed for each in counts)
    for family, count in zip(LOGINS, (succeeded + failed, succeeded, failed), strict=True):
        yield family.single(count)


def logins_by_protocol(context: ApiContext) -> Iterator[Metric]:
    """Yield the login attempts by protocol."""
    counts = dict(context.broker.connections.logins_by_protocol)
    attempts, succeeded, failed = LOGINS_BY_PROTOCOL
    yield attempts.metric([((name,), each.succeeded + each.failed) for name, each in counts.items()])
    yield succeeded.metric([((name,), each.succeeded) for name, each in counts.items()])
    yield failed.metric([((name,), each.failed) for name, each in counts.items()])


def files_limit() -> int:
    """Return the limit of open files."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
