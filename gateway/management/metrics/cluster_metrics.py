"""The metrics of a cluster of several nodes, of which a node that runs alone has none."""

from collections.abc import Iterator
from typing import Final

from prometheus_client import Metric

from gateway.management.cluster_state import ClusterState
from gateway.management.metrics.family import Family, Reading, counter, gauge, read_all

_READINGS: Final[tuple[Reading[ClusterState], ...]] = (
    Reading(gauge("gateway_cluster_is_leader", "1 on the node that leads the cluster"), lambda state: state.leads),
    Reading(gauge("gateway_cluster_epoch", "Epoch of the cluster: it rises with each leader"), lambda s: s.epoch),
    Reading(
        gauge("gateway_cluster_engine_up", "1 while the engine of the cluster answers"),
        lambda state: state.engine_fault is None,
    ),
    Reading(
        gauge("gateway_cluster_lease_seconds", "Time after which this node stops leading unless it renews its lease"),
        lambda state: max(state.lease_s, 0.0),
    ),
    Reading(
        gauge("gateway_cluster_log_records", "Records of the log since its last checkpoint"), lambda s: s.log.records
    ),
    Reading(
        gauge("gateway_cluster_log_bytes", "Size of the log since its last checkpoint, in bytes"),
        lambda state: state.log.bytes,
    ),
    Reading(
        gauge("gateway_cluster_checkpoint_bytes", "Size of the last checkpoint of the log, in bytes"),
        lambda state: state.log.checkpoint_bytes,
    ),
    Reading(
        counter(
            "gateway_cluster_log_leader_moves_total",
            "How often this leader asked for another leader of the log, because all appends were slow",
        ),
        lambda state: state.log.leader_moves,
    ),
    Reading(
        gauge("gateway_cluster_rebuild_seconds", "Time in which this leader built its copy of the log when it began"),
        lambda state: state.rebuild.seconds,
    ),
    Reading(
        gauge("gateway_cluster_rebuild_records", "Records of the log that it read for that"),
        lambda state: state.rebuild.records,
    ),
)
MEMBERS: Final = gauge("gateway_cluster_members", "Nodes of the cluster, by whether they are alive", "state")
BEHIND_BATCHES: Final = gauge(
    "gateway_cluster_copy_behind_batches", "Batches of the log that the copy of a follower lacks", "member"
)
BEHIND_SECONDS: Final = gauge(
    "gateway_cluster_copy_behind_seconds", "Age of the state of a follower's copy; 0 while it lacks nothing", "member"
)
RESUMED: Final = counter(
    "gateway_cluster_clients_resumed_total",
    "Connections of a node that went on with another leader",
    "member",
)
NOT_RESUMED: Final = counter(
    "gateway_cluster_clients_not_resumed_total", "Connections that were ended because no leader could go on", "member"
)
COPY_READS: Final = counter(
    "gateway_cluster_copy_reads_total", "Reads of streams that a node has answered from its copies", "member"
)
COPY_MESSAGES: Final = counter(
    "gateway_cluster_copy_messages_read_total",
    "Messages in the reads that a node has answered from its copies",
    "member",
)
LATENCY: Final = gauge(
    "gateway_cluster_append_latency_seconds",
    "Time until a majority had stored a record of the log, over the last minute",
    "quantile",
)

CELL_EPOCH: Final = gauge("gateway_cluster_cell_epoch", "Epoch of a cell: it rises with each of its leaders", "cell")
CELL_HAS_LEADER: Final = gauge("gateway_cluster_cell_has_leader", "1 while a cell has a leader", "cell")
CELL_VHOSTS: Final = gauge("gateway_cluster_cell_vhosts", "Virtual hosts in a cell", "cell")

FAMILIES: Final[tuple[Family, ...]] = (
    *(reading.family for reading in _READINGS),
    MEMBERS,
    BEHIND_BATCHES,
    BEHIND_SECONDS,
    RESUMED,
    NOT_RESUMED,
    COPY_READS,
    COPY_MESSAGES,
    LATENCY,
    CELL_EPOCH,
    CELL_HAS_LEADER,
    CELL_VHOSTS,
)


def cluster(state: ClusterState | None) -> Iterator[Metric]:
    """Yield the metrics of a cluster."""
    if state is None:
        return
    yield from read_all(_READINGS, state)
    alive = len(state.alive)
    yield MEMBERS.metric([(("alive",), alive), (("silent",), len(state.members) - alive)])
    copies = [(member.name, copy) for member in state.members if (copy := member.copy) is not None]
    yield BEHIND_BATCHES.metric([((name,), copy.behind_batches) for name, copy in copies])
    yield BEHIND_SECONDS.metric([((name,), copy.behind_seconds) for name, copy in copies])
    yield RESUMED.metric([((member.name,), member.clients_resumed) for member in state.members])
    yield NOT_RESUMED.metric([((member.name,), member.clients_not_resumed) for member in state.members])
    yield COPY_READS.metric([((member.name,), member.copy_reads) for member in state.members])
    yield COPY_MESSAGES.metric([((member.name,), member.copy_rows) for member in state.members])
    if state.cells:
        yield CELL_EPOCH.metric([((str(cell.number),), cell.epoch) for cell in state.cells])
        yield CELL_HAS_LEADER.metric([((str(cell.number),), int(bool(cell.leader))) for cell in state.cells])
        yield CELL_VHOSTS.metric([((str(cell.number),), cell.vhosts) for cell in state.cells])
    if state.log.appends:
        log = state.log
        yield LATENCY.metric([(("0.5",), log.append_p50_ms / 1000), (("0.99",), log.append_p99_ms / 1000)])
