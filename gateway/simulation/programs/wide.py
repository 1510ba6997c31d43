"""A client whose messages go to many queues, through several exchanges, while one of the queues comes and goes."""

from random import Random
from typing import Any, Final

from pamqp import commands

from gateway.simulation.clients.amqp import AmqpClient
from gateway.simulation.clients.errors import Lost, RefusedRequest
from gateway.simulation.history import MessagePlace
from gateway.simulation.programs.amqp import AmqpProgram
from gateway.simulation.programs.program import CONNECTION_FORCED
from gateway.simulation.publishes import Fate
from gateway.simulation.scene import Scene
from gateway.simulation.topology import SharedTopology
from gateway.simulation.world.tasks import Promise

#: The types of the first exchange: a fanout exchange routes all kinds of messages to all of its queues.
_TYPES: Final = ("fanout", "headers", "topic", "direct")

#: The kinds of messages, which are their routing keys and a header. Nothing is bound for the last one.
_KINDS: Final = ("one", "two", "none")

#: The share of clients that publish in transactions, and of those whose queues include a stream.
_SHARE_OF_TRANSACTIONS: Final = 0.5
_SHARE_OF_STREAMS: Final = 0.3


class WideRoutes(AmqpProgram):
    """Publishes to an exchange with many queues. One more exchange is behind it, and one gets what has no route.

    ``_kinds_of`` has the kinds of messages for which each queue is bound. The queue ``_victim`` is purged, deleted and
    declared again by another client while messages are on the way to it.
    """

    kind = "amqp-wide"

    def __init__(self, scene: Scene, topology: SharedTopology, number: int, random: Random) -> None:
        super().__init__(scene, topology, number, random)
        self._other = AmqpClient(scene, f"{self.name}-other")
        self._type = random.choice(_TYPES)
        self._exchange, self._behind, self._rest = (f"{self.name}.{end}" for end in ("first", "behind", "rest"))
        queues = [f"{self.name}.{index}" for index in range(random.randint(3, 5))]
        self._kinds_of = {queue: random.choice((("one",), ("two",), ("one", "two"))) for queue in queues}
        self._victim = queues[0]
        self._stream = queues[1] if random.random() < _SHARE_OF_STREAMS else ""
        self._left = random.randint(1, 6)
        self._group = number * 1000
        self._is_transactional = random.random() < _SHARE_OF_TRANSACTIONS
        for queue in (*queues, self._behind, self._rest):
            keeps = queue not in (self._victim, self._stream)
            scene.history.add_place(MessagePlace(queue, keeps=keeps))
            if queue != self._stream:
                topology.subscribed.add(queue)

    async def work(self) -> bool:
        """Declare everything, and publish what is left."""
        await self._declare()
        await self._other.connect()
        try:
            if self._is_transactional:
                await self.client.request(commands.Tx.Select())
            else:
                await self.client.confirm()
            while self._left and not self.is_stopping:
                self._left -= 1
                await (self._transaction() if self._is_transactional else self._batch())
        finally:
            self._other.drop()
        return True

    async def _declare(self) -> None:
        client = self.client
        alternate: Any = {"alternate-exchange": self._rest}
        for exchange, kind, arguments in (
            (self._rest, "fanout", None),
            (self._behind, "fanout", None),
            (self._exchange, self._type, alternate),
        ):
            declare = commands.Exchange.Declare(
                exchange=exchange, exchange_type=kind, durable=True, arguments=arguments
            )
            await client.request(declare)
        for queue in (self._behind, self._rest):
            await client.declare(queue, durable=True)
            await client.request(commands.Queue.Bind(queue=queue, exchange=queue))
        for queue in self._kinds_of:
            await self._declare_queue(client, queue)
        bind = commands.Exchange.Bind(destination=self._behind, source=self._exchange, **_criteria("one"))
        await client.request(bind)

    async def _declare_queue(self, client: AmqpClient, queue: str) -> None:
        arguments = {"x-queue-type": "stream"} if queue == self._stream else {}
        await client.declare(queue, durable=True, arguments=arguments)
        for kind in self._kinds_of[queue]:
            await client.request(commands.Queue.Bind(queue=queue, exchange=self._exchange, **_criteria(kind)))

    def _places_of(self, kind: str) -> list[str]:
        """Return the queues that get a message of a kind."""
        if self._type == "fanout":
            return [*self._kinds_of, self._behind]
        places = [queue for queue, kinds in self._kinds_of.items() if kind in kinds]
        return [*places, *([self._behind] if kind == "one" else [])] or [self._rest]

    def _publish(self, *, group: int = 0) -> tuple[str, Promise[bool]]:
        kind = self.random.choice(_KINDS)
        is_durable = bool(group) or self.random.random() < 0.8
        places = self._places_of(kind)
        body = self.scene.history.publish(self.name, places, is_durable=is_durable, group=group)
        if self._type != "fanout" and kind != "none":
            self.scene.history.published[body].perhaps.add(self._rest)  # while the victim's bindings were the only ones
        answer = self.client.publish(
            self._exchange, kind, body.encode(), delivery_mode=2 if is_durable else 1, headers={"kind": kind}
        )
        return body, answer

    async def _batch(self) -> None:
        """Publish some messages with confirms; meanwhile the victim comes and goes."""
        answers = [self._publish() for _ in range(self.random.randint(1, 6))]
        if self.random.random() < 0.3:
            await self._disturb()
        for body, answer in answers:
            is_confirmed = await self.is_confirmed(answer)
            self.scene.history.decided(body, Fate.CONFIRMED if is_confirmed else Fate.REFUSED)

    async def _transaction(self) -> None:
        """Publish some messages in a transaction; it may be rolled back."""
        self._group += 1
        bodies = [self._publish(group=self._group)[0] for _ in range(self.random.randint(1, 6))]
        if self.random.random() < 0.2:
            for body in bodies:
                self.scene.history.decided(body, Fate.ROLLED_BACK)
            await self.client.request(commands.Tx.Rollback())
            return
        disturbance = self.scene.start(f"{self.name}-other", self._disturb_or_fail()) if self._is_disturbing() else None
        await self.client.request(commands.Tx.Commit())
        for body in bodies:
            self.scene.history.decided(body, Fate.CONFIRMED)
        while disturbance is not None and not disturbance.is_over:
            await self.pause()

    def _is_disturbing(self) -> bool:
        return self.random.random() < 0.3

    async def _disturb_or_fail(self) -> None:
        try:
            await self._disturb()
        except Lost:
            self.client.drop()
        except RefusedRequest as error:
            if error.code != CONNECTION_FORCED:
                self.refused(error)
            self.client.drop()

    async def _disturb(self) -> None:
        """Purge the victim, or delete it and declare it again."""
        if self.random.random() < 0.5:
            await self._other.request(commands.Queue.Purge(queue=self._victim))
        else:
            await self._other.request(commands.Queue.Delete(queue=self._victim))
            await self._declare_queue(self._other, self._victim)


def _criteria(kind: str) -> dict[str, Any]:
    """Return the routing key and the arguments of a binding for a kind, whatever the type of its exchange."""
    return {"routing_key": kind, "arguments": {"x-match": "all", "kind": kind}}
