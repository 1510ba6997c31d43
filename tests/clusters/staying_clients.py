"""Clients that must not lose their connection: an error of one fails the test. Each is a thread.

``PikaClients`` has a publisher and a consumer of pika, ``AioPikaClients`` those of aio-pika, on one node and one queue.
"""

import asyncio
from threading import Event, Thread
from typing import Any, Final

import aio_pika
import pika
from pika.adapters.blocking_connection import BlockingChannel

from tests.clusters.gateway_cluster import ClusterNode

#: The interval of heartbeats: a takeover takes longer than one, so the follower must send them meanwhile.
HEARTBEAT_S: Final = 6

#: The time between two messages of a publisher, in seconds.
_PAUSE_S: Final = 0.005


class StayingClients:
    """A publisher and a consumer of one queue. ``confirmed`` and ``taken`` have the numbers of messages, in order."""

    def __init__(self, node: ClusterNode, queue: str, vhost: str = "/") -> None:
        self.vhost = vhost
        self.node = node
        self.queue = queue
        self.confirmed: list[int] = []
        self.taken: list[int] = []
        self.failures: list[BaseException] = []
        self._is_over = Event()
        self._is_published = Event()
        self._threads = [
            Thread(target=self._guarded, args=(work,), daemon=True) for work in (self.publish, self.consume)
        ]

    def start(self) -> "StayingClients":
        """Start both."""
        for thread in self._threads:
            thread.start()
        return self

    def _guarded(self, work: Any) -> None:
        try:
            work()
        except BaseException as error:
            self.failures.append(error)

    def publish(self) -> None:
        """Publish numbers, each after the confirm of the one before, until the end."""
        raise NotImplementedError

    def consume(self) -> None:
        """Take messages and acknowledge them, until the last one."""
        raise NotImplementedError

    @property
    def has_ended(self) -> bool:
        """Whether everything that was confirmed has come."""
        return self._is_published.is_set() and set(self.confirmed) <= set(self.taken)

    def check(self) -> None:
        """Raise what a client raised."""
        if self.failures:
            raise self.failures[0]

    def end(self) -> None:
        """Let the publisher end."""
        self._is_over.set()

    def join(self) -> None:
        """Wait for both."""
        for thread in self._threads:
            thread.join(30.0)
            assert not thread.is_alive()
        self.check()


class PikaClients(StayingClients):
    """Blocking connections of pika."""

    def _connect(self) -> pika.BlockingConnection:
        """Return a new connection."""
        host, port = self.node.addresses["amqp"]
        return pika.BlockingConnection(pika.ConnectionParameters(host, port, self.vhost, heartbeat=HEARTBEAT_S))

    def publish(self) -> None:
        """See ``StayingClients``."""
        with self._connect() as connection:
            channel = connection.channel()
            channel.confirm_delivery()
            number = 0
            while not self._is_over.is_set():
                number += 1
                channel.basic_publish("", self.queue, b"%d" % number, pika.BasicProperties(delivery_mode=2))
                self.confirmed.append(number)
                connection.sleep(_PAUSE_S)
            self._is_published.set()

    def consume(self) -> None:
        """See ``StayingClients``."""
        tags: list[int] = []

        def taken(channel: BlockingChannel, method: Any, properties: Any, body: bytes) -> None:
            tags.append(method.delivery_tag)
            self.taken.append(int(body))
            channel.basic_ack(method.delivery_tag)

        with self._connect() as connection:
            channel = connection.channel()
            channel.basic_qos(prefetch_count=10)
            channel.basic_consume(self.queue, taken)
            while not self.has_ended:
                connection.process_data_events(0.2)
        assert tags == list(range(1, len(tags) + 1)), "delivery tags do not rise by one"


class AioPikaClients(StayingClients):
    """Connections of aio-pika that do not connect again. The publisher has many messages on their way."""

    #: So many messages are published at a time, and the time between, in seconds: the brokers should not be busy.
    _AT_ONCE: Final = 20
    _BETWEEN_S: Final = 0.03

    async def _connect(self) -> aio_pika.abc.AbstractConnection:
        host, port = self.node.addresses["amqp"]
        return await aio_pika.connect(f"amqp://guest:guest@{host}:{port}/?heartbeat={HEARTBEAT_S}")

    def publish(self) -> None:
        """See ``StayingClients``."""
        asyncio.run(self._publishing())

    async def _publishing(self) -> None:
        async with await self._connect() as connection:
            channel = await connection.channel(publisher_confirms=True)
            number = 0
            while not self._is_over.is_set():
                numbers = range(number + 1, number + 1 + self._AT_ONCE)
                await asyncio.gather(*(self._publish_one(channel, each) for each in numbers))
                self.confirmed += numbers
                number = numbers[-1]
                await asyncio.sleep(self._BETWEEN_S)
            self._is_published.set()

    async def _publish_one(self, channel: aio_pika.abc.AbstractChannel, number: int) -> None:
        message = aio_pika.Message(b"%d" % number, delivery_mode=aio_pika.DeliveryMode.PERSISTENT)
        await channel.default_exchange.publish(message, self.queue)

    def consume(self) -> None:
        """See ``StayingClients``."""
        asyncio.run(self._consuming())

    async def _consuming(self) -> None:
        async with await self._connect() as connection:
            channel = await connection.channel()
            await channel.set_qos(prefetch_count=10)
            queue = await channel.get_queue(self.queue)

            async def taken(message: aio_pika.abc.AbstractIncomingMessage) -> None:
                self.taken.append(int(message.body))
                await message.ack()

            await queue.consume(taken)
            while not self.has_ended:
                await asyncio.sleep(0.2)
