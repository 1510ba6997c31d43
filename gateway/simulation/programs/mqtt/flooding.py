"""MQTT clients that ask for more work in one packet than a turn may do."""

from random import Random
from typing import Final

from gateway.simulation.network.pipe import WHOLE
from gateway.simulation.programs.flooding import FLOOD
from gateway.simulation.programs.mqtt.program import MqttProgram
from gateway.simulation.scene import Scene
from gateway.simulation.topology import SharedTopology

_GRANTED: Final = 1


class SubscribingFlood(MqttProgram):
    """Subscribes to very many filters with one packet, and unsubscribes from them. Nothing is published there."""

    kind = "mqtt-flood"

    def __init__(self, scene: Scene, topology: SharedTopology, number: int, random: Random) -> None:
        super().__init__(scene, topology, number, random)
        scene.world.make_clock_dear()
        self.client.link = WHOLE
        self._left = random.randint(1, 2)

    async def work(self) -> bool:
        """Send the floods that are left."""
        filters = [f"{self.name}/{number}" for number in range(FLOOD)]
        while self._left and not self.is_stopping:
            self._left -= 1
            reasons = await self.client.subscribe([(each, _GRANTED) for each in filters])
            self.scene.findings.require(
                list(reasons) == [_GRANTED] * FLOOD, "a valid request is not refused", f"{self.name}: {reasons}"
            )
            await self.client.unsubscribe(filters)
            await self.pause()
        return True
