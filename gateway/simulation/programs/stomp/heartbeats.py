"""STOMP clients with heart-beats."""

from random import Random
from typing import Final

from gateway.simulation.programs.stomp.program import StompProgram
from gateway.simulation.scene import Scene
from gateway.simulation.topology import SharedTopology

#: The interval that the clients ask for, in seconds.
_INTERVAL_S: Final = 2

#: The time that turns, and pieces of a slow connection, may take, in seconds.
_LATE_S: Final = 2.0


class StompHeartbeats(StompProgram):
    """Hears the broker's heart-beats in time, or falls silent, upon which the broker ends the connection."""

    kind = "stomp-heartbeats"

    def __init__(self, scene: Scene, topology: SharedTopology, number: int, random: Random) -> None:
        super().__init__(scene, topology, number, random)
        self.client.version = random.choice(("1.1", "1.2"))
        self._is_silent = random.random() < 0.5

    async def connect(self) -> None:
        """Connect with an interval."""
        interval = _INTERVAL_S * 1000
        await self.client.connect(f"{interval},0" if self._is_silent else f"0,{interval}")

    async def work(self) -> bool:
        """Do nothing, and hear the heart-beats or the end."""
        began_s = self.scene.world.now_s
        if self._is_silent:
            await self.client.until_ended()
            silent_s = self.scene.world.now_s - began_s
            self.scene.findings.require(
                silent_s < 2 * _INTERVAL_S + _LATE_S,
                "silence beyond the heart-beats ends a connection",
                f"{self.name}: after {silent_s:.3f} s of {_INTERVAL_S} s",
            )
            return True
        await self.scene.sleep(3 * _INTERVAL_S)
        self.scene.findings.require(
            self.client.longest_silence_s < _INTERVAL_S + _LATE_S,
            "heart-beats come in time",
            f"{self.name}: a silence of {self.client.longest_silence_s:.3f} s",
        )
        return True
