"""The state of a cluster for operators, from the parts of the node that leads it."""

import os
import resource
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from gateway.cluster.leadership import Leadership, Member, Members
from gateway.cluster.replication.replicated_store import ReplicatedStore
from gateway.config import Settings
from gateway.management.cluster_state import ClusterState, LogState, MemberState, RebuildState
from gateway.net.watermarks import memory_limit, memory_used

#: Hosts of listeners that accept connections at all addresses of a machine.
_ALL_ADDRESSES = ("", "0.0.0.0", "::")


def cluster_state(
    name: str,
    leadership: Leadership,
    members: Members,
    is_drained: Callable[[Member], bool],
    engine_fault: str | None,
    store: ReplicatedStore | None,
    rebuild: RebuildState,
) -> ClusterState:
    """Return the state as this node sees it."""
    alive = {member.name: member for member in members.alive}
    known = {member.name: member for member in members.known} | alive
    lease = leadership.leader
    own = members.own.name
    stalled = None if store is None else store.stalled
    return ClusterState(
        name,
        own,
        "" if lease is None else lease.leader,
        leadership.epoch,
        tuple(
            _member_state(known[each], each in alive, each == own, is_drained(known[each])) for each in sorted(known)
        ),
        engine_fault or stalled,
        leadership.lease_left_s,
        LogState() if store is None else _log_state(store),
        rebuild,
    )


def _log_state(store: ReplicatedStore) -> LogState:
    latency, growth = store.append_latency, store.growth
    return LogState(
        latency.count,
        latency.p50_ms,
        latency.p99_ms,
        latency.last_ms,
        growth.records,
        growth.bytes,
        growth.checkpoint_bytes,
        store.leader_moves,
    )


def _member_state(member: Member, is_alive: bool, is_this_node: bool, is_drained: bool) -> MemberState:
    host = member.forwarding[0]
    addresses = {
        name: (host if bound in _ALL_ADDRESSES else bound, port) for name, (bound, port) in member.addresses.items()
    }
    role = member.role.value if is_alive else ""
    return MemberState(
        member.name,
        is_alive,
        is_this_node,
        role,
        member.version,
        host,
        addresses,
        member.figures,
        is_drained,
        member.is_eligible,
    )


def member_figures(settings: Settings, uptime_ms: Callable[[], int]) -> Mapping[str, int]:
    """Return the figures of this process and its machine, by their names in the HTTP API."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return {
        "os_pid": os.getpid(),
        "uptime": uptime_ms(),
        "processors": os.cpu_count() or 1,
        "mem_used": memory_used(),
        "mem_limit": memory_limit(settings.memory_high_watermark),
        "disk_free": _disk_free(settings.data),
        "disk_free_limit": settings.disk_free_limit,
        "fd_used": _open_files(),
        "fd_total": files,
        "sockets_total": files,
    }


def _disk_free(directory: Path) -> int:
    with suppress(OSError):
        return shutil.disk_usage(directory).free
    return 0


def _open_files() -> int:
    with suppress(OSError):
        return len(os.listdir("/proc/self/fd"))
    return 0
