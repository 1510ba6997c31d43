"""A stream, read from its beginning again and again."""

from random import Random
from typing import Any, Final

from pamqp import commands

from gateway.simulation.clients.amqp import ReceivedMessage
from gateway.simulation.clients.errors import Lost
from gateway.simulation.history import MessagePlace
from gateway.simulation.programs.amqp import AmqpProgram
from gateway.simulation.publishes import Fate
from gateway.simulation.scene import Scene
from gateway.simulation.topology import SharedTopology

#: How long a reader waits for the last message, in steps of a pause.
_MOST_WAITS: Final = 400

#: The size of the stream's segments in bytes: a small one is full after a few messages, and written as a file.
_SEGMENT_SIZES: Final = (None, 100, 600)


class StreamProgram(AmqpProgram):
    """Publishes to a stream of its own and reads it: each reading has every confirmed message, once and in order."""

    kind = "stream"

    def __init__(self, scene: Scene, topology: SharedTopology, number: int, random: Random) -> None:
        super().__init__(scene, topology, number, random)
        self._queue = f"{self.name}.stream"
        self._rounds = random.randint(1, 3)
        self._prefetch = random.choice((1, 3, 20))
        self._segment_size = random.choice(_SEGMENT_SIZES)
        self._published: list[str] = []
        scene.history.add_place(MessagePlace(self._queue, keeps=False, is_ordered=False, marks_second=False))

    async def work(self) -> bool:
        """Publish some messages, and read all."""
        arguments: dict[str, Any] = {"x-queue-type": "stream"}
        if self._segment_size is not None:
            arguments["x-stream-max-segment-size-bytes"] = self._segment_size
        await self.client.declare(self._queue, durable=True, arguments=arguments)
        await self.client.confirm()
        while self._rounds and not self.is_stopping:
            await self._publish()
            await self._read()
            self._rounds -= 1
        return True

    async def finish(self) -> None:
        """Read the stream once more, after all faults."""
        if not self._confirmed:
            return
        await self.client.connect()
        try:
            await self._read()
        finally:
            self.client.drop()

    @property
    def _confirmed(self) -> list[str]:
        return [body for body in self._published if self.scene.history.published[body].fate is Fate.CONFIRMED]

    async def _publish(self) -> None:
        bodies = [self.scene.history.publish(self.name, (self._queue,)) for _ in range(self.random.randint(1, 12))]
        self._published += bodies
        answers = [self.client.publish("", self._queue, body.encode(), delivery_mode=2) for body in bodies]
        for body, answer in zip(bodies, answers, strict=True):
            if await self.is_confirmed(answer):
                self.scene.history.decided(body, Fate.CONFIRMED)

    async def _read(self) -> None:
        """Read from the first message to the last confirmed one."""
        confirmed, found = self._confirmed, list[str]()

        def received(message: ReceivedMessage) -> None:
            found.append(message.body.decode())
            self.client.acknowledge(message)

        self.client.on_delivery = received
        await self.client.request(commands.Basic.Qos(prefetch_count=self._prefetch))
        consume = commands.Basic.Consume(queue=self._queue, arguments={"x-stream-offset": "first"})
        answer = await self.client.request(consume)
        for _ in range(_MOST_WAITS):
            if found and found[-1] == confirmed[-1]:
                break
            if not self.client.is_connected:
                raise Lost("the connection ended")
            await self.pause()
        await self.client.request(commands.Basic.Cancel(answer.consumer_tag))
        missing = [body for body in confirmed if body not in found]
        require = self.scene.findings.require
        require(not missing, "a stream keeps what it confirmed", f"{missing} are missing in {found}")
        require(len(set(found)) == len(found), "a stream has each message once", f"{found}")
        order = [self._published.index(body) for body in found]
        require(order == sorted(order), "a stream keeps the order of its publisher", f"{found}")
