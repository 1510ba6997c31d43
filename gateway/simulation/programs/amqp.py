"""Programs of AMQP clients."""

from random import Random
from typing import Final

from pamqp import commands

from gateway.simulation.clients.amqp import AmqpClient, ReceivedMessage
from gateway.simulation.clients.errors import Lost, RefusedRequest
from gateway.simulation.network.pipe import WHOLE
from gateway.simulation.programs.program import ConnectedProgram
from gateway.simulation.programs.repertoire import Repertoire
from gateway.simulation.publishes import Fate
from gateway.simulation.scene import Scene
from gateway.simulation.topology import TOPICS, SharedTopology
from gateway.simulation.world.tasks import Promise

#: AMQP's code for a queue that does not exist.
NOT_FOUND: Final = 404

#: The share of publishers that publish very many messages in one write: more than a turn handles.
_SHARE_OF_FLOODS: Final = 0.08
_FLOOD: Final = 400


class AmqpProgram(ConnectedProgram):
    """A program of an AMQP client."""

    client: AmqpClient

    def __init__(self, scene: Scene, topology: SharedTopology, number: int, random: Random) -> None:
        super().__init__(scene, topology, number, random)
        self.client = AmqpClient(scene, self.name)

    async def is_confirmed(self, answer: Promise[bool]) -> bool:
        """Return whether a publish was confirmed, or refused.

        :raises Lost: if the store has failed, and with it what was not confirmed before.
        """
        is_confirmed = await answer
        if not is_confirmed and self.scene.process.has_failed:
            raise Lost("the store has failed")
        return is_confirmed


class TopologyProgram(AmqpProgram):
    """Declares the shared topology."""

    kind = "topology"

    async def work(self) -> bool:
        """Declare and bind everything; a repetition changes nothing."""
        topology = self.topology
        if topology.exchange != TOPICS:
            declare = commands.Exchange.Declare(exchange=topology.exchange, exchange_type="topic", durable=True)
            await self.client.request(declare)
        for plan in topology.queues:
            await self.client.declare(plan.name, arguments=plan.arguments, durable=plan.is_durable)
            for key in plan.keys:
                await self.client.request(
                    commands.Queue.Bind(queue=plan.name, exchange=topology.exchange, routing_key=key)
                )
        return True


class ConfirmedPublisher(AmqpProgram):
    """Publishes with confirms, in batches."""

    kind = "amqp-publisher"

    def __init__(self, scene: Scene, topology: SharedTopology, number: int, random: Random) -> None:
        super().__init__(scene, topology, number, random)
        self._left = random.randint(1, 30)
        self._batch = random.choice((1, 3, 10))
        self._repertoire = Repertoire(topology, random)
        if random.random() < _SHARE_OF_FLOODS:
            self._left = self._batch = _FLOOD

    async def work(self) -> bool:
        """Publish the batches that are left."""
        await self.client.confirm()
        while self._left and not self.is_stopping:
            size = min(self._batch, self._left)
            self._left -= size
            answers = [self._publish() for _ in range(size)]
            for body, answer in answers:
                is_confirmed = await self.is_confirmed(answer)
                self.scene.history.decided(body, Fate.CONFIRMED if is_confirmed else Fate.REFUSED)
            if self.random.random() < 0.3:
                await self.pause()
        return True

    def _publish(self) -> tuple[str, Promise[bool]]:
        chosen = self._repertoire.next()
        route = chosen.route
        body = self.scene.history.publish(
            self.name,
            route.places,
            is_durable=chosen.is_durable,
            topic_key=route.topic_key,
            content_type=chosen.content_type,
        )
        answer = self.client.publish(
            route.exchange,
            route.key,
            body.encode(),
            delivery_mode=2 if chosen.is_durable else 1,
            priority=chosen.priority,
            content_type=chosen.content_type,
        )
        return body, answer


class TransactionalPublisher(AmqpProgram):
    """Publishes in transactions, some of which it rolls back."""

    kind = "amqp-transactions"

    def __init__(self, scene: Scene, topology: SharedTopology, number: int, random: Random) -> None:
        super().__init__(scene, topology, number, random)
        self._left = random.randint(1, 8)
        self._group = number * 1000

    async def work(self) -> bool:
        """Commit or roll back the transactions that are left."""
        history = self.scene.history
        await self.client.request(commands.Tx.Select())
        while self._left and not self.is_stopping:
            self._left -= 1
            self._group += 1
            bodies = []
            for _ in range(self.random.randint(1, 5)):
                route = self.random.choice(self.topology.routes)
                body = history.publish(self.name, route.places, group=self._group, topic_key=route.topic_key)
                self.client.publish(route.exchange, route.key, body.encode(), delivery_mode=2)
                bodies.append(body)
            if self.random.random() < 0.7:
                await self.client.request(commands.Tx.Commit())
                for body in bodies:
                    history.decided(body, Fate.CONFIRMED)
            else:
                for body in bodies:
                    history.decided(body, Fate.ROLLED_BACK)
                await self.client.request(commands.Tx.Rollback())
        return True


class AmqpConsumer(AmqpProgram):
    """Consumes from a queue, and acknowledges, rejects or returns what it gets."""

    kind = "amqp-consumer"
    is_reader = True

    def __init__(self, scene: Scene, topology: SharedTopology, number: int, random: Random) -> None:
        super().__init__(scene, topology, number, random)
        self._queue = random.choice(topology.queues).name
        self._prefetch = random.choice((0, 1, 2, 10))
        self._settles = random.random() < 0.8
        if not self._settles:  # what is under way when the connection ends is lost, as agreed
            scene.history.places[self._queue].keeps = False
        self._thinks = random.random() < 0.5
        self._requeues = random.choice((0.0, 0.0, 0.2))
        self._rounds = 0
        self._acknowledged: list[str] = []
        self._unsettled = 0

    async def attempt(self) -> bool:
        """Connect, and work over the connection; what the last one left is no longer to be acknowledged."""
        self._rounds += 1
        return await super().attempt()

    async def work(self) -> bool:
        """Consume until the end, or until the program leaves to come back."""
        self._acknowledged = []
        self._unsettled = 0
        reader = f"{self.name}/{self._rounds}"
        self.client.on_delivery = lambda delivery: self._received(reader, delivery)
        if self._prefetch:
            await self.client.request(commands.Basic.Qos(prefetch_count=self._prefetch))
        await self.client.request(commands.Basic.Consume(queue=self._queue, no_ack=not self._settles))
        return await self.read_on(0.15)

    def refused(self, error: RefusedRequest) -> None:
        """Come back later if the queue is not there: a transient one is declared again after a restart."""
        if error.code != NOT_FOUND or self.scene.history.places[self._queue].survives:
            super().refused(error)

    async def fence(self) -> None:
        """Ask for an answer, after which the broker knows the acknowledgements so far."""
        acknowledged, self._acknowledged = self._acknowledged, []
        await self.client.request(commands.Queue.Declare(queue=self._queue, passive=True))
        self.scene.history.settled(self._queue, acknowledged)

    def _received(self, reader: str, delivery: ReceivedMessage) -> None:
        body = delivery.body.decode()
        self.scene.history.received(
            self._queue, reader, body, is_redelivered=delivery.is_redelivered, removes=not self._settles
        )
        if not self._settles:
            return
        self._unsettled += 1
        self.scene.findings.require(
            not self._prefetch or self._unsettled <= self._prefetch,
            "no more is delivered than the client asked for",
            f"{self._unsettled} to {reader} with a prefetch of {self._prefetch}",
        )
        if self._thinks:
            self.scene.world.schedule(self.random.uniform(0, 0.1), lambda: self._settle(reader, delivery, body))
        else:
            self._settle(reader, delivery, body)

    def _settle(self, reader: str, delivery: ReceivedMessage, body: str) -> None:
        if not self.client.is_connected or reader != f"{self.name}/{self._rounds}":
            return
        self._unsettled -= 1
        if self.random.random() < self._requeues:
            self.client.send(commands.Basic.Nack(delivery_tag=delivery.tag, requeue=True))
            return
        self.client.acknowledge(delivery)
        self._acknowledged.append(body)
        self.scene.history.consumed(self._queue, body)


class Drain(AmqpProgram):
    """Reads all queues until they are empty, at the end of a run."""

    kind = "drain"

    def __init__(self, scene: Scene, topology: SharedTopology, number: int, random: Random) -> None:
        super().__init__(scene, topology, number, random)
        self.client.link = WHOLE

    async def work(self) -> bool:
        """Fetch everything."""
        for plan in self.topology.queues:
            await self._read(plan.name, may_be_missing=not plan.is_durable)
        for name in sorted(self.topology.subscribed):
            await self._read(name, may_be_missing=True)
        return True

    async def _read(self, queue: str, *, may_be_missing: bool) -> None:
        history, reader = self.scene.history, f"{self.name}/{queue}"
        try:
            while (delivery := await self.client.get(queue)) is not None:
                body = delivery.body.decode()
                history.received(queue, reader, body, is_redelivered=delivery.is_redelivered)
                self.client.acknowledge(delivery)
                history.consumed(queue, body)
        except RefusedRequest as error:
            if not may_be_missing or error.code != NOT_FOUND:
                raise
            await self.client.open_channel(1)
