"""A queue that is purged, deleted and declared again, with many messages in it."""

from random import Random
from typing import Final

from pamqp import commands

from gateway.simulation.history import MessagePlace
from gateway.simulation.programs.amqp import AmqpProgram
from gateway.simulation.publishes import Fate
from gateway.simulation.scene import Scene
from gateway.simulation.topology import SharedTopology

_EXCHANGE: Final = "amq.direct"


class PurgedQueue(AmqpProgram):
    """Fills a queue, empties it, and sees that it has what came afterwards, and no more.

    What is held meanwhile comes back to it, unless ``_was_deleted``.
    """

    kind = "purged"

    def __init__(self, scene: Scene, topology: SharedTopology, number: int, random: Random) -> None:
        super().__init__(scene, topology, number, random)
        self._rounds = 0
        self._left = random.randint(1, 5)
        self._was_deleted = False

    async def work(self) -> bool:
        """Fill and empty the queue."""
        self._rounds += 1  # what was removed may be back after a kill, and what a lost connection held comes late
        queue = f"{self.name}.{self._rounds}"
        self.scene.history.add_place(MessagePlace(queue, keeps=False))
        await self.client.confirm()
        await self._declare(queue)
        while self._left and not self.is_stopping:
            self._left -= 1
            removed = await self._publish(queue)
            held = await self._fetch(queue, self.random.choice((0, 0, 2)))
            await self._empty(queue)
            added = await self._publish(queue)
            await self.client.request(commands.Basic.Recover(requeue=True))
            found = await self._fetch(queue, len(held) + len(added) + 1)
            wanted = added if self._was_deleted else held + added
            self.scene.findings.require(
                found == wanted,
                "a purge removes what was there, and nothing else",
                f"{queue}: {found} instead of {wanted} after {removed}",
            )
            self.client.send(commands.Basic.Ack(delivery_tag=0, multiple=True))  # all
        return True

    async def _declare(self, queue: str) -> None:
        await self.client.declare(queue, durable=True)
        for key in ("a.a", "b.b"):
            bind = commands.Queue.Bind(queue=queue, exchange=_EXCHANGE, routing_key=f"{queue}.{key}")
            await self.client.request(bind)

    async def _empty(self, queue: str) -> None:
        """Remove all messages that are ready."""
        self._was_deleted = False
        if self.random.random() < 0.5:
            await self.client.request(commands.Queue.Purge(queue=queue))
        else:
            await self.client.request(commands.Queue.Delete(queue=queue))
            await self._declare(queue)
            self._was_deleted = True

    async def _publish(self, queue: str) -> list[str]:
        """Publish some messages; return their bodies once they are confirmed."""
        key, is_durable = self.random.choice(("a.a", "b.b")), self.random.random() < 0.8
        count = self.random.choice((0, 1, 5, 12))
        bodies = [self.scene.history.publish(self.name, (queue,), is_durable=is_durable) for _ in range(count)]
        mode = 2 if is_durable else 1
        answers = [
            self.client.publish(_EXCHANGE, f"{queue}.{key}", body.encode(), delivery_mode=mode) for body in bodies
        ]
        for body, answer in zip(bodies, answers, strict=True):
            self.scene.findings.require(await self.is_confirmed(answer), "a valid request is not refused", body)
            self.scene.history.decided(body, Fate.CONFIRMED)
        return bodies

    async def _fetch(self, queue: str, most: int) -> list[str]:
        found: list[str] = []
        while len(found) < most and (message := await self.client.get(queue)) is not None:
            found.append(message.body.decode())
            self.scene.history.received(queue, self.name, found[-1], is_redelivered=message.is_redelivered)
        return found
