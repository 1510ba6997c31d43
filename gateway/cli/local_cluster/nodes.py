"""Three gateways as processes, which are the nodes of one cluster."""

import base64
import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.request import Request, urlopen

from gateway.cli.local_cluster.ports import HOST, INTERNAL_PORT, NODE_PORTS, chosen
from gateway.cli.local_cluster.processes import ChildProcess, until
from gateway.cli.local_cluster.servers import NatsServers
from gateway.kernel.errors import ConfigurationError

NAMES: Final = ("a", "b", "c")
_READY_S: Final = 120.0

#: The user that a new broker has; it may log in from this machine alone.
_LOGIN: Final = "guest:guest"


class GatewayNodes:
    """The nodes below a directory. Each has a file with its settings."""

    def __init__(self, directory: Path, servers: NatsServers, taken: set[int], cells: int) -> None:
        self.ports: dict[str, dict[str, int]] = {}
        self.processes: dict[str, ChildProcess] = {}
        for at, name in enumerate(NAMES):
            self.ports[name] = ports = chosen(NODE_PORTS, at, taken)
            internal = chosen({"internal": INTERNAL_PORT}, at, taken)["internal"]
            home = directory / name
            home.mkdir(parents=True, exist_ok=True)
            settings = home / "gateway.toml"
            settings.write_text(_settings(name, servers, ports, internal, cells))
            command = [sys.executable, "-m", "gateway", "run", "--config", str(settings), "--data", str(home)]
            self.processes[name] = ChildProcess(name, command, home / "gateway.log")

    def start(self) -> str:
        """Start all; return the name of the leader. :raises ConfigurationError: if there is none."""
        for process in self.processes.values():
            process.start()
        deadline_s = time.monotonic() + _READY_S
        while (leader := self.leader()) is None:
            for process in self.processes.values():
                if not process.is_running:
                    raise ConfigurationError(f"node {process.name} has ended: {process.last_words}")
            if not until(deadline_s):
                logs = self.processes[NAMES[0]].log
                raise ConfigurationError(f"the cluster has no leader after {_READY_S:g} s; see {logs}")
        return leader

    def leader(self) -> str | None:
        """Return the name of the leader, once all nodes that run are alive for it; ``None`` while that is not so."""
        running = {name for name, process in self.processes.items() if process.is_running}
        for name in sorted(running):
            state = _state(self.ports[name]["management"])
            alive = {member["name"] for member in state.get("members", ()) if member["alive"]}
            if running <= alive:
                return str(state["leader"])
        return None

    def amqp_url(self, name: str) -> str:
        """Return the URL of a node for AMQP clients."""
        return f"amqp://{_LOGIN}@{HOST}:{self.ports[name]['amqp']}/%2F"


def _settings(name: str, servers: NatsServers, ports: Mapping[str, int], internal: int, cells: int) -> str:
    lines = [
        f'node_name = "{name}"',
        f'bind = "{HOST}"',
        *(f"{listener}.port = {port}" for listener, port in ports.items()),
        'web_mqtt.port = "off"',
        'web_stomp.port = "off"',
        f"cluster.servers = {json.dumps(servers.urls)}",
        f"cluster.monitoring = {json.dumps(servers.monitoring)}",
        f'cluster.host = "{HOST}"',
        f"cluster.port = {internal}",
        f"cluster.cells = {cells}",
    ]
    return "\n".join(lines) + "\n"


def _state(port: int) -> Mapping[str, Any]:
    """Return the state of the cluster as a node answers; empty if it does not."""
    login = base64.b64encode(_LOGIN.encode()).decode()
    request = Request(f"http://{HOST}:{port}/api/cluster", headers={"Authorization": f"Basic {login}"})
    try:
        with urlopen(request, timeout=2) as answer:  # the address is one of this module
            found: Mapping[str, Any] = json.load(answer)
    except (OSError, ValueError):
        return {}
    return found
