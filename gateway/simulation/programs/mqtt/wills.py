"""MQTT clients with a will."""

from enum import Enum, auto
from random import Random
from typing import Final

from gateway.simulation.programs.mqtt.program import LONG_S, MqttLives
from gateway.simulation.publishes import Fate
from gateway.simulation.scene import Scene
from gateway.simulation.topology import KEYS, SharedTopology

#: DISCONNECT's reason that lets the will be published.
_WITH_WILL: Final = 0x04

#: DISCONNECT's reason for silence.
_KEEP_ALIVE_TIMEOUT: Final = 0x8D

#: The keep alive of clients that fall silent, in seconds: the broker waits one and a half times as long.
_KEEP_ALIVE_S: Final = 2

#: The time in which the broker publishes a will that is due, in seconds.
_LATE_S: Final = 3.0

#: How long before the end of the silence the client may have sent its last packet, in seconds.
_EARLY_S: Final = 1.0


class _Ending(Enum):
    """A way in which a client leaves."""

    DROP = auto()
    SILENCE = auto()
    DISCONNECT = auto()
    DISCONNECT_WITH_WILL = auto()


class WillClient(MqttLives):
    """Leaves in several ways, and knows whether its will is owed."""

    kind = "mqtt-will"

    def __init__(self, scene: Scene, topology: SharedTopology, number: int, random: Random) -> None:
        super().__init__(scene, topology, number, random)
        self._is_v5 = self.client.login.version == 5
        self.left = random.randint(1, 4)

    async def live_once(self) -> None:
        """Connect with a will, leave, and connect again to see what became of it."""
        delay_s = self.random.choice((0, 0, 2)) if self._is_v5 else 0
        ending = self.random.choice([each for each in _Ending if self._is_v5 or each.name != "DISCONNECT_WITH_WILL"])
        body, will = self.will(self.topology.route(self.random.choice(KEYS)), delay_s=delay_s)
        keep_alive_s = _KEEP_ALIVE_S if ending is _Ending.SILENCE else 0
        self.log_in_with(will=will, keep_alive_s=keep_alive_s, is_clean=not delay_s, expiry_s=LONG_S if delay_s else 0)
        incarnation = self.scene.history.incarnation
        await self.connect()
        await self.scene.sleep(self.random.uniform(0, 0.5))
        is_owed = await self._leave(ending)
        if is_owed is None or not self._is_same(incarnation):
            return  # a kill, or a connection that broke meanwhile, leaves it open
        if not is_owed:
            self.scene.history.decided(body, Fate.WITHHELD)
        elif delay_s and self.random.random() < 0.5:
            await self._return_early(body, incarnation, delay_s)
        else:
            await self.scene.sleep(delay_s + _LATE_S)
            await self._fence()
            if self._is_same(incarnation):
                self.scene.history.decided(body, Fate.CONFIRMED)

    async def _leave(self, ending: _Ending) -> bool | None:
        """Leave; return whether the will is owed, ``None`` if that is open."""
        client = self.client
        match ending:
            case _Ending.DROP:
                client.drop()
                return True
            case _Ending.SILENCE:
                return await self._stay_silent()
            case _Ending.DISCONNECT:
                return False if await self._disconnect() else None
            case _Ending.DISCONNECT_WITH_WILL:
                return True if await self._disconnect(_WITH_WILL) else None

    async def _disconnect(self, reason: int = 0) -> bool:
        """Send DISCONNECT; return whether the broker must have read it: one that stops may have closed before."""
        return await self.client.disconnect(reason) and not self.scene.process.is_stopping

    async def _stay_silent(self) -> bool | None:
        """Say nothing until the broker ends the connection."""
        client, began_s = self.client, self.scene.world.now_s
        await client.until_ended()
        silent_s = self.scene.world.now_s - began_s
        self.scene.findings.require(
            silent_s < 1.5 * _KEEP_ALIVE_S + _LATE_S,
            "silence beyond the keep alive ends a connection",
            f"{self.name}: after {silent_s:.3f} s of {_KEEP_ALIVE_S} s",
        )
        if client.ended_with == _KEEP_ALIVE_TIMEOUT:
            self.scene.findings.require(
                silent_s > 1.5 * _KEEP_ALIVE_S - _EARLY_S,
                "a connection may be silent within its keep alive",
                f"{self.name}: after {silent_s:.3f} s of {_KEEP_ALIVE_S} s",
            )
        return True if client.was_cut or silent_s > _KEEP_ALIVE_S else None  # None: the node stops

    async def _return_early(self, body: str, incarnation: int, delay_s: int) -> None:
        """Connect before the delay is over: then the will must not be published (MQTT-3.1.3-9)."""
        left_s = self.scene.world.now_s
        await self.pause()
        self.log_in_with(will=None)
        is_present = await self.client.connect()
        if is_present and self._is_same(incarnation) and self.scene.world.now_s < left_s + delay_s:
            self.scene.history.decided(body, Fate.WITHHELD)
        self.client.drop()

    async def _fence(self) -> None:
        """Connect and wait for an answer that follows what is on disk: the will is there too."""
        self.log_in_with(will=None, is_clean=False, expiry_s=LONG_S)
        try:
            await self.client.connect()
            await self.client.subscribe([(f"fence/{self.name}", 1)])
            await self.client.unsubscribe([f"fence/{self.name}"])
        finally:
            self.client.drop()

    def _is_same(self, incarnation: int) -> bool:
        """Return whether the node has lived since ``incarnation``."""
        process = self.scene.process
        return self.scene.history.incarnation == incarnation and process.node is not None
