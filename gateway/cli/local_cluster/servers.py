"""Three NATS servers as processes, with JetStream on disk."""

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.request import urlopen

from gateway.cli.local_cluster.ports import HOST, NATS_PORTS, chosen
from gateway.cli.local_cluster.processes import ChildProcess, until
from gateway.cli.programs import program_of
from gateway.kernel.errors import ConfigurationError

COUNT: Final = 3
_READY_S: Final = 60.0


class NatsServers:
    """The servers below a directory."""

    def __init__(self, directory: Path, taken: set[int]) -> None:
        program = program_of("cluster", "nats-server")
        self.ports = [chosen(NATS_PORTS, at, taken) for at in range(COUNT)]
        self.processes = []
        for at, ports in enumerate(self.ports):
            name = f"nats-{at + 1}"
            home = directory / name
            home.mkdir(parents=True, exist_ok=True)
            configuration = home / "server.conf"
            configuration.write_text(self._configuration(name, home, ports))
            command = [program, "-c", str(configuration)]
            self.processes.append(ChildProcess(name, command, home / "log", share_of_processors()))

    def _configuration(self, name: str, home: Path, ports: Mapping[str, int]) -> str:
        routes = ", ".join(f"nats://{HOST}:{each['route']}" for each in self.ports)
        return (
            f"server_name: {name}\n"
            f"listen: {HOST}:{ports['client']}\n"
            f"http: {HOST}:{ports['monitoring']}\n"
            f"jetstream {{ store_dir: {json.dumps(str(home / 'data'))}, sync_interval: always }}\n"
            f"cluster {{ name: local, listen: {HOST}:{ports['route']}, routes: [{routes}] }}\n"
        )

    @property
    def urls(self) -> list[str]:
        """The URLs for clients."""
        return [f"nats://{HOST}:{ports['client']}" for ports in self.ports]

    @property
    def monitoring(self) -> list[str]:
        """The URLs of the monitoring endpoints."""
        return [f"http://{HOST}:{ports['monitoring']}" for ports in self.ports]

    def start(self) -> None:
        """Start all, and wait until they work together. :raises ConfigurationError: if they do not."""
        for process in self.processes:
            process.start()
        deadline_s = time.monotonic() + _READY_S
        for process, url in zip(self.processes, self.monitoring, strict=True):
            while not _is_ready(url):
                if not process.is_running:
                    raise ConfigurationError(f"{process.name} has ended: {process.last_words}")
                if not until(deadline_s):
                    raise ConfigurationError(f"{process.name} is not ready after {_READY_S:g} s; see {process.log}")


def share_of_processors() -> Mapping[str, str]:
    """Return the environment of one of the servers that share this machine: its part of the processors.

    The Go runtime lets each server run a thread for each processor. Those of three servers wake each other up for each
    message; that costs a sixth of their CPU on a busy machine.
    """
    return {"GOMAXPROCS": str(max(1, len(os.sched_getaffinity(0)) // COUNT))}


def _is_ready(url: str) -> bool:
    """Return whether a server has found the others, and they have a leader."""
    health, jetstream = _answer(f"{url}/healthz"), _answer(f"{url}/jsz")
    return health.get("status") == "ok" and bool(jetstream.get("meta_cluster", {}).get("leader"))


def _answer(url: str) -> Mapping[str, Any]:
    try:
        with urlopen(url, timeout=2) as answer:  # the address is one of this module
            found: Mapping[str, Any] = json.load(answer)
    except (OSError, ValueError):
        return {}
    return found
