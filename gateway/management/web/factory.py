"""The HTTP listener: creates connections and owns their shared state."""

from collections.abc import Callable
from typing import Any, Final, Protocol

from twisted.internet.interfaces import IAddress
from twisted.internet.protocol import ServerFactory

from gateway.logs import StructuredLog
from gateway.logs.rate_limit import RateLimit
from gateway.management.http.errors import HttpError
from gateway.management.web.connection import HttpProtocol
from gateway.management.web.limits import ByteBudget, HttpLimits
from gateway.management.web.request import Request

_log: Final = StructuredLog("http")

#: Minimum interval between log lines about refusals of one status, in seconds.
LOG_INTERVAL_S: Final = 10.0


class Application(Protocol):
    """The application that answers requests."""

    def begin(self, request: Request) -> None:
        """Handle a request whose head was received: receive the body, or respond. Never raises."""
        ...


class HttpFactory(ServerFactory):
    """Accepts up to ``limits.max_connections`` clients.

    ``bodies`` is the memory of all requests' bodies. At the limit, a new connection replaces the one that has been idle
    for longest.
    """

    noisy = False

    def __init__(self, application: Application, limits: HttpLimits, reactor: Any) -> None:
        self.application = application
        self.limits = limits
        self.bodies = ByteBudget(limits.max_bodies_size)
        self.call_later: Callable[..., Any] = reactor.callLater
        self._refusals = RateLimit(1, LOG_INTERVAL_S, reactor.seconds)
        self._connections: set[HttpProtocol] = set()
        self._idle: dict[HttpProtocol, None] = {}

    def __len__(self) -> int:
        return len(self._connections)

    def __bool__(self) -> bool:
        return True

    def buildProtocol(self, addr: IAddress | None) -> HttpProtocol:
        """Return the protocol of a new connection."""
        return HttpProtocol(self)

    def admit(self, connection: HttpProtocol) -> bool:
        """Register a new connection; return whether there is room for it."""
        if len(self._connections) >= self.limits.max_connections:
            if not self._idle:
                return False
            next(iter(self._idle)).evict()
        self._connections.add(connection)
        self._idle[connection] = None
        return True

    def idle(self, connection: HttpProtocol) -> None:
        """Mark a connection as idle."""
        if connection in self._connections:
            self._idle[connection] = None

    def occupied(self, connection: HttpProtocol) -> None:
        """Mark a connection as busy."""
        self._idle.pop(connection, None)

    def forget(self, connection: HttpProtocol) -> None:
        """Unregister a connection."""
        self._connections.discard(connection)
        self._idle.pop(connection, None)

    def refused(self, peer_host: str, error: HttpError) -> None:
        """Log a refusal, with a rate limit against hostile clients."""
        left_out = self._refusals.passes(error.status)
        if left_out is not None:
            more = {"left_out": left_out} if left_out else {}
            _log.info("request refused", peer=peer_host, status=error.status, reason=error.reason, **more)
