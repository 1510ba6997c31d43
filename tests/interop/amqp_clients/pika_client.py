"""Helpers of the pika tests: connection parameters and functions that receive with a time limit."""

import time
from collections.abc import Callable

import pika
from pika.adapters.blocking_connection import BlockingChannel, BlockingConnection

from tests.interop.broker import Broker

#: The time limit of expected messages.
ARRIVAL_TIMEOUT_S = 10.0


def parameters(broker: Broker, **overrides: object) -> pika.ConnectionParameters:
    """Return connection parameters with time limits for all waits."""
    settings: dict[str, object] = {
        "host": broker.host,
        "port": broker.port,
        "virtual_host": broker.vhost,
        "credentials": pika.PlainCredentials(broker.user, broker.password),
        "socket_timeout": 5,
        "stack_timeout": 10,
        "blocked_connection_timeout": 10,
    }
    return pika.ConnectionParameters(**{**settings, **overrides})


def wait_for(connection: BlockingConnection, happened: Callable[[], object]) -> None:
    """Serve the connection until the condition is true; fail after the time limit."""
    deadline = time.monotonic() + ARRIVAL_TIMEOUT_S
    while not happened():
        assert time.monotonic() < deadline, "the condition is still false"
        connection.process_data_events(time_limit=0.05)


def publish(channel: BlockingChannel, queue: str, *bodies: bytes) -> None:
    """Publish each body to the queue through the default exchange."""
    for body in bodies:
        channel.basic_publish("", queue, body)


def fetch(channel: BlockingChannel, queue: str, count: int) -> list[bytes]:
    """Fetch and acknowledge exactly ``count`` messages by basic.get, in queue order."""
    bodies: list[bytes] = []
    for _ in range(count):
        method, _, body = channel.basic_get(queue, auto_ack=True)
        assert method is not None, f"the queue holds {len(bodies)} messages, not {count}"
        bodies.append(body)
    return bodies


def is_empty(channel: BlockingChannel, queue: str) -> bool:
    """Whether basic.get finds no message."""
    method, _, _ = channel.basic_get(queue, auto_ack=True)
    return method is None
