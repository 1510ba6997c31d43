"""Tests of the whole process: a gateway as a child process, real sockets, existing clients."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pika
import pytest
from pika.adapters.blocking_connection import BlockingConnection
from pika.exceptions import AMQPError

from tests.interop.amqp_clients.pika_client import parameters
from tests.running import Gateway


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    """Yield a gateway that is not started yet; a process still running at the end of the test is killed."""
    gateway = Gateway(tmp_path)
    yield gateway
    gateway.end()


Connect = Callable[..., BlockingConnection]


@pytest.fixture
def connect(gateway: Gateway) -> Iterator[Connect]:
    """Return a function that opens pika connections to the gateway of the test or to a given one.

    At the end of the test the gateway is killed before the connections are closed.
    """
    opened: list[BlockingConnection] = []

    def open_connection(to: Gateway = gateway, **overrides: object) -> BlockingConnection:
        opened.append(pika.BlockingConnection(parameters(to.broker, **overrides)))
        return opened[-1]

    yield open_connection
    gateway.end()  # otherwise a blocked connection would wait for the reply to its close
    for connection in opened:
        with suppress(AMQPError):
            connection.close()
