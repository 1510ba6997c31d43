"""Clients that ask for more work in one write than a turn may do."""

from random import Random
from typing import Final

from gateway.simulation.network.pipe import WHOLE
from gateway.simulation.programs.amqp import AmqpProgram
from gateway.simulation.scene import Scene
from gateway.simulation.topology import SharedTopology

#: Requests of a flood, each of which costs a turn at least one reading of the clock.
FLOOD: Final = 500

#: The body of all of them.
_BODY: Final = b"flood"


class UncachedFlood(AmqpProgram):
    """Publishes floods of messages whose routes are not cached, because they have further keys.

    No queue gets them, so they cost little but the work of their turns. The clock of such a run is a dear one: a turn
    that handles a flood whole then takes much longer than any turn may.
    """

    kind = "amqp-flood"

    def __init__(self, scene: Scene, topology: SharedTopology, number: int, random: Random) -> None:
        super().__init__(scene, topology, number, random)
        scene.world.make_clock_dear()
        self.client.link = WHOLE
        self.client.on_return = self._returned
        self._left = random.randint(1, 2)
        self._is_mandatory = random.random() < 0.5
        self._returns = 0

    async def work(self) -> bool:
        """Publish the floods that are left."""
        await self.client.confirm()
        while self._left and not self.is_stopping:
            self._left -= 1
            self._returns = 0
            answers = [
                self.client.publish(
                    "",
                    f"{self.name}.none",
                    _BODY,
                    is_mandatory=self._is_mandatory,
                    headers={"CC": [f"{self.name}.too"]},
                )
                for _ in range(FLOOD)
            ]
            for number, answer in enumerate(answers, 1):
                self.scene.findings.require(
                    await self.is_confirmed(answer), "a valid request is not refused", f"{self.name}: publish {number}"
                )
                self.scene.findings.require(
                    not self._is_mandatory or self._returns >= number,
                    "a mandatory message without a route is returned before its confirm",
                    f"{self.name}: {self._returns} returns at confirm {number}",
                )
            await self.pause()
        return True

    def _returned(self, body: bytes) -> None:
        self._returns += 1
