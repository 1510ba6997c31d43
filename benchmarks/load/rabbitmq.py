"""Debian's RabbitMQ, separate from any RabbitMQ that already runs on the machine.

The node has its own name, ports, cookie and directories, and its own port mapper (epmd), so that stopping both
leaves nothing behind. Its settings are RabbitMQ's defaults, with the bundled plugins rabbitmq_stomp and
rabbitmq_web_stomp enabled.
"""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from benchmarks.load.amqp.client import amqp_product
from benchmarks.load.processes import free_port, stop
from benchmarks.load.running import Broker, running
from benchmarks.load.workloads import AMQP, STOMP, WEB_STOMP

#: Debian's wrapper in /usr/sbin requires the system's directories and user; this is the script it calls.
SERVER: Final = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")

#: With RABBITMQ_ALLOW_INPUT the script replaces itself by the Erlang VM, so its pid is the broker's.
COMMAND: Final = (str(SERVER), "-noinput")

#: Files of the node: the enabled plugins, and settings as Erlang terms.
PLUGINS: Final = "enabled_plugins"
CONFIGURATION: Final = "advanced.config"

#: Debian's package scripts run this before they start a service; 101 means "do not".
SERVICE_POLICY: Final = Path("/usr/sbin/policy-rc.d")


def absence() -> str | None:
    """Install the package if possible; return the reason why it is missing, or None."""
    if SERVER.exists():
        return None
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return "Debian's rabbitmq-server is not installed, and only root can install it with apt-get"
    print("installing Debian's rabbitmq-server (its service is not started)", flush=True)
    _install()
    return None if SERVER.exists() else "apt-get could not install rabbitmq-server"


@contextmanager
def launch(directory: Path) -> Iterator[Broker]:
    """Run a node in a directory until the context ends."""
    ports = {AMQP: free_port(), STOMP: free_port(), WEB_STOMP: free_port()}
    (directory / PLUGINS).write_text("[rabbitmq_stomp, rabbitmq_web_stomp].")
    (directory / CONFIGURATION).write_text(_configuration(ports[STOMP], ports[WEB_STOMP]))
    with port_mapper(directory) as environment:
        node = {**environment, **node_environment(directory, ports[AMQP])}
        # Erlang takes some seconds to boot, more with a backlog to recover.
        with running("rabbitmq", COMMAND, node, directory, ports, amqp_product, timeout_s=180.0) as broker:
            yield broker


@contextmanager
def port_mapper(directory: Path) -> Iterator[Mapping[str, str]]:
    """Run an epmd for this node alone, on loopback; yield the environment that refers to it."""
    port = free_port()
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("RABBITMQ_", "ERL_"))},
        "HOME": str(directory),  # the Erlang cookie is written there
        "ERL_EPMD_ADDRESS": "127.0.0.1",
        "ERL_EPMD_PORT": str(port),
    }
    mapper = subprocess.Popen(
        ["epmd"], env=environment, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        # Without an epmd, Erlang would start its own daemon, which would not be stopped.
        _wait_until_listening(port)
        yield environment
    finally:
        stop(mapper)


def node_environment(directory: Path, port: int) -> Mapping[str, str]:
    """Return the environment of a node that keeps everything below ``directory`` and listens on loopback."""
    return {
        "RABBITMQ_ALLOW_INPUT": "true",
        "RABBITMQ_CONF_ENV_FILE": str(directory / "no-rabbitmq-env.conf"),
        "RABBITMQ_CONFIG_FILE": str(directory / "no-rabbitmq.conf"),
        "RABBITMQ_ADVANCED_CONFIG_FILE": str(directory / CONFIGURATION),
        "RABBITMQ_NODENAME": "bench@localhost",
        "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
        "RABBITMQ_NODE_PORT": str(port),
        "RABBITMQ_DIST_PORT": str(free_port()),
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
        "RABBITMQ_MNESIA_BASE": str(directory / "data"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(directory / PLUGINS),
        "RABBITMQ_LOG_BASE": str(directory / "log"),
        "RABBITMQ_LOGS": "-",
        "RABBITMQ_PID_FILE": str(directory / "pid"),
    }


def _configuration(stomp_port: int, web_stomp_port: int) -> str:
    """Return the settings that the environment cannot contain."""
    stomp = f'{{rabbitmq_stomp, [{{tcp_listeners, [{{"127.0.0.1", {stomp_port}}}]}}]}}'
    web_stomp = f'{{rabbitmq_web_stomp, [{{tcp_config, [{{ip, "127.0.0.1"}}, {{port, {web_stomp_port}}}]}}]}}'
    return f"[{stomp}, {web_stomp}].\n"


def _install() -> None:
    """Install the package without starting its service."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    with _services_forbidden():
        for arguments in (["update"], ["install", "--yes", "--no-install-recommends", "rabbitmq-server"]):
            subprocess.run(["apt-get", "-qq", *arguments], env=environment, check=False, timeout=600)


@contextmanager
def _services_forbidden() -> Iterator[None]:
    """Forbid package scripts to start services; an existing policy is not changed."""
    if SERVICE_POLICY.exists():
        yield
        return
    SERVICE_POLICY.write_text("#!/bin/sh\nexit 101\n")
    SERVICE_POLICY.chmod(0o755)
    try:
        yield
    finally:
        SERVICE_POLICY.unlink()


def _wait_until_listening(port: int, timeout_s: float = 10.0) -> None:
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.01)
    raise TimeoutError(f"epmd does not listen on port {port}")
