"""A queue whose messages are returned and acknowledged several at a time."""

from random import Random

from pamqp import commands

from gateway.simulation.clients.amqp import ReceivedMessage
from gateway.simulation.history import MessagePlace
from gateway.simulation.programs.amqp import AmqpProgram
from gateway.simulation.publishes import Fate
from gateway.simulation.scene import Scene
from gateway.simulation.topology import SharedTopology


class ReturnedMessages(AmqpProgram):
    """Fetches some messages, and acknowledges or returns all up to one of them.

    Returned messages come back in their old places, before those that were never fetched.
    """

    kind = "returning"

    def __init__(self, scene: Scene, topology: SharedTopology, number: int, random: Random) -> None:
        super().__init__(scene, topology, number, random)
        self._rounds = 0
        self._left = random.randint(1, 4)

    async def work(self) -> bool:
        """Fill a queue, settle parts of it, and compare what is left with what should be."""
        while self._left and not self.is_stopping:
            self._rounds += 1  # what a lost connection held may return to its queue late
            queue = f"{self.name}.{self._rounds}"
            self.scene.history.add_place(MessagePlace(queue, keeps=False))
            await self.client.declare(queue, durable=True)
            wanted = await self._filled(queue)
            wanted = await self._settle_some(queue, wanted)
            await self._compare(queue, wanted)
            self._left -= 1
        return True

    async def _filled(self, queue: str) -> list[str]:
        await self.client.open_channel(2)
        await self.client.confirm(2)
        bodies = [self.scene.history.publish(self.name, (queue,)) for _ in range(self.random.randint(3, 8))]
        answers = [self.client.publish("", queue, body.encode(), channel=2, delivery_mode=2) for body in bodies]
        for body, answer in zip(bodies, answers, strict=True):
            self.scene.findings.require(await self.is_confirmed(answer), "a valid request is not refused", body)
            self.scene.history.decided(body, Fate.CONFIRMED)
        await self.client.request(commands.Channel.Close(200, "bye", 0, 0), 2)
        return bodies

    async def _settle_some(self, queue: str, bodies: list[str]) -> list[str]:
        """Settle all up to one of some fetched messages; return what the queue has then, the rest returned too."""
        fetched = [message for _ in range(self.random.randint(1, len(bodies))) if (message := await self._get(queue))]
        last = self.random.randrange(len(fetched))
        tag, returns = fetched[last].tag, self.random.random() < 0.5
        if returns:
            self.client.send(commands.Basic.Nack(delivery_tag=tag, multiple=True, requeue=True))
        else:
            self.client.send(commands.Basic.Ack(delivery_tag=tag, multiple=True))
        await self.client.request(commands.Basic.Recover(requeue=True))
        return bodies if returns else bodies[last + 1 :]

    async def _compare(self, queue: str, wanted: list[str]) -> None:
        found = []
        while message := await self._get(queue):
            found.append(message.body.decode())
            self.client.acknowledge(message)
        self.scene.findings.require(
            found == wanted, "returned messages keep their places", f"{queue}: {found} instead of {wanted}"
        )

    async def _get(self, queue: str) -> ReceivedMessage | None:
        message = await self.client.get(queue)
        if message is not None:
            body = message.body.decode()
            self.scene.history.received(queue, self.name, body, is_redelivered=message.is_redelivered)
        return message
