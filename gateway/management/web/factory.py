"""The HTTP listener: makes connections, and owns what they share."""

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

#: Seconds between two lines in the log about refusals of one kind.
LOG_INTERVAL_S: Final = 10.0


class Application(Protocol):
    """Who answers requests."""

    def begin(self, request: Request) -> None:
        """A head has come: ask for the body, or answer. Never raises."""
        ...


class HttpFactory(ServerFactory):
    """Admits clients, ``limits.max_connections`` at a time.

    ``bodies`` is the memory of all requests' bodies. Who waits longest without a request under way makes room for a
    newcomer, so that idle connections keep nobody out.
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
        """Return what speaks HTTP on a new connection."""
        return HttpProtocol(self)

    def admit(self, connection: HttpProtocol) -> bool:
        """Count a newcomer in; return whether there is room for it."""
        if len(self._connections) >= self.limits.max_connections:
            if not self._idle:
                return False
            next(iter(self._idle)).evict()
        self._connections.add(connection)
        self._idle[connection] = None
        return True

    def idle(self, connection: HttpProtocol) -> None:
        """A connection waits for its next request."""
        if connection in self._connections:
            self._idle[connection] = None

    def occupied(self, connection: HttpProtocol) -> None:
        """A connection has a request."""
        self._idle.pop(connection, None)

    def forget(self, connection: HttpProtocol) -> None:
        """A connection ends."""
        self._connections.discard(connection)
        self._idle.pop(connection, None)

    def refused(self, peer_host: str, error: HttpError) -> None:
        """Log, seldom enough that hostile input does not fill the log, why a client was refused."""
        left_out = self._refusals.passes(error.status)
        if left_out is not None:
            more = {"left_out": left_out} if left_out else {}
            _log.info("request refused", peer=peer_host, status=error.status, reason=error.reason, **more)
