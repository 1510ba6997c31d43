"""A real gateway as a child process, with streams to read, for behaviour that the fake does not have."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, Final

import pika
from pika.adapters.blocking_connection import BlockingChannel

from tests.running import Gateway, gateway_in

#: Small, so that tests read sealed segments as well as the active one.
SEGMENT_SIZE: Final = "64KiB"


class StreamBroker:
    """Operations of tests on such a gateway: declare, publish, and return options for Spark."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway

    def options(self, **more: str) -> dict[str, str]:
        """Return the options of a source or sink for this gateway."""
        host, port = self.gateway.addresses["management"]
        return {"url": f"http://{host}:{port}", "retryTimeout": "30s"} | more

    @contextmanager
    def channel(self) -> Iterator[BlockingChannel]:
        """Open an AMQP channel."""
        host, port = self.gateway.addresses["amqp"]
        connection = pika.BlockingConnection(pika.ConnectionParameters(host, port))
        yield connection.channel()
        connection.close()

    def declare_stream(self, name: str, **arguments: Any) -> None:
        """Declare a stream; ``_`` in the names of arguments becomes ``-``."""
        table = {f"x-{key.replace('_', '-')}": value for key, value in arguments.items()}
        with self.channel() as channel:
            channel.queue_declare(name, durable=True, arguments={"x-queue-type": "stream"} | table)

    def publish(self, queue: str, bodies: Iterable[bytes], *, at_once: int = 1000) -> None:
        """Publish to a queue in batches; return when all messages are confirmed."""
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
    """Run one within the block."""
    with gateway_in(directory, f"streams.segment_size={SEGMENT_SIZE}", *settings) as gateway:
        yield StreamBroker(gateway)
