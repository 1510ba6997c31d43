"""The leader's side: takes connections of clients from other nodes, and passes them to their listeners."""

from collections.abc import Callable, Mapping
from typing import Any, Final
from weakref import WeakKeyDictionary

from twisted.internet.interfaces import IAddress
from twisted.internet.protocol import Factory, Protocol, connectionDone
from twisted.protocols.tls import TLSMemoryBIOFactory
from twisted.python.failure import Failure

from gateway.kernel.clock import Clock
from gateway.kernel.errors import ProtocolViolation
from gateway.logs import StructuredLog
from gateway.logs.rate_limit import RateLimit
from gateway.net.forwarding.introduction import TAKEN, Introduction, parse_introduction
from gateway.net.forwarding.node_tls import HANDSHAKE
from gateway.net.forwarding.routing import FIRST_CELL
from gateway.net.hangup import keep_alive
from gateway.net.proxied import ProxiedFactory, hand_over

_log: Final = StructuredLog("forwarding")

#: The time limit of a node's introduction and PROXY header, in seconds.
TIMEOUT_S: Final = 10.0

#: Seconds between two log lines about refused connections from one host.
_LOG_INTERVAL_S: Final = 60.0


class ForwardedConnection(Protocol):
    """Reads the introduction of one connection, then hands the transport over."""

    def __init__(self, factory: "ForwardedFactory", address: IAddress | None) -> None:
        self._factory = factory
        self._address = address
        self._data = b""

    def connectionMade(self) -> None:
        """Start the time limit; refuse at once while this node does not lead."""
        transport: Any = self.transport
        self._deadline = self._factory.clock.call_later(TIMEOUT_S, lambda: self._refuse("no introduction in time"))
        if not self._factory.leads():
            transport.abortConnection()

    def dataReceived(self, data: bytes) -> None:
        """Handle the bytes of the introduction, and any that follow it. TLS may come before it."""
        if not self._data and data[0] == HANDSHAKE and self._factory.tls is not None:
            self._deadline.cancel()
            inner: Any = self._factory
            secured = TLSMemoryBIOFactory(self._factory.tls, False, inner)
            hand_over(self.transport, secured.buildProtocol(self._address), data)
            return
        self._data += data
        try:
            found = parse_introduction(self._data, self._factory.secret)
        except ProtocolViolation as violation:
            self._refuse(str(violation))
            return
        if found is not None:
            self._deadline.cancel()
            self._hand_over(found, self._data[found.size :])

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Cancel the time limit."""
        self._deadline.cancel()

    def _hand_over(self, introduction: Introduction, rest: bytes) -> None:
        listener = introduction.listener
        served = self._factory.served(introduction.cell).get(listener)
        transport: Any = self.transport
        if served is None:  # the nodes have other settings, or this one stopped to lead just now
            self._refuse(f"listener {listener} is not served here")
            return
        if self._factory.is_closed(introduction.node, listener):
            self._refuse(f"{introduction.node} is drained")
            return
        self._factory.nodes[transport] = introduction.node
        keep_alive(transport)
        transport.introduced = introduction.client
        transport.is_resumed = introduction.is_resumed
        transport.is_kept = self._factory.is_kept(listener)
        transport.write(TAKEN)
        hand_over(transport, ProxiedFactory(served, self._factory.clock, TIMEOUT_S).buildProtocol(self._address), rest)

    def _refuse(self, reason: str) -> None:
        transport: Any = self.transport
        peer = transport.getPeer()
        left_out = self._factory.limit.passes(peer.host)
        if left_out is not None:
            where = f"{peer.host}:{peer.port}"
            _log.info("forwarded connection refused", peer=where, reason=reason, repeated=left_out)
        transport.abortConnection()


class ForwardedFactory(Factory):
    """Takes connections of nodes that know the ``secret``.

    ``served`` returns the factories of a cell's listeners, without TLS and WebSocket, which end at the client's node;
    none while this node does not lead it. ``leads`` tells whether it leads any. ``tls`` has the certificate for nodes
    that use TLS.
    ``is_closed`` tells from a node and a listener whether no client may come that way; ``is_kept`` from a listener
    whether its clients outlive this leader.
    """

    noisy = False

    def __init__(
        self,
        secret: str,
        served: Callable[[int], Mapping[str, Any]],  # Any: Twisted's factories share no type
        clock: Clock,
        is_closed: Callable[[str, str], bool] = lambda node, listener: False,
        is_kept: Callable[[str], bool] = lambda listener: False,
        tls: Any = None,
        leads: Callable[[], bool] | None = None,
    ) -> None:
        self.secret = secret
        self.served = served
        self.leads: Callable[[], bool] = leads or (lambda: bool(served(FIRST_CELL)))
        self.clock = clock
        self.is_closed = is_closed
        self.is_kept = is_kept
        self.tls = tls
        #: The connections that were taken, by their transports, and who forwards them.
        self.nodes: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
        self.limit = RateLimit(1, _LOG_INTERVAL_S)

    def buildProtocol(self, addr: IAddress | None) -> ForwardedConnection:
        """Return the protocol that reads the introduction of a new connection."""
        return ForwardedConnection(self, addr)
