"""A user with few permissions, which an administrator changes over the HTTP API."""

from collections.abc import Sequence
from random import Random
from typing import Any, Final

from pamqp import commands

from gateway.simulation.clients.amqp import AmqpClient
from gateway.simulation.clients.errors import Lost, RefusedRequest
from gateway.simulation.history import MessagePlace
from gateway.simulation.programs.administrator import Administrator
from gateway.simulation.programs.program import Program
from gateway.simulation.publishes import Fate
from gateway.simulation.scene import Scene
from gateway.simulation.topology import SharedTopology

#: AMQP's code for what a user may not do.
_ACCESS_REFUSED: Final = 403

#: The time in which the broker ends the connections of a deleted user, in seconds.
_SOON_S: Final = 5.0


class LimitedUser(Program):
    """Does what it may, and is refused what it may not do: with the permissions of the moment."""

    kind = "limited"

    def __init__(self, scene: Scene, topology: SharedTopology, number: int, random: Random) -> None:
        super().__init__(scene, topology, number, random)
        self._queue = f"{self.name}.own"
        self._admin = Administrator(scene, f"{self.name}-admin")
        self._client = AmqpClient(scene, self.name, user=self.name)
        scene.history.add_place(MessagePlace(self._queue, keeps=False))

    async def attempt(self) -> bool:
        """Work with one's own queue alone, then without one of the permissions for it."""
        own = f"^{self.name}\\."
        await self._admin.put("users", self.name, fields={"password": self.name, "tags": ""})
        await self._admin.permit(self.name, own, f"{own}|^amq\\.default$", own)
        await self._client.connect()
        try:
            await self._client.declare(self._queue, durable=True)
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
                (commands.Basic.Get(queue=self._queue), commands.Queue.Purge(queue=self._queue))
            )
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

    async def _publish(self, *, is_permitted: bool) -> None:
        body = self.scene.history.publish(self.name, (self._queue,))
        await self._client.open_channel(2)
        await self._client.confirm(2)
        try:
            await self._client.publish("", self._queue, body.encode(), channel=2)
        except RefusedRequest as error:
            if is_permitted or error.code != _ACCESS_REFUSED:
                raise
            self.scene.history.decided(body, Fate.REFUSED)
            return
        self.scene.findings.require(is_permitted, "permissions hold", f"{self.name} published to {self._queue}")
        await self._client.request(commands.Channel.Close(200, "bye", 0, 0), 2)

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
