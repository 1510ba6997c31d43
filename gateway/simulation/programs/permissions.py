"""A user with few permissions, which an administrator changes over the HTTP API."""

from collections.abc import Sequence
from random import Random
from typing import Any, Final

from pamqp import commands

from gateway.simulation.clients.amqp import AmqpClient, ReceivedMessage
from gateway.simulation.clients.errors import Lost, RefusedRequest
from gateway.simulation.history import MessagePlace
from gateway.simulation.programs.administrator import Administrator
from gateway.simulation.programs.program import Program
from gateway.simulation.publishes import Fate
from gateway.simulation.scene import Scene
from gateway.simulation.topology import SharedTopology

#: AMQP's code for what a user may not do.
_ACCESS_REFUSED: Final = 403

#: The time in which the broker ends the connections of a deleted user, and delivers a message, in seconds.
_SOON_S: Final = 5.0

#: The channels of publishes, which a refusal closes, and of the consumer, which nothing closes.
_PUBLISHES: Final = 2
_CONSUMER: Final = 3


class LimitedUser(Program):
    """Does what it may, and is refused what it may not do: with the permissions of the moment.

    A consumer keeps the right with which it began.
    """

    kind = "limited"

    def __init__(self, scene: Scene, topology: SharedTopology, number: int, random: Random) -> None:
        super().__init__(scene, topology, number, random)
        self._queue = f"{self.name}.own"
        self._admin = Administrator(scene, f"{self.name}-admin")
        self._client = AmqpClient(scene, self.name, user=self.name)
        self._client.on_delivery = self._delivered
        self._rounds = 0
        self._came: set[str] = set()
        scene.history.add_place(MessagePlace(self._queue, keeps=False))

    async def attempt(self) -> bool:
        """Work with one's own queue alone, then without one of the permissions for it."""
        own = f"^{self.name}\\."
        await self._admin.put("users", self.name, fields={"password": self.name, "tags": ""})
        await self._admin.permit(self.name, own, f"{own}|^amq\\.default$", own)
        await self._client.connect()
        try:
            await self._client.declare(self._queue, durable=True)
            await self._consume()
            await self._publish(is_permitted=True)
            strange = self.topology.queues[0].name
            await self._require_refused(
                (
                    commands.Queue.Declare(queue="strange"),
                    commands.Queue.Purge(queue=strange),
                    commands.Basic.Get(queue=strange),
                    commands.Basic.Consume(queue=strange),
                    commands.Queue.Delete(queue=strange),
                    commands.Exchange.Delete(exchange=self.topology.exchange),
                    commands.Queue.Bind(queue=strange, exchange=self.topology.exchange, routing_key="#"),
                )
            )
            await self._admin.permit(self.name, own, "^$", own)
            await self._publish(is_permitted=False)
            await self._admin.permit(self.name, own, f"{own}|^amq\\.default$", "^$")
            await self._require_refused(
                (
                    commands.Basic.Get(queue=self._queue),
                    commands.Basic.Consume(queue=self._queue),
                    commands.Queue.Purge(queue=self._queue),
                )
            )
            await self._require_delivered(await self._publish(is_permitted=True))
            await self._require_deleted()
        finally:
            self._client.drop()
        return True

    async def _require_deleted(self) -> None:
        """Delete the user, whose connection must end, and who must not log in again."""
        await self._admin.delete("users", self.name)
        ends_s = self.scene.world.now_s + _SOON_S
        while self._client.is_connected and self.scene.world.now_s < ends_s:
            await self.pause()
        self.scene.findings.require(not self._client.is_connected, "a deleted user's connections end", self.name)
        try:
            await self._client.connect()
        except Lost:  # a refused login ends the connection without a word
            return
        else:
            self.scene.findings.add("permissions hold", f"{self.name} logs in, although it is deleted")

    async def _consume(self) -> None:
        self._rounds += 1
        await self._client.open_channel(_CONSUMER)
        await self._client.request(commands.Basic.Consume(queue=self._queue, no_ack=True), _CONSUMER)

    def _delivered(self, delivery: ReceivedMessage) -> None:
        body, reader = delivery.body.decode(), f"{self.name}/{self._rounds}"
        self._came.add(body)
        history = self.scene.history
        history.received(self._queue, reader, body, is_redelivered=delivery.is_redelivered, removes=True)

    async def _require_delivered(self, body: str) -> None:
        """Wait for a message that was confirmed: the consumer had the right to read when it began."""
        ends_s = self.scene.world.now_s + _SOON_S
        while body not in self._came and self.scene.world.now_s < ends_s:
            if not self._client.is_connected:
                raise Lost("the connection ended")
            await self.pause()
        self.scene.findings.require(body in self._came, "a consumer goes on without the right to begin", body)

    async def _publish(self, *, is_permitted: bool) -> str:
        body = self.scene.history.publish(self.name, (self._queue,))
        await self._client.open_channel(_PUBLISHES)
        await self._client.confirm(_PUBLISHES)
        try:
            answer = self._client.publish("", self._queue, body.encode(), channel=_PUBLISHES, delivery_mode=2)
            is_confirmed = await answer
        except RefusedRequest as error:
            if is_permitted or error.code != _ACCESS_REFUSED:
                raise
            self.scene.history.decided(body, Fate.REFUSED)
            return body
        if not is_confirmed and self.scene.process.has_failed:
            raise Lost("the store has failed")
        self.scene.findings.require(is_permitted, "permissions hold", f"{self.name} published to {self._queue}")
        self.scene.findings.require(is_confirmed, "a valid request is not refused", body)
        await self._client.request(commands.Channel.Close(200, "bye", 0, 0), _PUBLISHES)
        return body

    async def _require_refused(self, methods: Sequence[Any]) -> None:
        for method in methods:
            try:
                await self._client.request(method)
            except RefusedRequest as error:
                if error.code != _ACCESS_REFUSED:
                    raise
                if not self._client.is_connected:
                    raise Lost("the connection ended") from None
                await self._client.open_channel(1)
            else:
                self.scene.findings.add("permissions hold", f"{self.name}: {method.name}")
                return
