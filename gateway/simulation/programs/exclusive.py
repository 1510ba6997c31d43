"""A client with an exclusive queue, and a stranger who tries to use it."""

from random import Random
from typing import Any, Final

from pamqp import commands

from gateway.simulation.clients.amqp import AmqpClient
from gateway.simulation.clients.errors import Lost, RefusedRequest
from gateway.simulation.programs.amqp import NOT_FOUND, AmqpProgram
from gateway.simulation.scene import Scene
from gateway.simulation.topology import SharedTopology

#: AMQP's code for a queue of another connection.
_RESOURCE_LOCKED: Final = 405


class ExclusiveQueue(AmqpProgram):
    """Declares an exclusive queue. While its connection is open, no other client may use it; afterwards it is gone."""

    kind = "exclusive"

    def __init__(self, scene: Scene, topology: SharedTopology, number: int, random: Random) -> None:
        super().__init__(scene, topology, number, random)
        self._queue = f"{self.name}.queue"
        self._stranger = AmqpClient(scene, f"{self.name}-stranger")

    async def work(self) -> bool:
        """Own the queue, let the stranger try, leave, and see that it is gone."""
        await self.client.declare(self._queue, exclusive=True)
        await self._stranger.connect()
        try:
            incarnation = self.scene.history.incarnation
            await self._try(commands.Queue.Declare(queue=self._queue, passive=True))
            await self._try(commands.Basic.Consume(queue=self._queue, consumer_tag="stranger"))
            await self._try(commands.Queue.Purge(queue=self._queue))
            await self._try(commands.Queue.Delete(queue=self._queue))
            await self.client.request(commands.Queue.Declare(queue=self._queue, passive=True))
            await self.client.close()
            if incarnation == self.scene.history.incarnation:
                await self._require_gone()
        finally:
            self._stranger.drop()
        return True

    def refused(self, error: RefusedRequest) -> None:
        """Come back later if the broker has not noticed that the former connection is gone."""
        if error.code != _RESOURCE_LOCKED:
            super().refused(error)

    async def _try(self, method: Any) -> None:
        try:
            await self._stranger.request(method)
        except RefusedRequest as error:
            if error.code == _RESOURCE_LOCKED or (error.code == NOT_FOUND and not self.client.is_connected):
                if self._stranger.is_connected:
                    await self._stranger.open_channel(1)
                return
            raise
        if self.client.is_connected:
            self.scene.findings.add("an exclusive queue is its owner's alone", f"{method.name} {self._queue}")
        raise Lost("the owner is gone")

    async def _require_gone(self) -> None:
        try:
            await self._stranger.request(commands.Queue.Declare(queue=self._queue, passive=True))
        except RefusedRequest as error:
            if error.code == NOT_FOUND:
                return
            if error.code != _RESOURCE_LOCKED:
                raise
        self.scene.findings.add("an exclusive queue ends with its connection", self._queue)
