"""A queue whose dropped messages go to several queues, some of which are full."""

from random import Random
from typing import Any, Final

from pamqp import commands

from gateway.simulation.clients.amqp import ReceivedMessage
from gateway.simulation.history import MessagePlace
from gateway.simulation.programs.amqp import AmqpProgram
from gateway.simulation.publishes import Fate
from gateway.simulation.scene import Scene
from gateway.simulation.topology import SharedTopology

#: What makes the queue drop messages: its limit, with the message that is dropped, or a client that rejects them.
_OVERFLOWS: Final = ("drop-head", "reject-publish-dlx", "")


class CascadingQueue(AmqpProgram):
    """Publishes more than a queue takes. Each message is in the queue, or in all queues of its dead letters, once.

    These are bound to a fanout exchange. One of them is limited too: what it drops goes on to a last queue.
    """

    kind = "cascading"

    def __init__(self, scene: Scene, topology: SharedTopology, number: int, random: Random) -> None:
        super().__init__(scene, topology, number, random)
        self._queue, self._wide, self._last = (f"{self.name}.{end}" for end in ("queue", "wide", "last"))
        self._targets = [f"{self.name}.{index}" for index in range(random.randint(1, 4))]
        self._limited = random.choice((self._targets[0], ""))
        self._overflow = random.choice(_OVERFLOWS)
        self._limit = random.randint(1, 4)
        self._left = random.randint(1, 4)
        self._published: list[str] = []
        for queue in (self._queue, *self._targets, self._last):
            scene.history.add_place(MessagePlace(queue, keeps=False, is_ordered=False))

    async def work(self) -> bool:
        """Publish what is left; reject some of it."""
        await self._declare()
        await self.client.confirm()
        while self._left and not self.is_stopping:
            self._left -= 1
            await self._publish()
            if not self._overflow or self.random.random() < 0.2:
                await self._reject()
        return True

    async def _declare(self) -> None:
        client, wide = self.client, self._wide
        await client.request(commands.Exchange.Declare(exchange=wide, exchange_type="fanout", durable=True))
        await client.declare(self._last, durable=True)
        for target in self._targets:
            arguments: dict[str, Any] = {}
            if target == self._limited:
                arguments = {"x-max-length": 1, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": self._last}
            await client.declare(target, durable=True, arguments=arguments)
            await client.request(commands.Queue.Bind(queue=target, exchange=wide))
        arguments = {"x-dead-letter-exchange": wide}
        if self._overflow:
            arguments |= {"x-max-length": self._limit, "x-overflow": self._overflow}
        await client.declare(self._queue, durable=True, arguments=arguments)

    async def _publish(self) -> None:
        history = self.scene.history
        places = (self._queue, *self._targets, self._last)
        bodies = [history.publish(self.name, places) for _ in range(self.random.randint(1, 5))]
        self._published += bodies
        answers = [self.client.publish("", self._queue, body.encode(), delivery_mode=2) for body in bodies]
        for body, answer in zip(bodies, answers, strict=True):
            if await self.is_confirmed(answer):
                history.decided(body, Fate.CONFIRMED)
            else:  # it is dead-lettered, but that is not promised
                refuses = self._overflow == "reject-publish-dlx"
                self.scene.findings.require(refuses, "a valid request is not refused", body)

    async def _reject(self) -> None:
        """Reject some messages of the queue, one by one or all up to the last one."""
        fetched: list[ReceivedMessage] = []
        while len(fetched) < self.random.randint(1, 6) and (message := await self.client.get(self._queue)) is not None:
            fetched.append(message)
            self.scene.history.received(
                self._queue, self.name, message.body.decode(), is_redelivered=message.is_redelivered
            )
        if not fetched:
            return
        if self.random.random() < 0.5:
            self.client.send(commands.Basic.Nack(delivery_tag=fetched[-1].tag, multiple=True, requeue=False))
        else:
            for message in fetched:
                self.client.send(commands.Basic.Reject(delivery_tag=message.tag, requeue=False))
        await self.client.declare(self._queue, passive=True)

    async def finish(self) -> None:
        """Read all queues: a message that was confirmed is in one place, or in all that dead letters go to."""
        if not self._published:
            return
        await self.client.connect()
        try:
            left = {queue: await self._all(queue) for queue in (self._queue, *self._targets, self._last)}
        finally:
            self.client.drop()
        last = left.pop(self._last)
        if self._limited:
            left[self._limited] = left[self._limited] + last
        for body in self._published:
            counts = [found.count(body) for found in left.values()]
            is_whole = counts in ([1] + [0] * len(self._targets), [0] + [1] * len(self._targets))
            is_lost = not any(counts) and self.scene.history.published[body].fate is not Fate.CONFIRMED
            self.scene.findings.require(
                is_whole or is_lost,
                "a dropped message is in all queues of its dead letters",
                f"{body}: {dict(zip(left, counts, strict=True))}",
            )

    async def _all(self, queue: str) -> list[str]:
        """Fetch everything, and leave it in the queue."""
        found = []
        while (message := await self.client.get(queue)) is not None:
            found.append(message.body.decode())
            self.scene.history.received(queue, self.name, found[-1], is_redelivered=message.is_redelivered)
        return found
