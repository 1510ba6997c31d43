"""The ports of a member: served by its node while it leads, else forwarded to the leader."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from gateway.cluster.queue_log import QueueId
from gateway.config import Settings
from gateway.config.live import with_live_of
from gateway.kernel.clock import Clock
from gateway.kernel.errors import ConfigurationError
from gateway.logs import StructuredLog
from gateway.management.cluster_state import CLIENTS_NOT_RESUMED, CLIENTS_RESUMED
from gateway.management.http.not_ready import NotReadyApi
from gateway.management.web.factory import HttpFactory
from gateway.net.certificates import TlsContext
from gateway.net.forwarding.counts import ForwardingCounts
from gateway.net.forwarding.link import AnsweringNode
from gateway.net.forwarding.node_tls import NodeTls
from gateway.net.forwarding.passing import ForwardingFactory
from gateway.net.forwarding.resumable import Resumable
from gateway.net.forwarding.routing import Directions, Leader
from gateway.net.forwarding.taking import ForwardedFactory
from gateway.net.forwarding.unbound_listeners import UnboundListeners
from gateway.net.listeners import Listeners
from gateway.node.http import MANAGEMENT, MANAGEMENT_TLS, http_limits
from gateway.node.metrics import PROMETHEUS_TLS
from gateway.node.ports import bind_ports
from gateway.node.protocols import LISTENERS

_log: Final = StructuredLog("cluster")

#: The name of the listener for connections that other nodes forward.
INTERNAL: Final = "cluster"

#: The pause before the ports are bound again, and between two attempts, in seconds.
_AGAIN_S: Final = 0.1

#: The pause before a port that another process has is tried again, in seconds.
_RETRY_S: Final = 1.0

#: How long a client of a drained node may take to close its connection, in seconds.
_NOTICE_S: Final = 10.0

#: The listeners of clients by name. A drained node closes them, and their clients outlive a leader; not so the API.
_FOR_CLIENTS: Final = {listener.name: listener for listener in LISTENERS}

#: The listeners of the HTTP API.
_MANAGEMENT: Final = frozenset((MANAGEMENT, MANAGEMENT_TLS))

#: The further listeners that use TLS.
_WITH_TLS: Final = frozenset((MANAGEMENT_TLS, PROMETHEUS_TLS))


class MemberPorts:
    """The bound ports of one member.

    ``leader`` returns the leader of a cell. ``fault`` returns why this node cannot know of one, empty if it could.
    ``tls`` is the certificate of this node. With one cell the node that leads serves the ports itself, unless the
    settings say that it keeps its clients. With several (``is_shared``) they are always passed on, also to leaders on
    this node.
    """

    def __init__(
        self,
        settings: Settings,
        reactor: Any,  # Any: Twisted's interfaces are not types
        clock: Clock,
        leader: Callable[[int], Leader | None],
        fault: Callable[[], str],
    ) -> None:
        self._settings = settings
        self._reactor = reactor
        self._clock = clock
        self._leader = leader
        self._fault = fault
        self.tls = NodeTls(settings.node)
        self._tls_context: TlsContext | None = None
        self._clients = Listeners(reactor, clock, settings.bind)
        self._internal = Listeners(reactor, clock, settings.bind)
        self._secret = ""
        self._directions: Directions | None = None
        self._keeps_clients = settings.cluster.keep_clients
        #: The listeners that nodes of cells serve, and those of them that have started.
        self._handed_over: dict[int, Listeners] = {}
        self._served_by_cell: dict[int, Listeners] = {}
        self._follows = self._is_closed = self._is_drained = False
        self._forwarding: dict[str, ForwardingFactory] = {}
        self._taking: ForwardedFactory | None = None
        self.forwarding_counts = ForwardingCounts()
        #: Answers some requests to the management ports while they are passed on.
        self.answering: AnsweringNode | None = None

    @property
    def is_shared(self) -> bool:
        """See the class."""
        return self._directions is not None

    @property
    def passes_own_on(self) -> bool:
        """Whether clients are passed on to leaders on this node, too, so that they outlive these."""
        return self.is_shared or self._keeps_clients

    def share(self, directions: Directions) -> None:
        """Pass clients on to the cells of their virtual hosts; called before anything is served."""
        self._directions = directions

    @property
    def addresses(self) -> Mapping[str, tuple[str, int]]:
        """The addresses for clients: listener name to (host, port)."""
        return self._clients.addresses

    @property
    def internal_port(self) -> int:
        """The port for connections that other nodes forward."""
        return self._internal.addresses[INTERNAL][1]

    def figures(self) -> dict[str, int]:
        """Return how many clients went on with another leader, and how many could not."""
        counts = self.forwarding_counts
        return {CLIENTS_RESUMED: counts.resumed, CLIENTS_NOT_RESUMED: counts.not_resumed}

    def bind(self) -> None:
        """Bind all ports. :raises ConfigurationError: if one cannot be bound, or the certificate cannot be read."""
        if self._settings.tls.certificate is not None:
            self._tls_context = TlsContext(self._settings.tls)
        bind_ports(self._settings, self._clients)
        self._internal.bind(INTERNAL, self._settings.cluster.port)

    def serve_forwarding(self, secret: str, is_drained: Callable[[str], bool]) -> None:
        """Take connections of other nodes that know the secret, while this one leads.

        ``is_drained`` tells whether a node takes no clients now.
        """
        self._secret = secret

        def is_closed(node: str, listener: str) -> bool:
            return listener in _FOR_CLIENTS and is_drained(node)

        kept = _FOR_CLIENTS.__contains__
        self._taking = ForwardedFactory(
            secret, self._served, self._clock, is_closed, kept, self.tls.server, self._leads_any
        )
        self._internal.serve(INTERNAL, self._taking)

    def forwarded_by(self, node: str) -> list[tuple[Any, Any]]:  # Any: Twisted's addresses
        """Return the addresses of the clients that a node forwards: of the client, and of the port that it uses."""
        if self._taking is None:
            return []
        forwarded = [transport for transport, name in self._taking.nodes.items() if name == node]
        return [(transport.getPeer(), transport.getHost()) for transport in forwarded]

    def _leads_any(self) -> bool:
        return bool(self._served_by_cell)

    def _served(self, cell: int) -> Mapping[str, Any]:
        """Return the factories of the listeners of a cell, while this node leads it."""
        listeners = self._served_by_cell.get(cell)
        return {} if listeners is None else listeners.served()

    def follow(self) -> None:
        """Forward the connections of clients to the leader."""
        self._follows = True
        for name in self._clients.addresses:
            self._forwarding[name] = factory = self._forwarding_of(name)
            listener = _FOR_CLIENTS.get(name)
            if listener is None:
                self._clients.serve(name, factory, self._tls_context if name in _WITH_TLS else None)
                continue
            layered = listener.layered(factory, self._clock, self._settings)
            tls, is_proxied = self._tls_context if listener.is_tls else None, listener.is_proxied(self._settings)
            self._clients.serve(name, layered, tls, is_proxied=is_proxied)
        if self._is_drained:
            self._suspend()

    def _forwarding_of(self, name: str) -> ForwardingFactory:
        """Return the factory that passes the connections of a listener on."""

        def resumable() -> Resumable | None:
            listener = _FOR_CLIENTS.get(name)
            return None if listener is None else listener.protocol.resumable(self._settings)

        factory = ForwardingFactory(
            name,
            self._secret,
            self._leader,
            self._reactor,
            self._clock,
            self.forwarding_counts,
            self._settings.node,
            resumable,
            self.tls.client,
            self._settings.cluster.hold_s,
            None if name in _FOR_CLIENTS else self._refusing(),
            self._fault,
            self._directions,
        )
        factory.answering = self.answering if name in _MANAGEMENT else None
        return factory

    def _refusing(self) -> HttpFactory:
        """Return the factory of the API while no node leads."""
        api = NotReadyApi(lambda: {"status": "failed", "reason": self._fault() or "no node of the cluster leads"})
        return HttpFactory(api, http_limits(self._settings), self._reactor)

    def renewed(self, settings: Settings) -> Callable[[], None]:
        """Read the certificates again; return a function that uses them, and the settings, for new connections.

        :raises ConfigurationError: if a file is missing or invalid.
        """
        context = self._tls_context
        has_tls = context is not None and settings.tls.certificate is not None
        renew = context.renewed(settings.tls) if context is not None and has_tls else lambda: None

        def use() -> None:
            renew()
            self._settings = with_live_of(self._settings, settings)

        return use

    def drain(self) -> None:
        """Close the listeners of clients while this node follows; the leader closes the connections."""
        self._is_drained = True
        if self._follows:
            self._suspend()

    def _suspend(self) -> None:
        for name in _FOR_CLIENTS.keys() & self._clients.addresses.keys():
            self._clients.suspend(name)
            self._forwarding[name].refuse_waiting()
        self._reactor.callLater(_NOTICE_S, self._close_clients)

    def _close_clients(self) -> None:
        if self._is_drained and self._follows:
            for name in self._clients.suspended:
                self._forwarding[name].close_clients()

    def revive(self) -> None:
        """Open the listeners of clients again."""
        self._is_drained = False
        self._resume()

    def _resume(self) -> None:
        if self._is_drained or self._is_closed or not self._follows:
            return
        try:
            for name in tuple(self._clients.suspended):
                self._clients.resume(name)
        except ConfigurationError as error:
            _log.warning("ports cannot be bound yet", reason=str(error))
            self._reactor.callLater(_RETRY_S, self._resume)

    def lead(self, cell: QueueId) -> None:
        """Take connections that nodes forward: the node of the cell serves the listeners now."""
        self._served_by_cell[cell] = self._handed_over[cell]

    def handed_over(self, cell: QueueId) -> Listeners:
        """Return the listeners for clients, which the node of a cell serves and closes."""
        if self.passes_own_on:
            listeners: Listeners = UnboundListeners(self._reactor, self._clock, self._all_addresses)
        else:
            self._follows = False
            listeners = self._clients
        self._handed_over[cell] = listeners
        return listeners

    @property
    def _all_addresses(self) -> dict[str, tuple[str, int]]:
        """The addresses of the listeners, also of those that are closed during a maintenance."""
        return dict(self._clients.addresses) | self._clients.suspended

    def taken_back(self, cell: QueueId) -> None:
        """Bind the ports that the node of a cell has closed, at their numbers, and follow."""
        self._served_by_cell.pop(cell, None)
        if not self.passes_own_on:
            self._reactor.callLater(_AGAIN_S, self._bind_again, self._all_addresses)

    def _bind_again(self, former: Mapping[str, tuple[str, int]]) -> None:
        if self._is_closed:
            return
        listeners = Listeners(self._reactor, self._clock, self._settings.bind)
        try:
            for name, (host, port) in former.items():
                listeners.bind(name, port, host)
        except ConfigurationError as error:
            listeners.close()
            _log.warning("ports cannot be bound yet", reason=str(error))
            self._reactor.callLater(_AGAIN_S, self._bind_again, former)
            return
        self._clients = listeners
        self.follow()

    def close(self) -> None:
        """Close all ports."""
        self._is_closed = True
        self._served_by_cell.clear()
        self._clients.close()
        self._internal.close()
