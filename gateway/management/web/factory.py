"""The HTTP listener: creates the protocol of each connection."""

from typing import Any

from twisted.internet.interfaces import IAddress
from twisted.internet.protocol import ServerFactory

from gateway.management.web.connection import HttpProtocol
from gateway.management.web.connections import Application, HttpConnections
from gateway.management.web.limits import HttpLimits


class HttpFactory(ServerFactory):
    """Accepts the connections of one listener."""

    noisy = False

    def __init__(self, application: Application, limits: HttpLimits, reactor: Any) -> None:
        self.connections = HttpConnections(application, limits, reactor)

    def buildProtocol(self, addr: IAddress | None) -> HttpProtocol:
        """Return the protocol of a new connection."""
        return HttpProtocol(self.connections)
