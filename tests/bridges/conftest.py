"""Fixtures: two gateways as child processes, and pika clients of both."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel, BlockingConnection
from pika.exceptions import AMQPError

from tests.interop.amqp_clients.pika_client import parameters
from tests.ports import free_port
from tests.running import Gateway


@pytest.fixture
def near(tmp_path: Path) -> Iterator[Gateway]:
    """Yield the running gateway that has the bridges."""
    gateway = Gateway(tmp_path / "near", "node_name=near").start()
    yield gateway
    gateway.end()


def _ports() -> list[str]:
    return [f"{name}.port={free_port()}" for name in ("amqp", "mqtt", "stomp")]


@pytest.fixture
def far(tmp_path: Path) -> Iterator[Gateway]:
    """Yield the running gateway at the other end. Its ports stay the same when it restarts."""
    gateway = Gateway(tmp_path / "far", *_ports(), "node_name=far").start()
    yield gateway
    gateway.end()


ChannelOf = Callable[[Gateway], BlockingChannel]


@pytest.fixture
def channel_of() -> Iterator[ChannelOf]:
    """Return a function that opens a channel to a gateway, in confirm mode."""
    opened: list[BlockingConnection] = []

    def open_channel(gateway: Gateway) -> BlockingChannel:
        opened.append(pika.BlockingConnection(parameters(gateway.broker)))
        channel = opened[-1].channel()
        channel.confirm_delivery()
        return channel

    yield open_channel
    for connection in opened:
        with suppress(AMQPError):
            connection.close()
