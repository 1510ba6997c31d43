"""MQTT clients that publish."""

from random import Random

from gateway.simulation.programs.mqtt.program import MqttProgram
from gateway.simulation.scene import Scene
from gateway.simulation.topology import KEYS, SharedTopology


class MqttPublisher(MqttProgram):
    """Publishes with one QoS. With QoS 1 and 2 its session goes on after a lost connection."""

    kind = "mqtt-publisher"

    def __init__(self, scene: Scene, topology: SharedTopology, number: int, random: Random) -> None:
        super().__init__(scene, topology, number, random)
        self._qos = random.choice((0, 1, 1, 2, 2))
        if self._qos:
            self.use_session()
        self._left = random.randint(1, 20)
        self._window = random.choice((1, 3, 10))
        self._idles = random.choice((0.2, 0.8))

    async def work(self) -> bool:
        """Publish what is left, with some publishes under way at a time."""
        outgoing = self.client.session.outgoing
        while (self._left and not self.is_stopping) or outgoing:
            while self._left and not self.is_stopping and len(outgoing) < self._window:
                self._left -= 1
                self.publish(self.topology.route(self.random.choice(KEYS)), self._qos)
                if self.random.random() < self._idles:
                    await self.pause()
            if outgoing:
                await self.client.progress()
            else:
                await self.client.ping()
        await self.client.disconnect()
        return True
