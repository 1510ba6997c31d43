"""MQTT clients that publish."""

from random import Random
from typing import Final

from gateway.simulation.programs.mqtt.program import MqttProgram
from gateway.simulation.programs.repertoire import SHARES_OF_REPETITIONS
from gateway.simulation.publishes import PublishRoute
from gateway.simulation.scene import Scene
from gateway.simulation.topology import KEYS, SharedTopology

#: The longest wait for subscribers before the first publish, in seconds.
_LONGEST_START_S: Final = 0.4

#: The longest time after a publish in which its answer is under way, in seconds.
_LONGEST_FLIGHT_S: Final = 0.05


class MqttPublisher(MqttProgram):
    """Publishes with one QoS. With QoS 1 and 2 its session goes on after a lost connection."""

    kind = "mqtt-publisher"

    def __init__(self, scene: Scene, topology: SharedTopology, number: int, random: Random) -> None:
        super().__init__(scene, topology, number, random)
        self._qos = self.choose_qos()
        if self._qos:
            self.use_session()
        self._left = random.randint(1, 20)
        self._window = random.choice((1, 3, 10))
        self._idles = random.choice((0.2, 0.8))
        self._has_begun = False
        self._leaves = random.choice((0.0, 0.2))
        self._repeats = random.choice(SHARES_OF_REPETITIONS)
        self._route: PublishRoute | None = None
        self._content_type: str | None = None

    async def work(self) -> bool:
        """Publish what is left, with some publishes under way at a time."""
        outgoing = self.client.session.outgoing
        if not self._has_begun:
            self._has_begun = True
            await self.scene.sleep(self.random.uniform(0, _LONGEST_START_S))
        while (self._left and not self.is_stopping) or outgoing:
            while self._left and not self.is_stopping and len(outgoing) < self._window:
                self._left -= 1
                if self._route is None or self.random.random() >= self._repeats:
                    self._route = self.topology.route(self.random.choice(KEYS))
                    self._content_type = self.random.choice(self.topology.content_types)
                self.publish(self._route, self._qos, content_type=self._content_type)
                if self.random.random() < self._idles:
                    await self.pause()
            if self.random.random() < self._leaves:
                await self.scene.sleep(self.random.uniform(0, _LONGEST_FLIGHT_S))
                return False  # leave while answers are under way, and come back
            if outgoing:
                await self.client.progress()
            else:
                await self.client.ping()
        await self.client.disconnect()
        return True
