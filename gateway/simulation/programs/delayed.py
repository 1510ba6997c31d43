"""Messages that are published with a delay, to an exchange or a queue."""

from random import Random
from typing import Any, Final

from pamqp import commands

from gateway.simulation.clients.amqp import ReceivedMessage
from gateway.simulation.history import MessagePlace
from gateway.simulation.programs.amqp import AmqpProgram
from gateway.simulation.publishes import Fate
from gateway.simulation.scene import Scene
from gateway.simulation.topology import SharedTopology

#: The delays of messages in milliseconds; ``None`` is none.
_DELAYS_MS: Final = (None, 20, 20, 40, 60, 80, 400, 900)

#: What the wall clock may be behind, in whole milliseconds, and the time in which a message comes once it is due.
_ROUNDING_S: Final = 0.001
_LATENESS_S: Final = 2.0
_LOOK_S: Final = 0.1


class DelayedPublishes(AmqpProgram):
    """Publishes messages with delays, and consumes them: none comes before its time, each comes once.

    They wait in an exchange, or in the queue itself.
    """

    kind = "delayed"

    def __init__(self, scene: Scene, topology: SharedTopology, number: int, random: Random) -> None:
        super().__init__(scene, topology, number, random)
        self._queue = f"{self.name}.queue"
        self._exchange = f"{self.name}.exchange" if random.random() < 0.6 else ""
        self._left = random.randint(2, 12)
        self._due_s: dict[str, float] = {}
        self._place = scene.history.add_place(MessagePlace(self._queue, is_ordered=False))

    async def work(self) -> bool:
        """Publish what is left, and consume meanwhile."""
        await self._declare()
        await self._consume()
        await self.client.confirm()
        while self._left and not self.is_stopping:
            size = min(self._left, self.random.randint(1, 4))
            self._left -= size
            for body, answer in [self._publish() for _ in range(size)]:
                is_confirmed = await self.is_confirmed(answer)
                self.scene.findings.require(is_confirmed, "a valid request is not refused", body)
                self.scene.history.decided(body, Fate.CONFIRMED)
            await self.pause()
        return True

    async def finish(self) -> None:
        """Consume everything, until all messages are due."""
        self._place.keeps = not self.scene.world.has_jumped  # a message may be due after an hour then
        if not self._due_s:
            return
        await self.client.connect()
        try:
            await self._declare()
            await self._consume()
            latest_s = max(self.scene.world.now_s, *self._due_s.values()) + _LATENESS_S
            while self._is_missing() and self.scene.world.now_s < latest_s:
                await self.scene.sleep(_LOOK_S)
        finally:
            self.client.drop()

    def _is_missing(self) -> bool:
        published, consumed = self.scene.history.published, self._place.consumed
        return any(published[body].fate is Fate.CONFIRMED and body not in consumed for body in self._due_s)

    async def _declare(self) -> None:
        if not self._exchange:
            await self.client.declare(self._queue, durable=True, arguments={"x-delayed-delivery": True})
            return
        await self.client.request(
            commands.Exchange.Declare(
                exchange=self._exchange,
                exchange_type="x-delayed-message",
                durable=True,
                arguments={"x-delayed-type": "direct"},
            )
        )
        await self.client.declare(self._queue, durable=True)
        await self.client.request(
            commands.Queue.Bind(queue=self._queue, exchange=self._exchange, routing_key=self._queue)
        )

    def _publish(self) -> tuple[str, Any]:
        body, delay_ms = self.scene.history.publish(self.name, (self._queue,)), self.random.choice(_DELAYS_MS)
        self._due_s[body] = self.scene.world.now_s + (delay_ms or 0) / 1000
        headers = None if delay_ms is None else {"x-delay": delay_ms}
        answer = self.client.publish(self._exchange, self._queue, body.encode(), delivery_mode=2, headers=headers)
        return body, answer

    async def _consume(self) -> None:
        self.client.on_delivery = self._received
        await self.client.request(commands.Basic.Consume(queue=self._queue))

    def _received(self, message: ReceivedMessage) -> None:
        body = message.body.decode()
        self.scene.history.received(self._queue, self.name, body, is_redelivered=message.is_redelivered)
        early_s = self._due_s.get(body, 0.0) - _ROUNDING_S - self.scene.world.now_s
        self.scene.findings.require(
            early_s <= 0 or self.scene.world.has_jumped,
            "a delayed message comes not before its time",
            f"{body} came {early_s:.3f} s before",
        )
        self.client.acknowledge(message)
        self.scene.history.consumed(self._queue, body)
