"""Maintenance: the listeners of clients are closed, and their connections are closed one after the other."""

from collections.abc import Callable
from typing import Any, Final

from gateway.kernel.broker.connections import Connections, Peer
from gateway.kernel.clock import Background, drained
from gateway.logs import StructuredLog
from gateway.net.listeners import Listeners

_log: Final = StructuredLog("node")

#: Sent to the clients of a drained node, as by RabbitMQ.
REASON: Final = "Node was put into maintenance mode"


class Maintenance:
    """Owns whether the node is drained. ``clients`` tests whether a listener is for clients of the broker.

    The state is kept in memory: a restarted node serves clients, as in RabbitMQ.
    """

    def __init__(
        self,
        listeners: Listeners,
        connections: Connections,
        background: Background,
        is_for_clients: Callable[[str], bool],
        touch: Callable[[], None],
    ) -> None:
        self.is_draining = False
        self._listeners = listeners
        self._connections = connections
        self._background = background
        self._is_for_clients = is_for_clients
        self._touch = touch
        self._generation = 0

    @property
    def shown(self) -> dict[str, Any]:
        """The state, as the API shows it."""
        return {
            "is_under_maintenance": self.is_draining,
            "suspended_listeners": sorted(self._listeners.suspended),
            "connections_left": len(self._connections),
        }

    def suspend(self) -> None:
        """Close the listeners of clients; their connections stay."""
        for name in [name for name in self._listeners.addresses if self._is_for_clients(name)]:
            self._listeners.suspend(name)

    def resume(self) -> None:
        """Open the closed listeners at the same ports. :raises ConfigurationError: if a port is in use."""
        for name in tuple(self._listeners.suspended):
            self._listeners.resume(name)

    def drain(self) -> None:
        """Close the listeners of clients, then their connections in slices."""
        self.is_draining = True
        self.suspend()
        self._generation += 1
        self._background.add(self._closing(self._generation))

    def revive(self) -> None:
        """Serve clients again. :raises ConfigurationError: if a port is in use; the node stays drained."""
        self.resume()
        self.is_draining = False
        self._generation += 1

    def _closing(self, generation: int) -> Any:
        """Close the connections, one in each step, unless the node is revived meanwhile."""
        peers: list[Peer] = list(self._connections)
        _log.info("draining", connections=len(peers))
        for peer in drained(peers):
            if generation != self._generation:
                return
            peer.force_close(REASON)
            self._touch()
            yield
        _log.info("drained", connections=len(self._connections))
