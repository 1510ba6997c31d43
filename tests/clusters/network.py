"""The network between servers and nodes, which a test cuts, or makes slow: a TCP proxy for each pair.

Lost packets are those that TCP sends again, so the bytes of a cut wait in the proxy, and arrive after the healing. It
needs no rights, unlike network namespaces, so it works wherever the tests run.
"""

import asyncio
import shutil
import socket
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from typing import Final

from tests.clusters.gateway_cluster import NAMES, GatewayCluster
from tests.jetstream.nats_servers import NatsServers

_CHUNK: Final = 65_536

#: The pause between two looks whether a cut is healed, in seconds.
_LOOK_S: Final = 0.01

Way = tuple[str, str]
"""The names of a source and of a target."""


class Network:
    """The lines between all servers, and from each node to each server. Owns a thread with all proxies."""

    def __init__(self, servers: NatsServers) -> None:
        self._cut: frozenset[Way] = frozenset()
        self._delays: dict[Way, float] = {}
        self._names = [*NAMES, *(server.name for server in servers.servers)]
        self._listeners: list[tuple[Way, socket.socket, int]] = []
        self._urls: dict[str, list[str]] = {name: [] for name in NAMES}
        self._servers = servers.servers
        # Servers tell each other how to reach the rest. Nothing listens at this address, so they keep to the proxies.
        self._nowhere = socket.socket()
        self._nowhere.bind(("127.0.0.1", 0))
        told = f", no_advertise: true, advertise: 127.0.0.1:{self._nowhere.getsockname()[1]}"
        self._loop = asyncio.new_event_loop()
        self._is_over = asyncio.Event()
        for server in servers.servers:
            others = [other for other in servers.servers if other is not server]
            server.routes = [self._line((server.name, other.name), other.route_port) for other in others]
            server.route_settings = told
            for name in NAMES:
                self._urls[name].append(f"nats://127.0.0.1:{self._line((name, server.name), server.port)}")
        self._is_ready = Event()
        self._thread = Thread(target=self._loop.run_until_complete, args=(self._serve(),), daemon=True)
        self._thread.start()
        self._is_ready.wait()

    def urls_of(self, name: str) -> list[str]:
        """Return the URLs by which a node uses the servers."""
        return self._urls[name]

    def detours(self) -> list[str]:
        """Return the routes that servers have taken around the proxies; a cut does not concern these."""
        real = {server.route_port: server.name for server in self._servers}
        return [
            f"{server.name} to {real[route['port']]}"
            for server in self._servers
            for route in server.monitor("/routez")["routes"]
            if route["port"] in real
        ]

    # Faults

    def isolate(self, *names: str) -> None:
        """Cut some servers and nodes from all others, in both directions."""
        others = [name for name in self._names if name not in names]
        self.cut((*ways_between(names, others), *ways_between(others, names)))

    def cut(self, ways: Iterable[Way]) -> None:
        """Let nothing pass in these directions; all others are whole."""
        self._cut = frozenset(ways)

    def slow_down(self, name: str, seconds: float) -> None:
        """Delay what a server and the other servers send each other."""
        others = [other for other in self._names if other not in (name, *NAMES)]
        self._delays = dict.fromkeys((*ways_between([name], others), *ways_between(others, [name])), seconds)

    def heal(self) -> None:
        """Let everything pass at once."""
        self._cut = frozenset()
        self._delays = {}

    def others(self, *names: str) -> list[str]:
        """Return the names of all others."""
        return [name for name in self._names if name not in names]

    # The thread

    def _line(self, way: Way, port: int) -> int:
        listener = socket.create_server(("127.0.0.1", 0))
        self._listeners.append((way, listener, port))
        bound: int = listener.getsockname()[1]
        return bound

    async def _serve(self) -> None:
        for way, listener, port in self._listeners:

            async def pass_on(
                reader: asyncio.StreamReader, writer: asyncio.StreamWriter, way: Way = way, port: int = port
            ) -> None:
                await self._connected(way, port, reader, writer)

            await asyncio.start_server(pass_on, sock=listener)
        self._is_ready.set()
        await self._is_over.wait()

    async def _connected(self, way: Way, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            writer.close()
            return
        there = self._pass_on(way, reader, far_writer)
        await asyncio.gather(there, self._pass_on((way[1], way[0]), far_reader, writer))

    async def _pass_on(self, way: Way, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(_CHUNK):
                if delay_s := self._delays.get(way):
                    await asyncio.sleep(delay_s)
                while way in self._cut:
                    await asyncio.sleep(_LOOK_S)
                writer.write(data)
                await writer.drain()
        writer.close()

    def close(self) -> None:
        """End the thread, and with it all connections."""
        self._loop.call_soon_threadsafe(self._is_over.set)
        self._thread.join(10)
        for _, listener, _ in self._listeners:
            listener.close()
        self._nowhere.close()


def ways_between(sources: Iterable[str], targets: Iterable[str]) -> list[Way]:
    """Return the directions from each source to each target."""
    ends = list(targets)
    return [(source, target) for source in sources for target in ends]


@contextmanager
def running_network() -> Iterator[tuple[Network, GatewayCluster]]:
    """Run servers and nodes for a while, with a network between them."""
    directory = Path(tempfile.mkdtemp(prefix="gateway-network-"))
    servers = NatsServers(directory)
    network = Network(servers)
    cluster = GatewayCluster(servers, directory, urls_of=network.urls_of)
    try:
        servers.start()
        yield network, cluster.start()
    finally:
        cluster.end()
        servers.stop()
        network.close()
        shutil.rmtree(directory, ignore_errors=True)
