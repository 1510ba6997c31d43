"""Fills a durable queue with persistent messages, as fast as the broker confirms them."""

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
#: Far beyond any fill; the number of messages ends it.
FILL_S: Final = 3600.0


def fill(port: int, queue: str, messages: int, body_bytes: int) -> float:
    """Publish until all are confirmed; return messages a second."""
    message = wire.publish("", queue, bytes(body_bytes), persistent=True)
    with connected(port) as client, select.epoll() as poll:
        client.confirm_select()
        link = Link(client.quiet_socket(), poll)
        publisher = Publisher(link, Cycle(message, len(message)), WINDOW, messages, Confirms(0))
        start = time.perf_counter()
        drive(poll, [Flow(publisher, ())], FILL_S)
        return messages / (time.perf_counter() - start)
