"""A queue that is deleted once it was not used for some time."""

from random import Random
from typing import Final

from pamqp import commands

from gateway.simulation.clients.errors import Lost, RefusedRequest
from gateway.simulation.history import MessagePlace
from gateway.simulation.programs.amqp import NOT_FOUND, AmqpProgram
from gateway.simulation.publishes import Fate
from gateway.simulation.scene import Scene
from gateway.simulation.topology import SharedTopology

#: The times without a use after which the queue is deleted, in seconds.
_PERIODS_S: Final = (0.1, 0.5, 1.5)

#: How late that may be, in seconds: the broker deletes nothing while its disk is full.
_TOLERANCE_S: Final = 5.0


class LeasedQueue(AmqpProgram):
    """Uses a queue in time, or too late; holds it with a consumer; and leaves it to its end.

    ``_used_s`` is the latest time at which the broker has not yet seen the last use, ``_answered_s`` the earliest at
    which it has.
    """

    kind = "leased"

    def __init__(self, scene: Scene, topology: SharedTopology, number: int, random: Random) -> None:
        super().__init__(scene, topology, number, random)
        self._period_s = random.choice(_PERIODS_S)
        self._left = random.randint(1, 3)
        self._rounds = 0
        self._used_s = self._answered_s = 0.0
        self._incarnation = 0

    async def work(self) -> bool:
        """Do the rounds that are left, each with a new queue."""
        while self._left and not self.is_stopping:
            self._left -= 1
            self._rounds += 1
            queue = f"{self.name}.{self._rounds}"
            self.scene.history.add_place(MessagePlace(queue, keeps=False))
            await self._declare(queue)
            await self._publish(queue)
            for _ in range(self.random.randint(0, 4)):
                if self.random.random() < 0.3:
                    await self._hold(queue)
                else:
                    await self.scene.sleep(self.random.uniform(0, 1.2) * self._period_s)
                if not await self._is_there(queue):
                    break
            else:
                await self.scene.sleep(self._period_s + _TOLERANCE_S + 1)
                await self._is_there(queue)
        return True

    async def _declare(self, queue: str) -> None:
        self._begin_use()
        arguments = {"x-expires": int(self._period_s * 1000)}
        await self.client.declare(queue, durable=True, arguments=arguments)
        self._answered_s = self.scene.world.now_s

    def _begin_use(self) -> None:
        self._used_s, self._incarnation = self.scene.world.now_s, self.scene.history.incarnation

    async def _publish(self, queue: str) -> None:
        """Publish a message, which is no use of a queue, and ends with it."""
        await self.client.open_channel(2)
        await self.client.confirm(2)
        body = self.scene.history.publish(self.name, (queue,))
        is_confirmed = await self.is_confirmed(
            self.client.publish("", queue, body.encode(), channel=2, delivery_mode=2)
        )
        self.scene.history.decided(body, Fate.CONFIRMED if is_confirmed else Fate.REFUSED)
        await self.client.request(commands.Channel.Close(200, "bye", 0, 0), 2)

    async def _hold(self, queue: str) -> None:
        """Keep a consumer for longer than the period; its end begins a new one."""
        try:
            answer = await self.client.request(commands.Basic.Consume(queue=queue, no_ack=True))
        except RefusedRequest as error:
            await self._require_expired(queue, error)
            return
        await self.scene.sleep(self.random.uniform(0, 3) * self._period_s)
        self._begin_use()
        await self.client.request(commands.Basic.Cancel(answer.consumer_tag))
        self._answered_s = self.scene.world.now_s

    async def _is_there(self, queue: str) -> bool:
        """Use the queue; return whether it is there, as it must be, or must not."""
        asked_s, incarnation, used_s = self.scene.world.now_s, self.scene.history.incarnation, self._used_s
        self._begin_use()
        try:
            await self.client.declare(queue, passive=True)
        except RefusedRequest as error:
            self._used_s = used_s
            await self._require_expired(queue, error)
            return False
        is_late = incarnation == self._incarnation and asked_s > self._answered_s + self._period_s + _TOLERANCE_S
        self.scene.findings.require(
            not is_late, "a queue that is not used expires", f"{queue} {asked_s - self._answered_s:.3f} s after its use"
        )
        self._answered_s = self.scene.world.now_s
        return True

    async def _require_expired(self, queue: str, error: RefusedRequest) -> None:
        """Check that a queue that is gone was not used for its period. :raises Lost: without a connection."""
        if error.code != NOT_FOUND:
            raise error
        unused_s = self.scene.world.now_s - self._used_s
        self.scene.findings.require(
            unused_s >= self._period_s, "a queue expires not before its time", f"{queue} after {unused_s:.4f} s"
        )
        if not self.client.is_connected:
            raise Lost("the connection ended")
        await self.client.open_channel(1)
