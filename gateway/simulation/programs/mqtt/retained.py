"""MQTT clients that publish retained messages, and read them as new subscribers."""

from random import Random
from typing import Final

from gateway.simulation.clients.mqtt.client import FAILURES, MqttClient
from gateway.simulation.clients.mqtt.packets import Login, ReceivedPacket
from gateway.simulation.clients.mqtt.session import OutgoingPublish
from gateway.simulation.programs.mqtt.program import MqttProgram
from gateway.simulation.scene import Scene
from gateway.simulation.topology import SharedTopology
from gateway.simulation.world.tasks import Promise

#: The time in which a new subscriber gets what is retained, in seconds.
_SOON_S: Final = 20.0

#: The longest time between a value and a look at it, in seconds: the node may end and start again in it.
_LONGEST_REST_S: Final = 2.0

#: The number of the body of a removal.
_REMOVED: Final = 0


class RetainedValues(MqttProgram):
    """Writes one topic with RETAIN. New subscribers must get its newest confirmed value, or a later one.

    ``_confirmed`` is the number of that value, and ``_written`` the values in the order of publishing.
    """

    kind = "mqtt-retained"

    def __init__(self, scene: Scene, topology: SharedTopology, number: int, random: Random) -> None:
        super().__init__(scene, topology, number, random)
        self.use_session()
        self._route = topology.route(f"kept.{self.name}")
        self._reader = MqttClient(scene, f"{self.name}-reader", Login(f"{self.name}-reader", random.choice((4, 5))))
        self._left = random.randint(1, 10)
        self._written: list[int] = []
        self._answered = self._confirmed = 0  # how many of them, and how many up to the last that was confirmed

    async def work(self) -> bool:
        """Write values, and look at them from time to time."""
        while self._left and not self.is_stopping:
            self._left -= 1
            self._write()
            while len(self.client.session.outgoing) > self.random.randint(0, 2):
                await self.client.progress()
            if self.random.random() < 0.4:
                await self.scene.sleep(self.random.uniform(0, _LONGEST_REST_S))
                await self._look()
        return True

    def _write(self) -> None:
        qos = self.random.choice((1, 1, 2))
        if self.random.random() < 0.2:
            self._written.append(_REMOVED)
            self.client.publish(self._route.topic, b"", qos=qos, is_retained=True)
        else:
            body = self.publish(self._route, qos, is_retained=True)
            self._written.append(_number_of(body))

    def published(self, publish: OutgoingPublish, reason: int) -> None:
        """Count the answer to a publish."""
        super().published(publish, reason)
        self._answered += 1  # answers come in the order of the publishes (MQTT-4.6.0-2, -3)
        if reason < FAILURES:
            self._confirmed = self._answered

    async def _look(self) -> None:
        """Subscribe as a new client, and check the first value that comes."""
        reader, came = self._reader, Promise[ReceivedPacket | None]()
        reader.on_message = came.fulfil
        await reader.connect()
        try:
            confirmed = self._confirmed
            await reader.subscribe([(self._route.topic, self.random.choice((0, 1)))])
            self.scene.world.schedule(_SOON_S, lambda: came.fulfil(None))
            reader_end = reader.until_ended()
            reader_end.when_done(lambda: came.fulfil(None))
            packet = await came
            if not reader.is_connected:
                return
            self._check(packet, self._written[max(confirmed - 1, 0) :] if confirmed else [_REMOVED, *self._written])
        finally:
            reader.drop()

    def _check(self, packet: ReceivedPacket | None, possible: list[int]) -> None:
        number = _REMOVED if packet is None else _number_of(packet.payload.decode())
        self.scene.findings.require(
            number in possible,
            "a new subscriber gets the newest retained message",
            f"{self.name}: {number} instead of one of {possible}",
        )


def _number_of(body: str) -> int:
    return int(body.rpartition(":")[2]) if body else _REMOVED
