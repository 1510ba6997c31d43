"""MQTT clients that publish retained messages, and read them as new subscribers."""

from random import Random
from typing import Final

from gateway.simulation.clients.mqtt.client import FAILURES, MqttClient
from gateway.simulation.clients.mqtt.packets import Login, ReceivedPacket
from gateway.simulation.clients.mqtt.session import OutgoingPublish
from gateway.simulation.programs.mqtt.program import VERSIONS, MqttProgram
from gateway.simulation.scene import Scene
from gateway.simulation.topology import SharedTopology
from gateway.simulation.world.tasks import Promise

#: The time in which a new subscriber gets what is retained, in seconds.
_SOON_S: Final = 20.0

#: The Retain Handling that asks for no retained message, and the time in which none comes then, in seconds.
_NONE: Final = 2
_MOMENT_S: Final = 1.0

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
        self._reader = MqttClient(scene, f"{self.name}-reader", Login(f"{self.name}-reader", random.choice(VERSIONS)))
        self._left = random.randint(1, 10)
        self._packets: list[ReceivedPacket] = []
        self._came: Promise[ReceivedPacket | None] = Promise()
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
            content_type = self.random.choice(self.topology.content_types)
            body = self.publish(self._route, qos, is_retained=True, content_type=content_type)
            self._written.append(_number_of(body))

    def published(self, publish: OutgoingPublish, reason: int) -> None:
        """Count the answer to a publish."""
        super().published(publish, reason)
        self._answered += 1  # answers come in the order of the publishes (MQTT-4.6.0-2, -3)
        if reason < FAILURES:
            self._confirmed = self._answered

    async def _look(self) -> None:
        """Subscribe as a new client, and check what comes."""
        reader = self._reader
        self._packets, self._came = [], Promise()
        reader.on_message = self._received
        is_v5 = reader.login.version == 5
        handling = self.random.choice((0, 0, 1, _NONE)) if is_v5 else 0
        keeps_flag = is_v5 and self.random.random() < 0.5
        await reader.connect()
        try:
            confirmed = self._confirmed
            options = self.random.choice((0, 1)) | keeps_flag << 3 | handling << 4
            await reader.subscribe([(self._route.topic, options)])
            packet = await self._next(_MOMENT_S if handling == _NONE else _SOON_S)
            if not reader.is_connected:
                return
            if handling == _NONE:
                # a removal is not kept: one that comes was published after the subscription, and all have one number
                old = [_number_of(each.payload.decode()) for each in self._packets if each.is_retained and each.payload]
                is_right = not set(old) & set(self._written[:confirmed])
                self.scene.findings.require(is_right, "Retain Handling is heeded", f"{self.name}: {old}")
            else:
                self._check(packet, self._written[max(confirmed - 1, 0) :] if confirmed else [_REMOVED, *self._written])
            await self._look_at_flag(keeps_flag=keeps_flag)
        finally:
            reader.drop()

    async def _look_at_flag(self, *, keeps_flag: bool) -> None:
        """Write one more value, whose RETAIN flag is kept if the subscription asks for it (3.8.3.1)."""
        reader, body = self._reader, self.publish(self._route, 1, is_retained=True)
        self._written.append(_number_of(body))
        ends_s = self.scene.world.now_s + _SOON_S
        while reader.is_connected and self.client.is_connected and self.scene.world.now_s < ends_s:
            packet = next((each for each in self._packets if each.payload == body.encode()), None)
            if packet is not None:
                details = f"{self.name}: {packet}"
                self.scene.findings.require(packet.is_retained is keeps_flag, "Retain As Published is heeded", details)
                return
            await self.pause()

    def _received(self, packet: ReceivedPacket) -> None:
        self._packets.append(packet)
        self._came.fulfil(packet)

    async def _next(self, seconds: float) -> ReceivedPacket | None:
        """Return the first packet that the reader gets in some time; ``None`` without one."""
        came = self._came
        self.scene.world.schedule(seconds, lambda: came.fulfil(None))
        self._reader.until_ended().when_done(lambda: came.fulfil(None))
        return await came

    def _check(self, packet: ReceivedPacket | None, possible: list[int]) -> None:
        number = _REMOVED if packet is None else _number_of(packet.payload.decode())
        self.scene.findings.require(
            number in possible,
            "a new subscriber gets the newest retained message",
            f"{self.name}: {number} instead of one of {possible}",
        )


def _number_of(body: str) -> int:
    return int(body.rpartition(":")[2]) if body else _REMOVED
