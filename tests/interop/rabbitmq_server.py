"""Debian's RabbitMQ as a child process, separate from any RabbitMQ that already runs on the machine.

The node has its own name, ports, cookie, directories and port mapper (epmd), on loopback. It runs from the scripts that
the package's own scripts call, so it needs neither the system's user nor its directories.
"""

import base64
import json
import os
import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from tests.ports import free_port
from tests.waiting import wait_until

SCRIPTS: Final = Path("/usr/lib/rabbitmq/bin")
PLUGINS: Final = (
    "rabbitmq_management",
    "rabbitmq_consistent_hash_exchange",
    "rabbitmq_shovel",
    "rabbitmq_shovel_management",
    "rabbitmq_federation",
    "rabbitmq_federation_management",
)

_START_TIMEOUT_S: Final = 90
_STOP_TIMEOUT_S: Final = 20
_LOGIN: Final = "Basic " + base64.b64encode(b"guest:guest").decode()


class RabbitServer:
    """One node with the plugins of bridges. ``kill`` and ``start`` keep its data and its ports."""

    def __init__(self, directory: Path) -> None:
        if not (SCRIPTS / "rabbitmq-server").exists():
            pytest.fail("rabbitmq-server is not installed: run tests/interop/install-tools.sh as root", pytrace=False)
        self.directory = directory
        self.port, self._http, self._epmd, distribution = (free_port() for _ in range(4))
        (directory / "enabled_plugins").write_text(f"[{', '.join(PLUGINS)}].")
        (directory / "rabbitmq.conf").write_text(
            f"management.tcp.ip = 127.0.0.1\nmanagement.tcp.port = {self._http}\ncluster_name = rabbit-far\n"
        )
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("RABBITMQ_", "ERL_"))}
        self._environment = {
            **inherited,
            "HOME": str(directory),  # the Erlang cookie is written there
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "ERL_EPMD_PORT": str(self._epmd),
            "RABBITMQ_ALLOW_INPUT": "true",  # the script replaces itself by the Erlang VM, so its pid is the broker's
            "RABBITMQ_CONF_ENV_FILE": str(directory / "no-rabbitmq-env.conf"),
            "RABBITMQ_CONFIG_FILE": str(directory / "rabbitmq.conf"),
            "RABBITMQ_NODENAME": "bridges@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(distribution),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
            "RABBITMQ_MNESIA_BASE": str(directory / "data"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(directory / "enabled_plugins"),
            "RABBITMQ_LOG_BASE": str(directory / "log"),
            "RABBITMQ_LOGS": "-",
            "RABBITMQ_PID_FILE": str(directory / "pid"),
        }
        self._children: list[subprocess.Popen[bytes]] = []

    @property
    def uri(self) -> str:
        """Its AMQP URI."""
        return f"amqp://guest:guest@127.0.0.1:{self.port}/%2F"

    @property
    def api_host(self) -> str:
        """The host and port of its management API."""
        return f"127.0.0.1:{self._http}"

    @property
    def log(self) -> str:
        """The log of all runs."""
        return (self.directory / "output.txt").read_text(errors="replace")[-5000:]

    def start(self) -> "RabbitServer":
        """Start it with its port mapper, and wait until its management API answers."""
        self._spawn(["epmd"])
        wait_until(lambda: _is_listening(self._epmd), "epmd does not listen")
        server = self._spawn([str(SCRIPTS / "rabbitmq-server"), "-noinput"])

        def is_ready() -> bool:
            assert server.poll() is None, f"RabbitMQ exited with code {server.returncode}:\n{self.log}"
            return _is_listening(self._http) and _is_listening(self.port)

        wait_until(
            is_ready, lambda: f"RabbitMQ does not start:\n{self.log}", timeout_s=_START_TIMEOUT_S, interval_s=0.1
        )
        return self

    def kill(self) -> None:
        """Kill it with SIGKILL, and its port mapper."""
        for child in self._children:
            child.kill()
            child.wait(_STOP_TIMEOUT_S)
        self._children.clear()

    def request(self, method: str, path: str, fields: Any = None) -> Any:
        """Send a request below ``/api/``; return the decoded JSON, ``None`` for an empty response."""
        content = None if fields is None else json.dumps(fields).encode()
        headers = {"Authorization": _LOGIN, "Content-Type": "application/json"}
        url = f"http://127.0.0.1:{self._http}/api/{path}"
        asked = urllib.request.Request(url, content, headers, method=method)
        with urllib.request.urlopen(asked, timeout=20) as answer:
            said = answer.read()
        return json.loads(said) if said else None

    def exported_definitions(self) -> Any:
        """Return what ``rabbitmqctl export_definitions`` writes."""
        file = self.directory / "exported.json"
        command = [str(SCRIPTS / "rabbitmqctl"), "-n", "bridges@localhost", "export_definitions", str(file)]
        subprocess.run(command, env=self._environment, cwd=self.directory, check=True, capture_output=True, timeout=40)
        return json.loads(file.read_text())

    def _spawn(self, command: list[str]) -> "subprocess.Popen[bytes]":
        with (self.directory / "output.txt").open("ab") as output:
            child = subprocess.Popen(
                command,
                env=self._environment,
                cwd=self.directory,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        self._children.append(child)
        return child


@contextmanager
def running_rabbitmq(directory: Path) -> Iterator[RabbitServer]:
    """Run a node within the block."""
    server = RabbitServer(directory)
    try:
        yield server.start()
    finally:
        server.kill()


def _is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
