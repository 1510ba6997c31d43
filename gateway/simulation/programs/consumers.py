"""Queues that choose among their consumers: by priority, or one at a time."""

from abc import abstractmethod
from collections.abc import Sequence
from random import Random
from typing import Any, ClassVar, Final

from pamqp import commands

from gateway.simulation.clients.amqp import AmqpClient, ReceivedMessage
from gateway.simulation.clients.errors import Lost, RefusedRequest
from gateway.simulation.history import MessagePlace
from gateway.simulation.programs.amqp import AmqpProgram
from gateway.simulation.programs.program import CONNECTION_FORCED
from gateway.simulation.publishes import Fate
from gateway.simulation.scene import Scene
from gateway.simulation.topology import SharedTopology

#: The priorities of consumers, and the prefetch limit of the one of the highest priority.
_PRIORITIES: Final = (-1, 0, 5)
_PREFETCH: Final = 2

#: The longest wait for a delivery, in seconds, and the time between two looks.
_LONGEST_S: Final = 60.0
_LOOK_S: Final = 0.02


class ChosenConsumers(AmqpProgram):
    """Publishes to a queue with several consumers, each with a connection of its own, and sees who gets what.

    A round begins anew, with a new queue, if one of the connections is lost.
    """

    arguments: ClassVar[dict[str, Any]] = {}

    def __init__(self, scene: Scene, topology: SharedTopology, number: int, random: Random) -> None:
        super().__init__(scene, topology, number, random)
        self.consumers = [AmqpClient(scene, f"{self.name}-{index}") for index in range(len(_PRIORITIES))]
        self.received: list[list[ReceivedMessage]] = []
        self.queue = ""
        self._present: set[int] = set()
        self._rounds = 0
        self._left = random.randint(1, 3)

    async def work(self) -> bool:
        """Do the rounds that are left."""
        await self.client.confirm()
        while self._left and not self.is_stopping:
            self._left -= 1
            self._rounds += 1
            self.queue = f"{self.name}.{self._rounds}"
            self.scene.history.add_place(MessagePlace(self.queue, keeps=False, is_ordered=False))
            await self.client.declare(self.queue, durable=True, arguments=self.arguments)
            self.received = [[] for _ in self.consumers]
            self._present = set()
            try:
                await self.play()
            finally:
                for consumer in self.consumers:
                    consumer.drop()
        return True

    @abstractmethod
    async def play(self) -> None:
        """Do one round."""

    async def consume(self, index: int, priority: int, prefetch: int = 0) -> None:
        """Connect a consumer."""
        consumer = self.consumers[index]
        consumer.on_delivery = lambda delivery: self._got(index, delivery)
        await self._ask(consumer.connect())
        if prefetch:
            await self._ask(consumer.request(commands.Basic.Qos(prefetch_count=prefetch)))
        self._present.add(index)
        consume = commands.Basic.Consume(queue=self.queue, consumer_tag="it", arguments={"x-priority": priority})
        await self._ask(consumer.request(consume))

    async def publish(self, count: int) -> list[str]:
        """Publish some messages; return their bodies once they are confirmed."""
        bodies = [self.scene.history.publish(self.name, (self.queue,)) for _ in range(count)]
        answers = [self.client.publish("", self.queue, body.encode(), delivery_mode=2) for body in bodies]
        for body, answer in zip(bodies, answers, strict=True):
            self.scene.findings.require(await self.is_confirmed(answer), "a valid request is not refused", body)
            self.scene.history.decided(body, Fate.CONFIRMED)
        return bodies

    async def wait_for(self, wanted: Sequence[Sequence[str]], rule: str) -> None:
        """Wait until each consumer has got these messages, and no other has come. :raises Lost: if one is gone."""
        latest_s = self.scene.world.now_s + _LONGEST_S
        found = self._found()
        while sum(map(len, found)) < sum(map(len, wanted)) and self.scene.world.now_s < latest_s:
            await self.scene.sleep(_LOOK_S)
            found = self._found()
        self.scene.findings.require(found == [list(each) for each in wanted], rule, f"{found} instead of {wanted}")

    async def settle(self, index: int) -> None:
        """Acknowledge all that a consumer has got, and wait until the broker knows."""
        self.consumers[index].send(commands.Basic.Ack(delivery_tag=0, multiple=True))  # all
        await self._ask(self.consumers[index].request(commands.Queue.Declare(queue=self.queue, passive=True)))

    def leave(self, index: int) -> None:
        """Let a consumer drop its connection, and what it has not settled with it."""
        self._present.remove(index)
        self.consumers[index].drop()

    async def cancel(self, index: int) -> None:
        """Cancel a consumer."""
        await self._ask(self.consumers[index].request(commands.Basic.Cancel(consumer_tag="it")))

    def _got(self, index: int, delivery: ReceivedMessage) -> None:
        body = delivery.body.decode()
        reader = f"{self.queue}/{index}"
        self.scene.history.received(self.queue, reader, body, is_redelivered=delivery.is_redelivered)
        self.received[index].append(delivery)

    def _found(self) -> list[list[str]]:
        """Return the bodies that each consumer has got. :raises Lost: if a connection is gone, which others notice."""
        if not all(client.is_connected for client in (self.client, *(self.consumers[each] for each in self._present))):
            raise Lost("a connection ended")
        return [[delivery.body.decode() for delivery in each] for each in self.received]

    async def _ask(self, request: Any) -> None:
        """Wait for an answer. :raises Lost: also if the node ends in order."""
        try:
            await request
        except RefusedRequest as error:
            if error.code == CONNECTION_FORCED:
                raise Lost(str(error)) from None
            raise


class ConsumerPriorities(ChosenConsumers):
    """The consumer of the highest priority gets messages as long as its prefetch limit permits, then the next one."""

    kind = "consumer-priorities"

    async def play(self) -> None:
        """Fill the limit of the first consumer, settle it, and fill it again."""
        order = list(range(len(self.consumers)))
        self.random.shuffle(order)  # the priority counts, not who came first
        highest, lower, lowest = 2, 1, 0
        for index in order:
            await self.consume(index, _PRIORITIES[index], _PREFETCH if index else 0)
        wanted: list[list[str]] = [[] for _ in self.consumers]
        room = {highest: _PREFETCH, lower: _PREFETCH}
        for _ in range(2):
            for body in await self.publish(self.random.randint(1, 7)):
                taker = highest if room[highest] else lower if room[lower] else lowest
                wanted[taker].append(body)
                if taker in room:
                    room[taker] -= 1
            await self.wait_for(wanted, "the consumer of the highest priority is served first")
            await self.settle(highest)
            room[highest] = _PREFETCH


class SingleActiveConsumer(ChosenConsumers):
    """One consumer gets all; when it leaves, the one of the highest priority takes over, with what was not settled."""

    kind = "single-active"
    arguments: ClassVar[dict[str, Any]] = {"x-single-active-consumer": True}

    async def play(self) -> None:
        """Let one consumer after another leave."""
        rule = "one consumer is active, and the next one takes over"
        order = [0, *self.random.sample((1, 2), 2)]  # the first one becomes active, whatever the priorities
        for index in order:
            await self.consume(index, _PRIORITIES[index])
        wanted: list[list[str]] = [[] for _ in self.consumers]
        active, waiting = 0, [2, 1]
        while True:
            wanted[active] += await self.publish(self.random.randint(1, 4))
            await self.wait_for(wanted, rule)
            if not waiting:
                return
            left, active = active, waiting.pop(0)
            if self.random.random() < 0.5:
                await self.settle(left)
                await self.cancel(left)
            else:
                self.leave(left)
                wanted[active] += wanted[left]  # they come again, before all others
                await self.wait_for(wanted, rule)
