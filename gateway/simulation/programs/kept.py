"""Exchanges that keep messages, and hand them to queues that are bound later."""

from random import Random
from typing import Any, Final

from pamqp import commands

from gateway.simulation.history import MessagePlace
from gateway.simulation.programs.amqp import AmqpProgram
from gateway.simulation.publishes import Fate
from gateway.simulation.scene import Scene
from gateway.simulation.topology import SharedTopology

_KEYS: Final = ("red", "green")


class KeepingExchange(AmqpProgram):
    """Publishes to an exchange without queues, and binds new queues to it: each gets what the exchange has to keep.

    That is the recent history, or the last message of a key, also after an end of the node. ``_kept`` has what was
    confirmed, by key. After a publish without an answer another exchange is used.
    """

    kind = "kept"

    def __init__(self, scene: Scene, topology: SharedTopology, number: int, random: Random) -> None:
        super().__init__(scene, topology, number, random)
        self._is_history = random.random() < 0.5
        self._most = random.randint(1, 5)
        self._left = random.randint(2, 6)
        self._rounds = 0
        self._kept: dict[str, list[str]] = {}
        self._is_known = False

    async def work(self) -> bool:
        """Publish, and look at what new queues get."""
        await self.client.confirm()
        while self._left and not self.is_stopping:
            self._left -= 1
            if not self._is_known:
                self._rounds += 1
                self._kept = {key: [] for key in _KEYS}
            await self._declare()
            await self._publish()
            await self._look()
            await self.pause()
        return True

    @property
    def _exchange(self) -> str:
        return f"{self.name}.exchange.{self._rounds}"

    async def _declare(self) -> None:
        arguments = {"x-recent-history-length": self._most} if self._is_history else {}
        kind = "x-recent-history" if self._is_history else "x-lvc"
        await self.client.request(
            commands.Exchange.Declare(
                exchange=self._exchange, exchange_type=kind, durable=True, arguments=dict[str, Any](arguments)
            )
        )

    async def _publish(self) -> None:
        self._is_known = False
        for _ in range(self.random.randint(1, 4)):
            key = self.random.choice(_KEYS)
            body = self.scene.history.publish(self.name, ())
            answer = self.client.publish(self._exchange, key, body.encode(), delivery_mode=2)
            self.scene.findings.require(await self.is_confirmed(answer), "a valid request is not refused", body)
            self.scene.history.decided(body, Fate.CONFIRMED)
            name = _KEYS[0] if self._is_history else key
            self._kept[name] = [*self._kept[name], body][-self._most if self._is_history else -1 :]
        self._is_known = True

    async def _look(self) -> None:
        """Bind a new queue, which ends with the connection, and read it."""
        key = _KEYS[0] if self._is_history else self.random.choice(_KEYS)
        queue = f"{self.name}.queue.{self._rounds}.{self._left}"
        self.scene.history.add_place(MessagePlace(queue, keeps=False, survives=False))
        for body in self._kept[key]:
            self.scene.history.published[body].places.add(queue)
        await self.client.declare(queue, exclusive=True)
        await self.client.request(commands.Queue.Bind(queue=queue, exchange=self._exchange, routing_key=key))
        found = []
        while (message := await self.client.get(queue)) is not None:
            found.append(message.body.decode())
            self.scene.history.received(queue, self.name, found[-1], is_redelivered=message.is_redelivered)
            self.client.acknowledge(message)
        self.scene.findings.require(
            found == self._kept[key],
            "a new queue gets what its exchange keeps",
            f"{found} instead of {self._kept[key]}",
        )
        await self.client.request(commands.Queue.Delete(queue=queue))
