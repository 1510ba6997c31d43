"""Connections within this process: a client and a server of the same broker, over a pair of sockets."""

import socket
from typing import Any, Final

from twisted.internet.protocol import Factory

#: Time limit for the connection, which the system completes at once, in seconds.
_TIMEOUT_S: Final = 0.5


def connect_inside(reactor: Any, server: Factory, client: Factory) -> None:  # Any: Twisted's interfaces are not types
    """Connect a new protocol of ``server`` with one of ``client``; both are made before this returns.

    The sockets are TCP on the loopback interface, so that the server sees an ordinary connection with addresses.

    :raises OSError: when the sockets cannot be created, or another process connected in between.
    """
    with socket.create_server(("127.0.0.1", 0), backlog=1) as listener:
        listener.settimeout(_TIMEOUT_S)
        near = socket.create_connection(listener.getsockname(), _TIMEOUT_S)
        with near:
            far, address = listener.accept()
            with far:
                if address != near.getsockname():
                    raise ConnectionError("another process took the connection of this broker to itself")
                for end, factory in ((far, server), (near, client)):
                    end.setblocking(False)
                    reactor.adoptStreamConnection(end.fileno(), socket.AF_INET, factory)  # duplicates the descriptor
