"""The ports of a member: served by its node while it leads, else forwarded to the leader."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from gateway.config import Settings
from gateway.kernel.clock import Clock
from gateway.kernel.errors import ConfigurationError
from gateway.logs import StructuredLog
from gateway.net.forwarding.passing import ForwardingCounts, ForwardingFactory
from gateway.net.forwarding.taking import ForwardedFactory
from gateway.net.listeners import Listeners
from gateway.node.ports import bind_ports

_log: Final = StructuredLog("cluster")

#: The name of the listener for connections that other nodes forward.
INTERNAL: Final = "cluster"

#: The pause before the ports are bound again, and between two attempts, in seconds.
_AGAIN_S: Final = 0.1


class MemberPorts:
    """The bound ports of one member. ``leader`` returns the address at which the leader takes connections."""

    def __init__(
        self,
        settings: Settings,
        reactor: Any,  # Any: Twisted's interfaces are not types
        clock: Clock,
        leader: Callable[[], tuple[str, int] | None],
    ) -> None:
        self._settings = settings
        self._reactor = reactor
        self._clock = clock
        self._leader = leader
        self._clients = Listeners(reactor, clock, settings.bind)
        self._internal = Listeners(reactor, clock, settings.bind)
        self._secret = ""
        self._leads = self._is_closed = False
        self.forwarding_counts = ForwardingCounts()

    @property
    def addresses(self) -> Mapping[str, tuple[str, int]]:
        """The addresses for clients: listener name to (host, port)."""
        return self._clients.addresses

    @property
    def internal_port(self) -> int:
        """The port for connections that other nodes forward."""
        return self._internal.addresses[INTERNAL][1]

    def bind(self) -> None:
        """Bind all ports. :raises ConfigurationError: if one cannot be bound."""
        bind_ports(self._settings, self._clients)
        self._internal.bind(INTERNAL, self._settings.cluster.port)

    def serve_forwarding(self, secret: str) -> None:
        """Take connections of other nodes that know the secret, while this one leads."""
        self._secret = secret
        self._internal.serve(INTERNAL, ForwardedFactory(secret, self._served, self._clock))

    def _served(self) -> Mapping[str, Any]:
        """Return the factories of the listeners, while this node leads."""
        return self._clients.served() if self._leads else {}

    def follow(self) -> None:
        """Forward the connections of clients to the leader."""
        self._leads = False
        for name in self._clients.addresses:
            factory = ForwardingFactory(
                name, self._secret, self._leader, self._reactor, self._clock, self.forwarding_counts
            )
            self._clients.serve(name, factory)

    def lead(self) -> None:
        """Take connections that other nodes forward: the node serves the listeners now."""
        self._leads = True

    def handed_over(self) -> Listeners:
        """Return the listeners for clients, which a node serves and closes."""
        return self._clients

    def bind_again(self, bound: Callable[[], None]) -> None:
        """Bind the ports that a node has closed, at their numbers, and call ``bound``."""
        self._leads = False
        former = dict(self._clients.addresses) | self._clients.suspended
        self._reactor.callLater(_AGAIN_S, self._bind_again, former, bound)

    def _bind_again(self, former: Mapping[str, tuple[str, int]], bound: Callable[[], None]) -> None:
        if self._is_closed:
            return
        listeners = Listeners(self._reactor, self._clock, self._settings.bind)
        try:
            for name, (host, port) in former.items():
                listeners.bind(name, port, host)
        except ConfigurationError as error:
            listeners.close()
            _log.warning("ports cannot be bound yet", reason=str(error))
            self._reactor.callLater(_AGAIN_S, self._bind_again, former, bound)
            return
        self._clients = listeners
        bound()

    def close(self) -> None:
        """Close all ports."""
        self._is_closed = True
        self._leads = False
        self._clients.close()
        self._internal.close()
