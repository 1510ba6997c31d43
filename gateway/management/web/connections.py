"""The connections of one HTTP listener, and the state that they share."""

from collections.abc import Callable
from typing import Any, Final, Protocol

from gateway.logs import StructuredLog
from gateway.logs.rate_limit import RateLimit
from gateway.management.http.errors import HttpError
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


class Evictable(Protocol):
    """A connection, as the listener counts it."""

    def evict(self) -> None:
        """Close the connection, which has no request in progress."""
        ...

    def abort(self) -> None:
        """Abort the connection, and its request."""
        ...


class HttpConnections:
    """Up to ``limits.max_connections`` connections. At the limit, a new one replaces the one idle for longest.

    ``bodies`` is the memory of all requests' bodies.
    """

    def __init__(self, application: Application, limits: HttpLimits, reactor: Any) -> None:
        self.application = application
        self.limits = limits
        self.bodies = ByteBudget(limits.max_bodies_size)
        self.call_later: Callable[..., Any] = reactor.callLater
        self._refusals = RateLimit(1, LOG_INTERVAL_S, reactor.seconds)
        self._connections: set[Evictable] = set()
        self._idle: dict[Evictable, None] = {}

    def __len__(self) -> int:
        return len(self._connections)

    def admit(self, connection: Evictable) -> bool:
        """Register a new connection; return whether there is room for it."""
        if len(self._connections) >= self.limits.max_connections:
            if not self._idle:
                return False
            next(iter(self._idle)).evict()
        self._connections.add(connection)
        self._idle[connection] = None
        return True

    def idle(self, connection: Evictable) -> None:
        """Mark a connection as idle."""
        if connection in self._connections:
            self._idle[connection] = None

    def occupied(self, connection: Evictable) -> None:
        """Mark a connection as busy."""
        self._idle.pop(connection, None)

    def forget(self, connection: Evictable) -> None:
        """Unregister a connection."""
        self._connections.discard(connection)
        self._idle.pop(connection, None)

    def close_all(self) -> None:
        """Close the idle connections, and abort the others."""
        for connection in list(self._connections):
            if connection in self._idle:
                connection.evict()
            else:
                connection.abort()

    def refused(self, peer_host: str, error: HttpError) -> None:
        """Log a refusal, with a rate limit against hostile clients."""
        left_out = self._refusals.passes(error.status)
        if left_out is not None:
            more = {"left_out": left_out} if left_out else {}
            _log.info("request refused", peer=peer_host, status=error.status, reason=error.reason, **more)
