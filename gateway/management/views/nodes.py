"""The node as the API shows it: what it uses of the machine, and how much there is."""

import os
import resource
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Final

from gateway.kernel.alarms import Resource
from gateway.management.routes import Fields
from gateway.management.scope import Surroundings
from gateway.version import VERSION

#: Whose HTTP API this is. Tools compare it with the versions they know.
RABBITMQ_VERSION: Final = "3.10.8"

#: Tools show it; there is no Erlang here.
ERLANG_VERSION: Final = "25.0"


def node_view(surroundings: Surroundings) -> Fields:
    """Return the node, measured now."""
    broker = surroundings.broker
    standing = broker.alarms.standing
    files, sockets = _open_files()
    files_limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    used = {
        "mem_used": _memory("RssAnon"),
        "fd_used": files,
        "sockets_used": sockets,
        "proc_used": _threads(),
        "disk_free": _disk_free(surroundings.data),
    }
    details = {f"{name}_details": {"rate": 0.0} for name in used}
    return (
        used
        | details
        | {
            "applications": [{"name": "gateway", "description": "gateway message broker", "version": VERSION}],
            "auth_mechanisms": [{"name": name, "description": "", "enabled": True} for name in ("PLAIN", "AMQPLAIN")],
            "config_files": [],
            "contexts": contexts(surroundings),
            "db_dir": str(surroundings.data),
            "disk_free_alarm": Resource.DISK in standing,
            "disk_free_limit": surroundings.disk_free_limit,
            "enabled_plugins": ["rabbitmq_management"],
            "exchange_types": exchange_types(surroundings),
            "fd_total": files_limit,
            "log_files": [],
            "mem_alarm": Resource.MEMORY in standing,
            "mem_calculation_strategy": "rss",
            "mem_limit": surroundings.memory_limit,
            "name": broker.node,
            "net_ticktime": 60,
            "os_pid": str(os.getpid()),
            "partitions": [],
            "proc_total": 1048576,
            "processors": os.cpu_count() or 1,
            "rates_mode": "basic",
            "run_queue": 0,
            "running": True,
            "sockets_total": files_limit,
            "type": "disc",
            "uptime": uptime_ms(surroundings),
        }
    )


def memory_view() -> Fields:
    """Return what the process holds; there are no categories to tell apart."""
    resident, own = _memory("VmRSS"), _memory("RssAnon")
    return {
        "memory": {
            "binary": 0,
            "code": 0,
            "mapped_files": max(resident - own, 0),
            "other_proc": own,
            "strategy": "rss",
            "total": {"rss": resident, "allocated": own, "erlang": own},
        }
    }


def listeners(surroundings: Surroundings) -> list[Fields]:
    """Return what listens where."""
    return [
        {
            "node": surroundings.broker.node,
            "protocol": protocol_of(name),
            "ip_address": "::" if host == "*" else host,
            "port": port,
            "socket_opts": {},
        }
        for name, (host, port) in surroundings.addresses().items()
    ]


def contexts(surroundings: Surroundings) -> list[Fields]:
    """Return where the API itself is."""
    return [
        {
            "node": surroundings.broker.node,
            "description": "RabbitMQ Management",
            "path": "/",
            "ip": host,
            "port": str(port),
        }
        for name, (host, port) in surroundings.addresses().items()
        if protocol_of(name) == "http"
    ]


def exchange_types(surroundings: Surroundings) -> list[Fields]:
    """Return the types that some virtual host has."""
    names = {name for vhost in surroundings.broker.vhost_by_name.values() for name in vhost.exchange_types}
    return [{"name": name, "description": f"{name} exchange", "enabled": True} for name in sorted(names)]


def protocol_of(listener: str) -> str:
    """Return RabbitMQ's name for what a listener speaks."""
    return {"amqps": "amqp/ssl", "management": "http"}.get(listener, listener)


def uptime_ms(surroundings: Surroundings) -> int:
    """Return how long the node has been running."""
    return max(surroundings.broker.clock.wall_ms() - surroundings.started_at_ms, 0)


def _memory(name: str) -> int:
    return _status(name) * 1024


def _threads() -> int:
    return _status("Threads")


def _status(name: str) -> int:
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1])
    return 0


def _open_files() -> tuple[int, int]:
    """Return how many files are open, and how many of them are sockets."""
    count = sockets = 0
    with suppress(OSError):
        for entry in os.scandir("/proc/self/fd"):
            count += 1
            with suppress(OSError):
                sockets += os.readlink(entry.path).startswith("socket:")
    return count, sockets


def _disk_free(directory: Path) -> int:
    with suppress(OSError):
        return shutil.disk_usage(directory).free
    return 0
