"""A quorum queue that holds its dead letters while nothing takes them (at-least-once)."""

from random import Random
from typing import Final

from pamqp import commands

from gateway.simulation.history import MessagePlace
from gateway.simulation.programs.amqp import AmqpProgram
from gateway.simulation.publishes import Fate
from gateway.simulation.scene import Scene
from gateway.simulation.topology import SharedTopology

#: The time in which held letters are sent again: their pauses grow, while nothing takes them.
_LONGEST_S: Final = 100.0
_LOOK_S: Final = 1.0


class HeldDeadLetters(AmqpProgram):
    """Rejects messages, or lets them expire, while their exchange is missing or has no queue, and reads them later.

    Each message that was confirmed is in its queue or among the dead letters, however the node ends meanwhile.
    """

    kind = "held-letters"

    def __init__(self, scene: Scene, topology: SharedTopology, number: int, random: Random) -> None:
        super().__init__(scene, topology, number, random)
        self._queue, self._exchange, self._dead = (f"{self.name}.{end}" for end in ("queue", "exchange", "dead"))
        self._expires = random.random() < 0.3
        self._left = random.randint(1, 4)
        self._published: list[str] = []
        for queue in (self._queue, self._dead):
            scene.history.add_place(
                MessagePlace(queue, keeps=False, is_ordered=False, marks_second=False)  # a letter may come twice
            )

    async def work(self) -> bool:
        """Publish what is left, and let it die, while the exchange comes and goes."""
        await self._declare_queue()
        await self.client.confirm()
        while self._left and not self.is_stopping:
            self._left -= 1
            await self._change_exchange()
            bodies = [
                self.scene.history.publish(self.name, (self._queue, self._dead))
                for _ in range(self.random.randint(1, 4))
            ]
            self._published += bodies
            answers = [self.client.publish("", self._queue, body.encode(), delivery_mode=2) for body in bodies]
            for body, answer in zip(bodies, answers, strict=True):
                is_confirmed = await self.is_confirmed(answer)
                self.scene.findings.require(is_confirmed, "a valid request is not refused", body)
                self.scene.history.decided(body, Fate.CONFIRMED)
            await self._reject()
            await self.pause()
        return True

    async def finish(self) -> None:
        """Let the exchange take the letters, and read until all are there."""
        if not self._published:
            return
        await self.client.connect()
        try:
            await self._declare_queue()
            await self._declare_exchange()
            await self._bind()
            published = self.scene.history.published
            missing = {body for body in self._published if published[body].fate is Fate.CONFIRMED}
            latest_s = self.scene.world.now_s + _LONGEST_S
            while True:
                missing -= await self._all(self._queue) | await self._all(self._dead)
                if not missing or self.scene.world.now_s > latest_s:
                    break
                await self.scene.sleep(_LOOK_S)
            is_known = not self.scene.world.has_jumped  # a pause between two attempts ends at a time of the wall clock
            self.scene.findings.require(
                not (missing and is_known), "a dead letter at least once is not lost", ", ".join(sorted(missing))
            )
        finally:
            self.client.drop()

    async def _declare_queue(self) -> None:
        arguments = {
            "x-queue-type": "quorum",
            "x-dead-letter-exchange": self._exchange,
            "x-dead-letter-strategy": "at-least-once",
            "x-overflow": "reject-publish",
        }
        if self._expires:
            await self.client.declare(self._queue, durable=True, arguments={**arguments, "x-message-ttl": 100})
        else:
            await self.client.declare(self._queue, durable=True, arguments=arguments)
        await self.client.declare(self._dead, durable=True)

    async def _declare_exchange(self) -> None:
        declare = commands.Exchange.Declare(exchange=self._exchange, exchange_type="fanout", durable=True)
        await self.client.request(declare)

    async def _bind(self) -> None:
        await self.client.request(commands.Queue.Bind(queue=self._dead, exchange=self._exchange))

    async def _change_exchange(self) -> None:
        choice = self.random.random()
        if choice < 0.4:
            await self.client.request(commands.Exchange.Delete(exchange=self._exchange))
        elif choice < 0.8:
            await self._declare_exchange()
            if choice < 0.6:
                await self._bind()

    async def _reject(self) -> None:
        """Reject what is there."""
        while (message := await self.client.get(self._queue)) is not None:
            body = message.body.decode()
            self.scene.history.received(self._queue, self.name, body, is_redelivered=message.is_redelivered)
            self.client.send(commands.Basic.Reject(delivery_tag=message.tag, requeue=False))
        await self.client.declare(self._queue, passive=True)

    async def _all(self, queue: str) -> set[str]:
        """Fetch everything, and keep it until the connection ends."""
        found = set()
        while (message := await self.client.get(queue)) is not None:
            body = message.body.decode()
            found.add(body)
            self.scene.history.received(queue, self.name, body, is_redelivered=message.is_redelivered)
        return found
