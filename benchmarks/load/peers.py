"""The brokers compared: how each is obtained, started in a directory of its own, and stopped."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.load import rabbitmq
from benchmarks.load.client import connected, product_of
from benchmarks.load.processes import free_port, stop, wait_for_port


@dataclass(frozen=True, slots=True)
class Broker:
    """A running broker: where it listens on loopback, and the process to measure."""

    peer: str
    product: str
    port: int
    pid: int


@dataclass(frozen=True, slots=True)
class Peer:
    """A kind of broker. ``launch`` runs one on a directory until the context ends.

    ``absence`` tells why this machine cannot run it, or None when it can; it
    may install the broker first. The smaller figures keep a slow peer's part
    of the run short; they do not touch the workloads.
    """

    name: str
    absence: Callable[[], str | None]
    launch: Callable[[Path], AbstractContextManager[Broker]]
    idle_connections: int
    backlog_messages: int


@contextmanager
def _launch_gateway(directory: Path) -> Iterator[Broker]:
    port = free_port()
    settings = ["--set", "bind=127.0.0.1", "--set", f"amqp.port={port}", "--set", "management.port=off"]
    command = [sys.executable, "-m", "gateway", "run", "--data", str(directory / "data"), *settings]
    with _running("gateway", command, os.environ, directory, port, timeout_s=60.0) as broker:
        yield broker


@contextmanager
def _launch_rabbitmq(directory: Path) -> Iterator[Broker]:
    port = free_port()
    with rabbitmq.port_mapper(directory) as environment:
        node = {**environment, **rabbitmq.node_environment(directory, port)}
        # Erlang takes some seconds to boot, more with a backlog to recover.
        with _running("rabbitmq", rabbitmq.COMMAND, node, directory, port, timeout_s=180.0) as broker:
            yield broker


@contextmanager
def _running(
    peer: str, command: Sequence[str], environment: Mapping[str, str], directory: Path, port: int, timeout_s: float
) -> Iterator[Broker]:
    """Run a broker's process from its first connection accepted to its orderly end."""
    output = directory / "output.log"
    with output.open("ab") as log:
        # A session of its own: Ctrl-C reaches the benchmark alone, which then stops the broker in order.
        process = subprocess.Popen(
            command, env=dict(environment), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    try:
        wait_for_port(process, port, output, timeout_s)
        with connected(port) as client:
            product = product_of(client)
        yield Broker(peer, product, port, process.pid)
    finally:
        stop(process)


def _gateway_absence() -> str | None:
    found = subprocess.run([sys.executable, "-m", "gateway", "--version"], capture_output=True, text=True, check=False)
    return None if found.returncode == 0 else f"`python -m gateway` does not run: {found.stderr.strip()[-200:]}"


#: The gateway first: where two peers are compared, it is the one that must win.
PEERS: Final = (
    Peer("gateway", _gateway_absence, _launch_gateway, idle_connections=5000, backlog_messages=1_000_000),
    Peer("rabbitmq", rabbitmq.absence, _launch_rabbitmq, idle_connections=1000, backlog_messages=200_000),
)
