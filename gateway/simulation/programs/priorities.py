"""A queue with priorities, whose messages come in the order of their priorities."""

from random import Random
from typing import Final

from pamqp import commands

from gateway.simulation.history import MessagePlace
from gateway.simulation.programs.amqp import AmqpProgram
from gateway.simulation.publishes import Fate
from gateway.simulation.scene import Scene
from gateway.simulation.topology import SharedTopology

#: The highest priority of the queue, and those that messages have: more than the highest counts as the highest.
_HIGHEST: Final = 3
_PRIORITIES: Final = (None, 0, 1, 2, 3, 9)


class PriorityQueue(AmqpProgram):
    """Fills a queue, returns some of its messages, and fetches all: the highest priority first, equals in order."""

    kind = "priorities"

    def __init__(self, scene: Scene, topology: SharedTopology, number: int, random: Random) -> None:
        super().__init__(scene, topology, number, random)
        self._rounds = 0
        self._left = random.randint(1, 3)

    async def work(self) -> bool:
        """Fill the queue and empty it."""
        while self._left and not self.is_stopping:
            self._rounds += 1  # what a lost connection held may return to its queue late
            queue = f"{self.name}.{self._rounds}"
            self.scene.history.add_place(MessagePlace(queue, keeps=False, is_ordered=False))
            await self.client.declare(queue, durable=True, arguments={"x-max-priority": _HIGHEST})
            wanted = await self._filled(queue)
            if self.random.random() < 0.5:
                await self._fetch(queue, self.random.randint(1, len(wanted)))
                await self.client.request(commands.Basic.Recover(requeue=True))
            found = await self._fetch(queue, len(wanted) + 1)
            self.scene.findings.require(
                found == wanted, "the highest priority comes first", f"{queue}: {found} instead of {wanted}"
            )
            self._left -= 1
            self.client.send(commands.Basic.Ack(delivery_tag=0, multiple=True))  # all
        return True

    async def _filled(self, queue: str) -> list[str]:
        """Publish some messages; return their bodies in the order of delivery."""
        await self.client.open_channel(2)
        await self.client.confirm(2)
        sent = []
        for _ in range(self.random.randint(2, 10)):
            body, priority = self.scene.history.publish(self.name, (queue,)), self.random.choice(_PRIORITIES)
            answer = self.client.publish("", queue, body.encode(), channel=2, delivery_mode=2, priority=priority)
            sent.append((-min(priority or 0, _HIGHEST), body, answer))
        for _, body, answer in sent:
            self.scene.findings.require(await self.is_confirmed(answer), "a valid request is not refused", body)
            self.scene.history.decided(body, Fate.CONFIRMED)
        await self.client.request(commands.Channel.Close(200, "bye", 0, 0), 2)
        return [body for _, body, _ in sorted(sent, key=lambda each: each[0])]

    async def _fetch(self, queue: str, most: int) -> list[str]:
        found: list[str] = []
        while len(found) < most and (message := await self.client.get(queue)) is not None:
            found.append(message.body.decode())
            self.scene.history.received(queue, self.name, found[-1], is_redelivered=message.is_redelivered)
        return found
