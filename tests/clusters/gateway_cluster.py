"""Gateway nodes as child processes on three nats-servers: started, killed, stopped and continued one by one."""

import json
import re
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from select import select
from typing import Any, Final

from tests.jetstream.nats_servers import NatsServer, NatsServers, running_servers
from tests.management_client import get
from tests.ports import free_port
from tests.running import Gateway
from tests.waiting import wait_until

#: The names of the nodes.
NAMES: Final = ("a", "b", "c")

#: The time in which another node must lead, after whatever happened to the leader, in seconds.
TAKEOVER_S: Final = 90.0

#: How long a node may take to greet a client, in seconds.
_GREETING_S: Final = 1.0

_LISTENERS: Final = ("amqp", "mqtt", "stomp", "management")
_WITHOUT: Final = ("web_mqtt", "web_stomp", "prometheus")

_PROTOCOL_HEADER: Final = b"AMQP\x00\x00\x09\x01"

_LEADING: Final = re.compile(r"info leading epoch=(\d+)|no longer the leader|could not lead|info stopping")

#: The stream that has the log of the leader.
_LOG_STREAM: Final = "gateway_q_1"


def cluster_settings(servers: NatsServers, name: str, urls: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the settings by which a node uses these servers, perhaps by other URLs than theirs."""
    return (
        f"node_name={name}",
        f"cluster.servers={json.dumps(list(urls) or servers.urls)}",
        f"cluster.monitoring={json.dumps(servers.monitoring)}",
        "cluster.host=127.0.0.1",
        f"cluster.port={free_port()}",
        *(f"{listener}.port=off" for listener in _WITHOUT),
    )


class ClusterNode(Gateway):
    """One node, whose ports stay the same through all starts."""

    def __init__(
        self,
        name: str,
        directory: Path,
        servers: NatsServers,
        urls: Sequence[str] = (),
        listeners: Sequence[str] = (),
        settings: Sequence[str] = (),
    ) -> None:
        ports = tuple(f"{listener}.port={free_port()}" for listener in (*_LISTENERS, *listeners))
        super().__init__(directory / name, *cluster_settings(servers, name, urls), *ports, *settings)
        self.name = name
        self._begin = 0
        self.is_paused = False

    def _spawn(self, settings: tuple[str, ...]) -> None:
        self._begin = self._log.stat().st_size if self._log.exists() else 0
        self.is_paused = False
        super()._spawn(settings)

    @property
    def is_running(self) -> bool:
        """Whether it has a process that is not paused."""
        return self._child is not None and self._child.poll() is None and not self.is_paused

    @property
    def led_epoch(self) -> int:
        """The epoch that this process leads; 0 while it follows."""
        found = [match.group(1) for match in _LEADING.finditer(self.log_of_run)]
        return int(found[-1]) if found and found[-1] else 0

    @property
    def log_of_run(self) -> str:
        """The log since the last start."""
        with self._log.open("rb") as file:
            file.seek(self._begin)
            return file.read().decode(errors="replace")

    def pause(self) -> None:
        """Stop the process, as an overloaded host would."""
        self.is_paused = True
        self.child.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        self.child.send_signal(signal.SIGCONT)
        self.is_paused = False

    def end(self) -> None:
        """Ensure that no process is left."""
        if self._child is not None and self.is_paused:
            self.resume()
        super().end()


class GatewayCluster:
    """The nodes of a cluster. Owns them, but not the servers. ``urls_of`` has the URLs that a node uses.

    The nodes have further ``listeners`` and ``settings``.
    """

    def __init__(
        self,
        servers: NatsServers,
        directory: Path,
        module: str = "",
        urls_of: Callable[[str], Sequence[str]] = lambda name: (),
        listeners: Sequence[str] = (),
        settings: Sequence[str] = (),
    ) -> None:
        self.servers = servers
        self.nodes = [ClusterNode(name, directory, servers, urls_of(name), listeners, settings) for name in NAMES]
        for node in self.nodes:
            node.from_scratch = bool(module)
            node.module = module
        self._random = Random()

    def start(self) -> "GatewayCluster":
        """Start every server and node that does not run, side by side, and wait for a leader."""
        for server in self.servers.servers:
            if server._process is None:
                server.start()
        self.servers.wait_until_ready()
        started = [node for node in self.nodes if node._child is None]
        for node in started:
            node._spawn(())
        for node in started:
            node.wait_until_ready()
        self.leader()
        return self

    def all_joined(self) -> "GatewayCluster":
        """Wait until the leader sees all nodes: one that was killed and started again takes some seconds."""
        wait_until(
            lambda: {each["name"] for each in get(self.leader(), "nodes") if each["running"]} >= self._names, self.logs
        )
        return self

    @property
    def _names(self) -> set[str]:
        return {node.name for node in self.nodes}

    def find_leader(self) -> ClusterNode | None:
        """Return the running node that leads the highest epoch."""
        found = [node for node in self.nodes if node.is_running and node.led_epoch]
        return max(found, key=lambda node: node.led_epoch, default=None)

    def leader(self, after: int = 0) -> ClusterNode:
        """Wait for a leader, of a later epoch than ``after``, and return it."""

        def found() -> ClusterNode | None:
            node = self.find_leader()
            return node if node is not None and node.led_epoch > after else None

        node = wait_until(found, lambda: f"no node leads:\n{self.logs()}", timeout_s=TAKEOVER_S)
        assert node is not None
        return node

    def follower(self) -> ClusterNode:
        """Return a running node that does not lead."""
        leader = self.leader()
        return next(node for node in self.nodes if node is not leader and node.is_running)

    def logs(self) -> str:
        """Return the ends of all logs."""
        return "\n".join(f"== {node.name}\n{node.log[-3000:]}" for node in self.nodes if node._log.exists())

    def answering(self) -> ClusterNode | None:
        """Return one of the nodes that greet a client now; ``None`` if none does."""
        sockets: dict[socket.socket, ClusterNode] = {}
        for node in self.nodes:
            if not node.is_running or not node.addresses:
                continue
            try:
                asked = socket.create_connection(node.addresses["amqp"], _GREETING_S)
                asked.sendall(_PROTOCOL_HEADER)
            except OSError:
                continue
            sockets[asked] = node
        try:
            greeted = _greeted(list(sockets), self._first_wait())
            return sockets[self._random.choice(greeted)] if greeted else None
        finally:
            for each in sockets:
                each.close()

    def _first_wait(self) -> float:
        return _GREETING_S

    def kill_all(self) -> None:
        """Kill all nodes at once."""
        running = [node for node in self.nodes if node._child is not None]
        for node in running:
            node.child.kill()
        for node in running:
            node.kill()

    def log_leader(self) -> NatsServer:
        """Return the server that leads the stream of the log."""

        def found() -> str:
            return next((leader for each in self._copies_of_log() if (leader := each["cluster"].get("leader"))), "")

        return self.servers.named(wait_until(found, "the stream of the log has no leader"))

    def log_span(self) -> tuple[int, int]:
        """Return the first and the last sequence in the log.

        The stream begins with the record of the log's owner, which stays where it is however much is purged.
        """
        states = [each["state"] for each in self._copies_of_log()]
        first = min(int(state["last_seq"]) - int(state["messages"]) + 2 for state in states)
        return first, max(int(state["last_seq"]) for state in states)

    def are_copies_equal(self) -> bool:
        """Whether all servers have the same records of the log."""
        states = [each["state"] for each in self._copies_of_log()]
        spans = {(state["first_seq"], state["last_seq"], state["messages"]) for state in states}
        return len(states) == len(self.servers.servers) and len(spans) == 1

    def _copies_of_log(self) -> Iterator[Mapping[str, Any]]:
        for server in self.servers.servers:
            if server._process is None:
                continue
            for account in server.monitor("/jsz?streams=true").get("account_details", ()):
                yield from (each for each in account.get("stream_detail", ()) if each["name"] == _LOG_STREAM)

    def end(self) -> None:
        """Ensure that no process is left."""
        for node in self.nodes:
            node.end()


def _greeted(sockets: list[socket.socket], timeout_s: float) -> list[socket.socket]:
    """Return the sockets on which a broker greets."""
    readable = select(sockets, [], [], timeout_s)[0] if sockets else []
    greeted = []
    for each in readable:
        try:
            if each.recv(1):
                greeted.append(each)
        except OSError:
            continue
    return greeted


@contextmanager
def running_cluster(
    module: str = "", listeners: Sequence[str] = (), settings: Sequence[str] = ()
) -> Iterator[GatewayCluster]:
    """Run servers and nodes for a while; ``module`` is run instead of ``gateway``."""
    directory = Path(tempfile.mkdtemp(prefix="gateway-nodes-"))
    with running_servers() as servers:
        cluster = GatewayCluster(servers, directory, module, listeners=listeners, settings=settings)
        try:
            yield cluster.start()
        finally:
            cluster.end()
            shutil.rmtree(directory, ignore_errors=True)


def seconds_until(condition: Callable[[], object], failure: Callable[[], str], timeout_s: float = TAKEOVER_S) -> float:
    """Wait for a condition; return how long it took."""
    begin_s = time.monotonic()
    wait_until(condition, failure, timeout_s=timeout_s)
    return time.monotonic() - begin_s
