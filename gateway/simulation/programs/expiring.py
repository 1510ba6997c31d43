"""A queue whose messages expire into another queue."""

from random import Random
from typing import Any, Final

from gateway.simulation.history import MessagePlace
from gateway.simulation.programs.amqp import AmqpProgram
from gateway.simulation.publishes import Fate
from gateway.simulation.scene import Scene
from gateway.simulation.topology import SharedTopology

#: How late a message may expire, in seconds: turns, slices and readings of the clock take their time.
_TOLERANCE_S: Final = 0.5

#: The share of queues whose messages expire behind others too, and a time limit longer than those that some have.
_SHARE_OF_ANYWHERE: Final = 0.4
_LONG_S: Final = 2.0

#: The time limit of some messages, in seconds.
_OWN_S: Final = 0.02

#: Looks at the dead letters until all must be there: a broken connection is noticed after a second at most.
_MOST_LOOKS: Final = 5


class ExpiringQueue(AmqpProgram):
    """Publishes to a queue with a time limit, and fetches from it.

    A message is either fetched in time, or dead-lettered into a second queue: once, with its reason, and never lost.
    """

    kind = "expiring"

    def __init__(self, scene: Scene, topology: SharedTopology, number: int, random: Random) -> None:
        super().__init__(scene, topology, number, random)
        self._queue, self._dead = f"{self.name}.queue", f"{self.name}.dead"
        self._ttl_s = random.choice((0.0, 0.05, 0.3))
        self._expires_anywhere = random.random() < _SHARE_OF_ANYWHERE
        if self._expires_anywhere:
            self._ttl_s = random.choice((0.3, _LONG_S))
        self._left = random.randint(3, 12)
        self._in_time: dict[str, float] = {}  # body: the latest time at which it expires
        self._confirmed: set[str] = set()
        self._fetched: set[str] = set()
        self._dead_letters: set[str] = set()
        scene.history.add_place(MessagePlace(self._queue, keeps=False))
        scene.history.add_place(MessagePlace(self._dead, keeps=False, is_ordered=False))

    async def work(self) -> bool:
        """Publish and fetch; at the end read the dead letters."""
        arguments: dict[str, Any] = {"x-message-ttl": int(self._ttl_s * 1000), "x-dead-letter-exchange": ""}
        if self._expires_anywhere:
            arguments["x-expire-mode"] = "anywhere"
        await self.client.declare(self._dead, durable=True)
        await self.client.declare(
            self._queue, durable=True, arguments={**arguments, "x-dead-letter-routing-key": self._dead}
        )
        await self.client.confirm()
        while self._left and not self.is_stopping:
            self._left -= 1
            await self._publish()
            if self.random.random() < 0.5:
                await self._fetch()
            await self.pause()
        while await self._fetch():
            pass
        await self._leave_some()
        for _ in range(_MOST_LOOKS):
            await self._read_dead_letters()
            missing = sorted(self._confirmed - self._fetched - self._dead_letters)
            if not missing:
                break
            await self.scene.sleep(_TOLERANCE_S)  # a broken connection holds what it got until the broker notices
        is_known = not self.scene.world.has_jumped
        self.scene.findings.require(
            not (missing and is_known), "an expired message is dead-lettered", ", ".join(missing)
        )
        return True

    async def _leave_some(self) -> None:
        """Publish some more, the last one with a shorter time limit, and see that they expire without a fetch."""
        for expiration in (None, None, str(int(_OWN_S * 1000))):
            await self._publish(expiration)
        if self._expires_anywhere:
            await self.scene.sleep(_OWN_S + _TOLERANCE_S)
            await self._require_left(2)
        await self.scene.sleep(self._ttl_s + _TOLERANCE_S)
        await self._require_left(0)

    async def _require_left(self, most: int) -> None:
        answer = await self.client.declare(self._queue, passive=True)
        self.scene.findings.require(
            answer.message_count <= most or self.scene.world.has_jumped,
            "a message expires by itself",
            f"{answer.message_count} are left in {self._queue}",
        )

    async def _publish(self, expiration: str | None = None) -> None:
        body = self.scene.history.publish(self.name, (self._queue, self._dead))
        answer = self.client.publish("", self._queue, body.encode(), delivery_mode=2, expiration=expiration)
        if await self.is_confirmed(answer):
            self.scene.history.decided(body, Fate.CONFIRMED)
            self._confirmed.add(body)
        self._in_time[body] = self.scene.world.now_s + self._ttl_s

    async def _fetch(self) -> bool:
        asked_s = self.scene.world.now_s
        message = await self.client.get(self._queue)
        if message is None:
            return False
        body = message.body.decode()
        self.scene.history.received(self._queue, self.name, body, is_redelivered=message.is_redelivered)
        latest_s = self._in_time.get(body, asked_s) + _TOLERANCE_S
        self.scene.findings.require(
            asked_s <= latest_s or self.scene.world.has_jumped,  # time limits follow the wall clock, as RabbitMQ's
            "an expired message is not delivered",
            f"{body} {asked_s - latest_s:.3f} s late",
        )
        self.client.acknowledge(message)
        self._fetched.add(body)
        return True

    async def _read_dead_letters(self) -> None:
        while (message := await self.client.get(self._dead)) is not None:
            body = message.body.decode()
            self.scene.history.received(self._dead, self.name, body, is_redelivered=message.is_redelivered)
            deaths = (message.properties.headers or {}).get("x-death", [])
            reasons = [(death.get("queue"), death.get("reason")) for death in deaths]
            self.scene.findings.require(
                reasons == [(self._queue, "expired")], "a dead letter has its history", f"{body}: {reasons}"
            )
            self.client.acknowledge(message)
            self._dead_letters.add(body)


class BoundedQueue(AmqpProgram):
    """A queue with a limit, which refuses or drops messages above it."""

    kind = "bounded"

    def __init__(self, scene: Scene, topology: SharedTopology, number: int, random: Random) -> None:
        super().__init__(scene, topology, number, random)
        self._rounds = 0
        self._limit = random.randint(1, 5)
        self._refuses = random.random() < 0.5
        self._left = random.randint(1, 5)

    async def work(self) -> bool:
        """Fill the queue above its limit; see that the right messages are there."""
        history, findings = self.scene.history, self.scene.findings
        self._rounds += 1  # what the lost connection of the last round held may return to its queue late
        queue = f"{self.name}.{self._rounds}"
        history.add_place(MessagePlace(queue, keeps=False))
        overflow = "reject-publish" if self._refuses else "drop-head"
        arguments = {"x-max-length": self._limit, "x-overflow": overflow}
        await self.client.declare(queue, durable=True, arguments=arguments)
        await self.client.confirm()
        while self._left and not self.is_stopping:
            self._left -= 1
            bodies = [history.publish(self.name, (queue,)) for _ in range(self._limit + 2)]
            answers = [self.client.publish("", queue, body.encode(), delivery_mode=2) for body in bodies]
            confirmed = [body for body, answer in zip(bodies, answers, strict=True) if await self.is_confirmed(answer)]
            wanted = confirmed if self._refuses else bodies[-self._limit :]
            findings.require(
                len(confirmed) == (self._limit if self._refuses else len(bodies)),
                "a limit refuses what is above it",
                f"{queue}: {len(confirmed)} of {len(bodies)} confirmed, limit {self._limit}",
            )
            found = []
            while (message := await self.client.get(queue)) is not None:
                found.append(message.body.decode())
                history.received(queue, self.name, found[-1], is_redelivered=message.is_redelivered)
                self.client.acknowledge(message)
            findings.require(found == wanted, "a limit keeps the right messages", f"{found} instead of {wanted}")
        return True
