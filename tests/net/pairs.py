"""Two ends of one connection."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeAlias

Pair: TypeAlias = tuple[socket.socket, socket.socket]


@contextmanager
def connected() -> Iterator[Pair]:
    """Our end of a connection, which does not block, and the peer's; both are closed in the end."""
    here, there = socket.socketpair()
    here.setblocking(False)
    with here, there:
        yield here, there
