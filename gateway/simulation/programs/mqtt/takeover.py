"""Two MQTT clients with the same identifier, and sessions that expire."""

from dataclasses import replace
from random import Random
from typing import Final

from gateway.simulation.clients.mqtt.client import MqttClient
from gateway.simulation.programs.mqtt.program import MqttLives, MqttProgram
from gateway.simulation.scene import Scene
from gateway.simulation.topology import SharedTopology
from gateway.simulation.world.tasks import within

#: DISCONNECT's reason for a connection whose client connected again.
_TAKEN_OVER: Final = 0x8E

#: That of a node that stops.
_STOPPING: Final = 0x8B

#: The time in which the broker ends the old connection, and a session that expired, in seconds.
_SOON_S: Final = 5.0

#: The expiry of sessions that end, in seconds.
_EXPIRY_S: Final = 2


class SecondLogin(MqttProgram):
    """Connects twice under one identifier: the second connection takes the session over and ends the first."""

    kind = "mqtt-takeover"

    def __init__(self, scene: Scene, topology: SharedTopology, number: int, random: Random) -> None:
        super().__init__(scene, topology, number, random)
        self.use_session()
        self._other = MqttClient(scene, f"{self.name}-second", self.client.login)
        self._left = random.randint(1, 3)

    async def work(self) -> bool:
        """Let the second connection take over the first."""
        await self.client.subscribe([(f"own/{self.name}", 1)])
        self.has_session = True
        ended = self.client.until_ended()
        try:
            is_present = await self._other.connect()
            self.scene.findings.require(is_present, "a session is present until it ends", self._other.name)
            await within(self.scene.world, ended, _SOON_S, f"{self.name}: the end of the old connection")
            is_stopping = self.client.ended_with == _STOPPING and self.scene.process.is_stopping
            if self.client.login.version == 5 and not self.client.was_cut and self._other.is_connected:
                self.scene.findings.require(
                    self.client.ended_with == _TAKEN_OVER or is_stopping,
                    "a takeover ends the old connection with its reason",
                    f"{self.name}: {self.client.ended_with}",
                )
            await self._other.ping()
        finally:
            self._other.drop()
        self._left -= 1
        return not self._left


class ExpiringSession(MqttLives):
    """Comes back before its session expires, or after: then the broker must have forgotten it."""

    kind = "mqtt-expiry"

    def __init__(self, scene: Scene, topology: SharedTopology, number: int, random: Random) -> None:
        super().__init__(scene, topology, number, random)
        login = self.client.login
        self.client.login = replace(login, version=5, is_clean=False, expiry_s=_EXPIRY_S)
        self.left = random.randint(1, 3)

    async def live_once(self) -> None:
        """Leave, wait, and look whether the session is there."""
        client, world = self.client, self.scene.world
        try:
            await client.connect()
            await client.subscribe([(f"own/{self.name}", 1)])
            started, offset_ms = self.scene.process.starts, world.wall_ms() - int(world.now_s * 1000)
            client.drop()
            left_s = world.now_s
            is_early = self.random.random() < 0.5
            await self.scene.sleep(self.random.uniform(0, 0.5) if is_early else _EXPIRY_S + _SOON_S)
            is_present = await client.connect()
        finally:
            client.drop()
        jump_ms = abs(world.wall_ms() - int(world.now_s * 1000) - offset_ms)
        if self.scene.process.starts != started or jump_ms > 10:
            return  # the clock, or the time of the end of the connection, may be another one
        if world.now_s < left_s + _EXPIRY_S:
            self.scene.findings.require(is_present, "a session is present until it ends", self.name)
        elif not is_early:
            self.scene.findings.require(not is_present, "a session expires", self.name)
