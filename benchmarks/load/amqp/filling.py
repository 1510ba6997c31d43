"""Filling of a durable queue with persistent messages, as fast as the broker confirms them."""

import select
import time
from typing import Final

from benchmarks.load.amqp import wire
from benchmarks.load.amqp.client import connected
from benchmarks.load.amqp.receipts import Confirms
from benchmarks.load.drive import Flow, drive
from benchmarks.load.link import Link
from benchmarks.load.publisher import Cycle, Publisher

WINDOW: Final = 5000
#: Messages with individual ids are built in batches; the clock is stopped meanwhile.
BLOCK: Final = 50_000
#: Far beyond any fill; the message count ends it.
FILL_S: Final = 3600.0


def fill(port: int, queue: str, messages: int, body_bytes: int) -> float:
    """Publish until all are confirmed; return messages per second."""
    message = wire.publish("", queue, bytes(body_bytes), persistent=True)
    return messages / _fill(port, Cycle(message, len(message)), messages)


def fill_correlated(port: int, queue: str, messages: int, body_bytes: int) -> float:
    """Do the same with messages that each have a correlation-id, all of the same length."""
    body, took_s = bytes(body_bytes), 0.0
    for first in range(0, messages, BLOCK):
        numbers = range(first, min(first + BLOCK, messages))
        block = [wire.publish("", queue, body, persistent=True, correlation_id=f"{number:012}") for number in numbers]
        took_s += _fill(port, Cycle(b"".join(block), len(block[0])), len(block))
    return messages / took_s


def _fill(port: int, cycle: Cycle, messages: int) -> float:
    """Publish this many messages of a cycle until all are confirmed; return the seconds that took."""
    with connected(port) as client, select.epoll() as poll:
        client.confirm_select()
        link = Link(client.quiet_socket(), poll)
        publisher = Publisher(link, cycle, WINDOW, messages, Confirms(0))
        start = time.perf_counter()
        drive(poll, [Flow(publisher, ())], FILL_S)
        return time.perf_counter() - start
