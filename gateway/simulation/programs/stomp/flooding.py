"""STOMP clients that send more messages at once than a turn may handle."""

from random import Random

from gateway.simulation.network.pipe import WHOLE
from gateway.simulation.programs.flooding import FLOOD
from gateway.simulation.programs.stomp.program import StompProgram
from gateway.simulation.scene import Scene
from gateway.simulation.topology import SharedTopology


class SendingFlood(StompProgram):
    """Sends floods of messages with a new routing key each, for which no route is cached. No queue gets them."""

    kind = "stomp-flood"

    def __init__(self, scene: Scene, topology: SharedTopology, number: int, random: Random) -> None:
        super().__init__(scene, topology, number, random)
        scene.world.make_clock_dear()
        self.client.link = WHOLE
        self._left = random.randint(1, 2)

    async def work(self) -> bool:
        """Send the floods that are left; each has one receipt, for its last message."""
        while self._left and not self.is_stopping:
            self._left -= 1
            for number in range(1, FLOOD):
                self.client.send("SEND", self._headers(number), b"flood")
            await self.client.ask("SEND", self._headers(FLOOD), b"flood")
            await self.pause()
        return True

    def _headers(self, number: int) -> dict[str, str]:
        return {"destination": f"/exchange/amq.direct/{self.name}.{self._left}.{number}"}
