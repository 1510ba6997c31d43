"""Messages that are published again within the window in which a queue or an exchange remembers them."""

from random import Random
from typing import Any, Final

from pamqp import commands

from gateway.simulation.history import MessagePlace
from gateway.simulation.programs.amqp import AmqpProgram
from gateway.simulation.publishes import Fate
from gateway.simulation.scene import Scene
from gateway.simulation.topology import SharedTopology

#: The window of each run in milliseconds, ``None`` for one that lasts, and how late a key may be forgotten, in seconds.
_WINDOWS_MS: Final = (None, None, 300)
_TOLERANCE_S: Final = 0.2

#: More keys than a run has.
_SIZE: Final = 1000


class DeduplicatedMessages(AmqpProgram):
    """Publishes several messages with one key: one of them comes, the others are dropped, and all are confirmed.

    With a short window a key is used again after it: then that message comes too. ``_groups`` has the messages of each
    key and window.
    """

    kind = "deduplicated"

    def __init__(self, scene: Scene, topology: SharedTopology, number: int, random: Random) -> None:
        super().__init__(scene, topology, number, random)
        self._queue, self._exchange = f"{self.name}.queue", f"{self.name}.exchange"
        self._type = random.choice(("", "fanout", "x-message-deduplication"))
        self._window_ms = random.choice(_WINDOWS_MS)
        self._left = random.randint(1, 6)
        self._key = 0
        self._groups: list[list[str]] = []
        scene.history.add_place(MessagePlace(self._queue, keeps=False, is_ordered=False))

    async def work(self) -> bool:
        """Publish the messages of the keys that are left."""
        await self._declare()
        await self.client.confirm()
        while self._left and not self.is_stopping:
            self._left -= 1
            self._key += 1
            await self._publish_group()
            if self._window_ms is not None and self.random.random() < 0.5:
                await self.scene.sleep(self._window_ms / 1000 + _TOLERANCE_S)
                await self._publish_group()
        return True

    async def finish(self) -> None:
        """Read the queue: one message of each group is there, if one was confirmed."""
        if not self._groups:
            return
        await self.client.connect()
        try:
            found = await self._all()
        finally:
            self.client.drop()
        for group in self._groups:
            there = [body for body in group if body in found]
            is_confirmed = any(self.scene.history.published[body].fate is Fate.CONFIRMED for body in group)
            findings, details = self.scene.findings, f"of {group} there are {there}"
            findings.require(len(there) <= 1, "a duplicate within the window is dropped", details)
            findings.require(there or not is_confirmed, "a message that is no duplicate is not dropped", details)

    async def _declare(self) -> None:
        arguments: dict[str, Any] = {"x-message-deduplication": True, "x-cache-size": _SIZE}
        if self._window_ms is not None:
            arguments["x-cache-ttl"] = self._window_ms
        if not self._type:
            await self.client.declare(self._queue, durable=True, arguments=arguments)
            return
        if self._type != "fanout":
            del arguments["x-message-deduplication"]
        await self.client.request(
            commands.Exchange.Declare(
                exchange=self._exchange, exchange_type=self._type, durable=True, arguments=arguments
            )
        )
        await self.client.declare(self._queue, durable=True)
        await self.client.request(commands.Queue.Bind(queue=self._queue, exchange=self._exchange))

    async def _publish_group(self) -> None:
        """Publish messages with one key within its window. If they take longer, nothing is known of them."""
        group: list[str] = []
        began_s = self.scene.world.now_s
        self._groups.append(group)
        try:
            for _ in range(self.random.randint(1, 3)):
                batch = [self._publish(group) for _ in range(self.random.randint(1, 2))]
                for body, answer in batch:
                    is_confirmed = await self.is_confirmed(answer)
                    self.scene.findings.require(is_confirmed, "a duplicate is confirmed", body)
                    self.scene.history.decided(body, Fate.CONFIRMED)
        finally:
            took_s = self.scene.world.now_s - began_s
            is_late = self._window_ms is not None and (took_s > self._window_ms / 1000 or self.scene.world.has_jumped)
            if is_late:
                self._groups.remove(group)

    def _publish(self, group: list[str]) -> tuple[str, Any]:
        body = self.scene.history.publish(self.name, (self._queue,))
        group.append(body)
        exchange, key = (self._exchange, "") if self._type else ("", self._queue)
        headers = {"x-deduplication-header": f"key {self._key}"}
        return body, self.client.publish(exchange, key, body.encode(), delivery_mode=2, headers=headers)

    async def _all(self) -> set[str]:
        found = set()
        while (message := await self.client.get(self._queue)) is not None:
            body = message.body.decode()
            found.add(body)
            self.scene.history.received(self._queue, self.name, body, is_redelivered=message.is_redelivered)
        return found
