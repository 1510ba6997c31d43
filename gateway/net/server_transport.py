"""The transport of an accepted connection.

This module is not compiled: weak references to a compiled object whose base class is interpreted outlive it, and then
corrupt memory (mypyc 2.4). The nodes of a cluster keep such references to the transports of other nodes.
"""

from typing import Any

from gateway.net.connection_io import ConnectionIO
from gateway.net.twisted_private import StandardServer, has_unsent


class ServerTransport(StandardServer):
    """An accepted connection, polled at low priority until it has logged in.

    If it has a ``ConnectionIO``, that reads the socket directly, without Twisted's classes.
    """

    def promote(self) -> None:
        """Poll it at normal priority from now on: its client has logged in."""
        self.reactor.login_poller.promote(self.fileno())

    def read_by(self, io: ConnectionIO) -> None:
        """Let a ``ConnectionIO`` read the socket from now on."""
        io.listen(self.fileno())
        self.reactor.loop.read_by(io, self.fileno())

    def loseWriteConnection(self) -> None:  # noqa: N802 - Twisted's name
        """Close the output side: now if nothing waits to be written, which saves Twisted's detour through a poll."""
        if has_unsent(self):
            super().loseWriteConnection()  # type: ignore[no-untyped-call]  # Twisted's
        else:
            self.close_output()

    def connectionLost(self, reason: Any) -> None:
        """Detach the descriptor, which may be reused, before Twisted closes the connection."""
        self.reactor.loop.read_by_reactor(self.fileno())
        super().connectionLost(reason)
