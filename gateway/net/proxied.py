"""Listeners behind a proxy: read the PROXY header, then pass the connection to the protocol."""

from typing import Any, Final

from twisted.internet.address import IPv4Address, IPv6Address
from twisted.internet.interfaces import IAddress
from twisted.internet.protocol import Factory, Protocol, connectionDone
from twisted.protocols.tls import TLSMemoryBIOProtocol
from twisted.python.failure import Failure

from gateway.kernel.clock import Clock
from gateway.kernel.errors import ProtocolViolation
from gateway.logs import StructuredLog
from gateway.net.proxy_header import Proxied, parse

_log: Final = StructuredLog("proxy")


class ProxiedProtocol(Protocol):
    """Reads one PROXY header, then hands the transport to the protocol, with the addresses in the header.

    Twisted's own wrapper stays between the two and sets the addresses only after ``connectionMade``.
    """

    def __init__(self, factory: "ProxiedFactory", address: IAddress | None) -> None:
        self._factory = factory
        self._address = address
        self._data = b""

    def connectionMade(self) -> None:
        """Start the time limit of the header."""
        self._deadline = self._factory.clock.call_later(self._factory.timeout_s, self._timed_out)

    def dataReceived(self, data: bytes) -> None:
        """Handle the bytes of the header, and any that follow it."""
        self._data += data
        try:
            header = parse(self._data)
        except ProtocolViolation as violation:
            self._refuse(str(violation))
            return
        if header is not None:
            self._deadline.cancel()
            self._hand_over_transport(header, self._data[header.size :])

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Cancel the time limit: the proxy disconnected before its header was complete."""
        self._deadline.cancel()

    def _timed_out(self) -> None:
        self._refuse("no PROXY header in time")

    def _hand_over_transport(self, header: Proxied, rest: bytes) -> None:
        transport: Any = self.transport
        client = self._factory.wrapped.buildProtocol(self._address)
        if client is None:
            transport.abortConnection()
            return
        if header.source is not None and header.destination is not None:
            # the transport itself, so that TLS and direct writes to the socket work as usual
            source, destination = _address(header.source), _address(header.destination)
            transport.getPeer, transport.getHost = lambda: source, lambda: destination
        hand_over(transport, client, rest)

    def _refuse(self, reason: str) -> None:
        transport: Any = self.transport
        peer = transport.getPeer()
        _log.info("proxy connection refused", peer=f"{peer.host}:{peer.port}", reason=reason)
        transport.abortConnection()


def hand_over(transport: Any, protocol: Any, rest: bytes) -> None:  # Any: Twisted's transports share no type
    """Let a protocol have a transport from now on, and the bytes that were read for it already."""
    if isinstance(transport, TLSMemoryBIOProtocol):
        transport.wrappedProtocol = protocol
    else:
        transport.protocol = protocol
    protocol.makeConnection(transport)
    if rest:
        protocol.dataReceived(rest)


def _address(pair: tuple[str, int]) -> IPv4Address | IPv6Address:
    host, port = pair
    return IPv6Address("TCP", host, port) if ":" in host else IPv4Address("TCP", host, port)


class ProxiedFactory(Factory):
    """Expects a PROXY header before the protocol of the ``wrapped`` factory, TLS included."""

    noisy = False

    def __init__(self, wrapped: Any, clock: Clock, timeout_s: float) -> None:  # Any: Twisted's factories share no type
        self.wrapped = wrapped
        self.clock = clock
        self.timeout_s = timeout_s

    def buildProtocol(self, addr: IAddress | None) -> ProxiedProtocol:
        """Return the protocol that reads the header of a new connection."""
        return ProxiedProtocol(self, addr)
