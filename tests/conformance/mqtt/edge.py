"""A local transport without a socket for the server side of a connection."""

from typing import Any

from twisted.internet.address import IPv4Address
from twisted.internet.testing import StringTransport

HERE: Any = IPv4Address("TCP", "127.0.0.1", 40_000)  # Any: Twisted's addresses and interfaces do not know each other


class _Transport(StringTransport):
    def setTcpNoDelay(self, enabled: bool) -> None:  # noqa: N802 - Twisted's name
        assert enabled


def transport() -> Any:  # Any: Twisted's transports are not typed
    """Return the transport that the server writes to and a test reads from."""
    return _Transport(peerAddress=HERE)  # type: ignore[no-untyped-call]
