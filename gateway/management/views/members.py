"""JSON views of a cluster and of its other nodes."""

from typing import Final

from gateway.management.cluster_state import CellState, ClusterState, CopyState, MemberState
from gateway.management.http.routes import Fields
from gateway.version import VERSION

#: RabbitMQ's clients require these of a node; they are 0 if its record lacks them.
_REQUIRED: Final = (
    *("os_pid", "uptime", "processors", "mem_used", "mem_limit", "disk_free", "disk_free_limit"),
    *("fd_used", "fd_total", "sockets_total"),
)


def cluster_view(state: ClusterState) -> Fields:
    """Return the whole state."""
    return {
        "name": state.name,
        "node": state.node,
        "leader": state.leader or None,
        "epoch": state.epoch,
        "members": [_member_fields(member) for member in state.members],
        "engine": {
            "answers": state.engine_fault is None,
            "reason": state.engine_fault,
            "unchecked": [*state.unchecked_servers],
        },
        "doubt": state.doubt,
        "lease_seconds": round(max(state.lease_s, 0.0), 1),
        "log": {
            "appends": state.log.appends,
            "append_p50_ms": state.log.append_p50_ms,
            "append_p99_ms": state.log.append_p99_ms,
            "append_last_ms": state.log.append_last_ms,
            "records_since_checkpoint": state.log.records,
            "bytes_since_checkpoint": state.log.bytes,
            "checkpoint_bytes": state.log.checkpoint_bytes,
            "leader_moves": state.log.leader_moves,
        },
        "rebuild": {
            "seconds": state.rebuild.seconds,
            "records": state.rebuild.records,
            "bytes": state.rebuild.bytes,
        },
        **({"cells": [_cell_fields(cell) for cell in state.cells]} if state.cells else {}),
    }


def _cell_fields(cell: CellState) -> Fields:
    return {"cell": cell.number, "leader": cell.leader or None, "epoch": cell.epoch, "vhosts": cell.vhosts}


def _member_fields(member: MemberState) -> Fields:
    return {
        "name": member.name,
        "alive": member.is_alive,
        "this_node": member.is_this_node,
        "role": member.role or None,
        "drained": member.is_drained,
        "eligible": member.is_eligible,
        "version": member.version,
        "host": member.host,
        "copy": _copy_fields(member.copy),
        "clients": {"resumed": member.clients_resumed, "not_resumed": member.clients_not_resumed},
        "copy_reads": {"answered": member.copy_reads, "messages": member.copy_rows},
        "addresses": {name: {"host": host, "port": port} for name, (host, port) in member.addresses.items()},
    }


def _copy_fields(copy: CopyState | None) -> Fields | None:
    if copy is None:
        return None
    return {"behind_batches": copy.behind_batches, "behind_seconds": copy.behind_seconds}


def other_node_view(member: MemberState) -> Fields:
    """Return the view of another node: what its record has, and neutral values for what RabbitMQ's clients require."""
    figures = {name: member.figures.get(name, 0) for name in _REQUIRED}
    version = member.version or VERSION
    return {
        **figures,
        "applications": [{"name": "gateway", "description": "gateway message broker", "version": version}],
        "auth_mechanisms": [],
        "being_drained": member.is_drained,
        "cluster_links": [],
        "config_files": [],
        "contexts": [],
        "db_dir": "",
        "disk_free_alarm": False,
        "enabled_plugins": [],
        "exchange_types": [],
        "log_files": [],
        "mem_alarm": False,
        "name": member.name,
        "net_ticktime": 60,
        "os_pid": str(figures["os_pid"]),
        "partitions": [],
        "proc_total": 1048576,
        "rates_mode": "detailed",
        "run_queue": 0,
        "running": member.is_alive,
        "type": "disc",
        "uptime": figures["uptime"] if member.is_alive else 0,
    }
