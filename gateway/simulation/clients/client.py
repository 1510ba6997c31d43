"""The base of the clients: a name, and at most one connection at a time."""

from gateway.simulation.clients.errors import Lost
from gateway.simulation.network.connection import SimulatedConnection
from gateway.simulation.network.network import PortClosed
from gateway.simulation.network.pipe import LinkQuality
from gateway.simulation.scene import Scene


class SimulatedClient:
    """One client; a subclass adds the protocol.

    ``link`` is the quality of its connections; ``None`` lets the network choose.
    """

    def __init__(self, scene: Scene, name: str, link: LinkQuality | None = None) -> None:
        self.scene = scene
        self.name = name
        self.link = link
        self._connection: SimulatedConnection | None = None

    @property
    def is_connected(self) -> bool:
        """Whether the connection is open."""
        return self._connection is not None

    async def connect(self) -> object:
        """Connect and log in. :raises Lost: if that fails."""
        raise NotImplementedError

    def pause(self, is_paused: bool) -> None:
        """Stop reading from the broker, or resume it."""
        if self._connection is not None:
            self._connection.pause(is_paused)

    def drop(self) -> None:
        """Close the connection without a word."""
        if self._connection is not None:
            self._connection.close()

    def received(self, data: bytes) -> None:
        """Handle bytes of the broker."""
        raise NotImplementedError

    def closed(self) -> None:
        """Handle the end of the connection."""
        raise NotImplementedError

    def _open(self, listener: str) -> SimulatedConnection:
        """Connect to a listener. :raises Lost: if the node is down, or does not listen."""
        port = self.scene.process.ports.get(listener)
        if port is None:
            raise Lost("the node is down")
        try:
            self._connection = self.scene.network.connect(port, self, self.link)
        except PortClosed as error:
            raise Lost(str(error)) from None
        return self._connection
