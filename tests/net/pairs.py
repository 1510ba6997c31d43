"""A pair of connected sockets."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeAlias

Pair: TypeAlias = tuple[socket.socket, socket.socket]


@contextmanager
def connected() -> Iterator[Pair]:
    """Yield the non-blocking local end of a connection and the peer's end; close both afterwards."""
    here, there = socket.socketpair()
    here.setblocking(False)
    with here, there:
        yield here, there
