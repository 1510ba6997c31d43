"""Whole-process tests: a gateway as a child, real sockets, stock clients."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pika
import pytest
from pika.adapters.blocking_connection import BlockingConnection
from pika.exceptions import AMQPError

from tests.interop.pika_client import parameters
from tests.running import Gateway


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    """A gateway that is not started yet; whatever runs when the test ends is killed."""
    gateway = Gateway(tmp_path)
    yield gateway
    gateway.end()


Connect = Callable[..., BlockingConnection]


@pytest.fixture
def connect(gateway: Gateway) -> Iterator[Connect]:
    """Open pika connections to the gateway of the test, or to the one that is given.

    When the test ends the gateway is killed, then they are closed.
    """
    opened: list[BlockingConnection] = []

    def open_connection(to: Gateway = gateway, **overrides: object) -> BlockingConnection:
        opened.append(pika.BlockingConnection(parameters(to.broker, **overrides)))
        return opened[-1]

    yield open_connection
    gateway.end()  # else a connection that is blocked would wait for the answer to its close
    for connection in opened:
        with suppress(AMQPError):
            connection.close()
