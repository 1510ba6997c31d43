"""The state of a cluster of three nodes, of which one is not alive."""

from gateway.management.cluster_state import CellState, ClusterState, LogState, MemberState, RebuildState

FIGURES = {
    "mem_used": 5,
    "copy_behind_batches": 3,
    "copy_behind_ms": 250,
    "clients_resumed": 5,
    "clients_not_resumed": 1,
    "copy_reads": 4,
    "copy_rows": 900,
}

CLUSTER = ClusterState(
    name="shop",
    node="gateway@here",
    leader="gateway@here",
    epoch=7,
    members=(
        MemberState("b", True, False, "follower", "0.2", "10.0.0.2", {"amqp": ("10.0.0.2", 5672)}, FIGURES),
        MemberState("c", False, False, "", "0.2", "10.0.0.3"),
        MemberState("gateway@here", True, True, "leader", "0.2", "10.0.0.1"),
    ),
    engine_fault=None,
    lease_s=3.2,
    log=LogState(20, 1.5, 8.0, 2.0, 300, 40_000, 0),
    rebuild=RebuildState(0.5, 100, 30_000),
    cells=(CellState(1, "gateway@here", 7, 2), CellState(2, "", 3, 1)),
)
