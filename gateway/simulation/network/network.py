"""The network between the clients and one process at a time."""

from gateway.simulation.network.connection import ClientEnd, SimulatedConnection
from gateway.simulation.network.pipe import LinkQuality
from gateway.simulation.world.reactor import SimulatedReactor
from gateway.simulation.world.world import World


class PortClosed(Exception):
    """No server listens at the port."""


class Network:
    """Owns the connections. ``reactor`` is the process that listens, ``None`` while there is none."""

    def __init__(self, world: World) -> None:
        self.reactor: SimulatedReactor | None = None
        self.connections: list[SimulatedConnection] = []
        self._world = world
        self._next_client_port = 40_000

    def connect(self, port: int, client: ClientEnd, link: LinkQuality | None = None) -> SimulatedConnection:
        """Connect a client to a port, by default with a chosen quality. :raises PortClosed: if no server listens."""
        reactor = self.reactor
        if reactor is None or (listening := reactor.ports.get(port)) is None:
            raise PortClosed(f"connection to port {port} refused")
        self._next_client_port += 1
        link = link or LinkQuality.chosen(self._world.random)
        connection = SimulatedConnection(reactor, link, client, port, self._next_client_port)
        self.connections.append(connection)

        def accept() -> None:
            if listening.is_reading:
                connection.accept(listening.factory)
            else:
                listening.backlog.append(accept)

        self._world.schedule(self._world.random.uniform(0, link.most_delay_s), accept)
        return connection

    def open_connections(self) -> list[SimulatedConnection]:
        """Return the open connections, the oldest first."""
        self.connections = [connection for connection in self.connections if connection.is_open]
        return self.connections

    def process_ended(self) -> None:
        """Break the connections of a process that ended."""
        self.reactor = None
        for connection in self.open_connections():
            connection.cut(0)
