"""A stream, read again and again: from its beginning, or from the offset of a message."""

from datetime import UTC, datetime
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

#: The segments of a stream that drops its oldest ones. A segment that is larger than the limit would be dropped with
#: the newest messages once it is full.
_FEW: Final = 3

#: How readers name the beginning: by its place, its offset, or a time before it.
_BEGINNINGS: Final = ("first", 0, datetime(2000, 1, 1, tzinfo=UTC))

#: The share of readings that begin with a message in the midst.
_SHARE_OF_OFFSETS: Final = 0.4


class StreamProgram(AmqpProgram):
    """Publishes to a stream of its own and reads it: each reading has every confirmed message, once and in order.

    A message keeps its offset. A stream with a limit has lost some of its oldest messages, and no others.
    """

    kind = "stream"

    def __init__(self, scene: Scene, topology: SharedTopology, number: int, random: Random) -> None:
        super().__init__(scene, topology, number, random)
        self._queue = f"{self.name}.stream"
        self._rounds = random.randint(1, 3)
        self._prefetch = random.choice((1, 3, 20))
        self._segment_size = random.choice(_SEGMENT_SIZES)
        self._drops_oldest = random.random() < 0.3
        self._published: list[str] = []
        self._offsets: dict[str, int] = {}
        scene.history.add_place(MessagePlace(self._queue, keeps=False, is_ordered=False, marks_second=False))

    async def work(self) -> bool:
        """Publish some messages, and read all."""
        arguments: dict[str, Any] = {"x-queue-type": "stream"}
        if self._segment_size is not None:
            arguments["x-stream-max-segment-size-bytes"] = self._segment_size
            if self._drops_oldest:
                arguments["x-max-length-bytes"] = _FEW * self._segment_size
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
        """Read from the beginning, or from a message, to the last confirmed one."""
        confirmed, found = self._confirmed, list[str]()
        begin = self._chosen_begin(confirmed)

        def received(message: ReceivedMessage) -> None:
            found.append(message.body.decode())
            self._note_offset(found[-1], message)
            self.client.acknowledge(message)

        self.client.on_delivery = received
        await self.client.request(commands.Basic.Qos(prefetch_count=self._prefetch))
        start = self.random.choice(_BEGINNINGS) if begin is None else self._offsets[begin]
        consume = commands.Basic.Consume(queue=self._queue, arguments={"x-stream-offset": start})
        answer = await self.client.request(consume)
        for _ in range(_MOST_WAITS):
            if found and found[-1] == confirmed[-1]:
                break
            if not self.client.is_connected:
                raise Lost("the connection ended")
            await self.pause()
        await self.client.request(commands.Basic.Cancel(answer.consumer_tag))
        self._check(found, confirmed, begin)

    def _chosen_begin(self, confirmed: list[str]) -> str | None:
        """Return a confirmed message whose offset is known, or ``None`` for the beginning."""
        known = [body for body in confirmed if body in self._offsets]
        return self.random.choice(known) if known and self.random.random() < _SHARE_OF_OFFSETS else None

    def _note_offset(self, body: str, message: ReceivedMessage) -> None:
        offset = message.properties.headers["x-stream-offset"]
        earlier = self._offsets.setdefault(body, offset)
        self.scene.findings.require(
            offset == earlier, "a message of a stream keeps its offset", f"{body} {offset} instead of {earlier}"
        )

    def _check(self, found: list[str], confirmed: list[str], begin: str | None) -> None:
        """Check a reading that began with a message, or ``None`` for the beginning."""
        require = self.scene.findings.require
        if self._drops_oldest:
            begin = next((body for body in found if body in confirmed), confirmed[-1])
        elif begin is not None:
            require(found[:1] == [begin], "a reader begins at its offset", f"{found[:1]} instead of {begin}")
        wanted = confirmed if begin is None else confirmed[confirmed.index(begin) :]
        missing = [body for body in wanted if body not in found]
        require(not missing, "a stream keeps what it confirmed", f"{missing} are missing in {found}")
        require(len(set(found)) == len(found), "a stream has each message once", f"{found}")
        order = [self._published.index(body) for body in found]
        require(order == sorted(order), "a stream keeps the order of its publisher", f"{found}")
