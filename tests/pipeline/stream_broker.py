"""A real gateway as a child process, with streams to read, for what the fake cannot show."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, Final

import pika
from pika.adapters.blocking_connection import BlockingChannel

from tests.running import Gateway, gateway_in

#: Small, so that tests see sealed segments as well as the one that is written.
SEGMENT_SIZE: Final = "64KiB"


class StreamBroker:
    """What tests do with such a gateway: declare, publish, and tell Spark where it is."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway

    def options(self, **more: str) -> dict[str, str]:
        """Return the options of a source or sink that goes there."""
        host, port = self.gateway.addresses["management"]
        return {"url": f"http://{host}:{port}", "retryTimeout": "30s"} | more

    @contextmanager
    def channel(self) -> Iterator[BlockingChannel]:
        """Connect by AMQP."""
        host, port = self.gateway.addresses["amqp"]
        connection = pika.BlockingConnection(pika.ConnectionParameters(host, port))
        yield connection.channel()
        connection.close()

    def declare_stream(self, name: str, **arguments: Any) -> None:
        """Make a stream; ``_`` in the names of arguments is ``-``."""
        table = {f"x-{key.replace('_', '-')}": value for key, value in arguments.items()}
        with self.channel() as channel:
            channel.queue_declare(name, durable=True, arguments={"x-queue-type": "stream"} | table)

    def publish(self, queue: str, bodies: Iterable[bytes], *, at_once: int = 1000) -> None:
        """Publish to a queue, so many messages at once; returns when all are safe."""
        persistent = pika.BasicProperties(delivery_mode=2)
        left = iter(bodies)
        with self.channel() as channel:
            channel.tx_select()
            while some := list(islice(left, at_once)):
                for body in some:
                    channel.basic_publish("", queue, body, persistent)
                channel.tx_commit()


@contextmanager
def stream_broker(directory: Path, *settings: str) -> Iterator[StreamBroker]:
    """Run one for as long as the block lasts."""
    with gateway_in(directory, f"streams.segment_size={SEGMENT_SIZE}", *settings) as gateway:
        yield StreamBroker(gateway)
