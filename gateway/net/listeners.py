"""The listening ports: bound at the start, closed at the end."""

import errno
import socket
from collections.abc import Callable
from typing import Any, Final

from twisted.internet.error import CannotListenError
from twisted.internet.protocol import Factory
from twisted.protocols.tls import TLSMemoryBIOFactory

from gateway.kernel.clock import Clock
from gateway.kernel.errors import ConfigurationError
from gateway.net.descriptors import DescriptorGate
from gateway.net.proxied import ProxiedFactory

#: The accept backlog: large enough for many clients that reconnect at the same time.
_BACKLOG: Final = 1024

ANY_HOST: Final = "*"

#: Time limit for a proxy's PROXY header, in seconds.
_PROXY_TIMEOUT_S: Final = 10


class Listeners:
    """The bound ports. ``addresses`` maps listener name to (host, port), in the order of binding.

    A suspended listener is closed and can be opened again at its port; ``suspended`` has its (host, port).
    """

    def __init__(self, reactor: Any, clock: Clock, host: str) -> None:  # Any: Twisted's interfaces are not types
        self.addresses: dict[str, tuple[str, int]] = {}
        self.suspended: dict[str, tuple[str, int]] = {}
        self._reactor = reactor
        self._clock = clock
        self._host = host
        self._ports: dict[str, Any] = {}
        self._served: dict[str, Any] = {}  # the factories of suspended listeners
        self._passed_on: dict[str, Any] = {}  # the factories of connections whose layers end at another node

    def bind(self, name: str, port: int, host: str = "") -> None:
        """Bind a port of ``host``, by default that of all listeners; port 0 takes any free one.

        Clients that connect wait until ``serve``.

        :raises ConfigurationError: when the port cannot be bound.
        """
        self._bind(
            name, lambda host: self._reactor.listenTCP(port, Factory(), _BACKLOG, host), port, host or self._host
        )

    def serve(
        self,
        name: str,
        factory: Factory,
        tls: Any = None,
        *,
        is_proxied: bool = False,
        passed_on: Factory | None = None,
    ) -> None:
        """Accept connections at a bound port.

        The order of the layers is: PROXY header, TLS, then the protocol of ``factory``. Connections that another node
        passes on have none of them; their factory is ``passed_on`` if it is another one.
        """
        self._passed_on[name] = DescriptorGate(name, passed_on or factory)
        layers: Any = factory
        if tls is not None:
            layers = TLSMemoryBIOFactory(tls, False, layers, self._reactor)
        if is_proxied:
            layers = ProxiedFactory(layers, self._clock, _PROXY_TIMEOUT_S)
        self._accept(name, DescriptorGate(name, layers))

    def listen(self, name: str, port: int, factory: Factory, tls: Any = None, *, is_proxied: bool = False) -> None:
        """Bind a port and accept connections at once. :raises ConfigurationError: when the port cannot be bound."""
        self.bind(name, port)
        self.serve(name, factory, tls, is_proxied=is_proxied)

    def suspend(self, name: str) -> None:
        """Close a port, so that clients are refused; its connections stay open."""
        bound = self._ports.pop(name)
        self._served[name] = bound.factory
        bound.stopListening()
        self.suspended[name] = self.addresses.pop(name)

    def resume(self, name: str) -> None:
        """Open a suspended port again. :raises ConfigurationError: when another process uses it."""
        self.bind(name, self.suspended[name][1])
        del self.suspended[name]
        self._accept(name, self._served.pop(name))

    def served(self) -> dict[str, Any]:
        """Return the factories for connections that another node passes on, by open listener."""
        return {name: self._passed_on[name] for name in self._ports if name in self._passed_on}

    def close(self) -> None:
        """Close all ports."""
        for port in self._ports.values():
            port.stopListening()
        self._ports.clear()

    def _accept(self, name: str, factory: Any) -> None:
        bound = self._ports[name]
        bound.factory = factory
        factory.doStart()
        bound.startReading()

    def _bind(self, name: str, listen: Callable[[str], Any], port: int, address: str) -> None:
        try:
            bound = self._bind_every_interface(listen) if address == ANY_HOST else listen(address)
        except CannotListenError as error:
            reason = error.socketError.strerror if isinstance(error.socketError, OSError) else error.socketError
            raise ConfigurationError(f"{name}.port: cannot listen on {address}:{port}: {reason}") from None
        bound.stopReading()
        self._ports[name] = bound
        self.addresses[name] = (address, bound.getHost().port)

    def _bind_every_interface(self, listen: Callable[[str], Any]) -> Any:
        """Bind IPv6, which includes IPv4; bind IPv4 alone on a machine without IPv6."""
        try:
            return listen("::")
        except CannotListenError as error:
            if getattr(error.socketError, "errno", None) in (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL):
                return listen("0.0.0.0")
            raise


def address_text(address: tuple[str, int]) -> str:
    """Return an address as text for a log line."""
    host, port = address
    if host == ANY_HOST:
        return f"port {port} of every interface"
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def plain_host(host: str) -> str:
    """Return a peer's host as text: an IPv4 peer of an IPv6 socket by its IPv4 address."""
    mapped = "::ffff:"
    if host.startswith(mapped) and "." in host:
        try:
            return socket.inet_ntoa(socket.inet_aton(host.removeprefix(mapped)))
        except OSError:
            return host
    return host
