"""What the tests of the edge share."""

import socket
from collections.abc import Iterator
from typing import TypeAlias

import pytest

Pair: TypeAlias = tuple[socket.socket, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    """Our end of a connection, which does not block, and the peer's."""
    here, there = socket.socketpair()
    here.setblocking(False)
    with here, there:
        yield here, there
