"""MQTT clients of a user whose rights are revoked, and who is deleted."""

from random import Random
from typing import Final

from gateway.simulation.clients.errors import Lost, RefusedRequest
from gateway.simulation.clients.mqtt.client import FAILURES
from gateway.simulation.clients.mqtt.session import OutgoingPublish
from gateway.simulation.programs.administrator import Administrator
from gateway.simulation.programs.mqtt.program import MqttProgram
from gateway.simulation.programs.rights import Rights, create_user, grant
from gateway.simulation.scene import Scene
from gateway.simulation.topology import KEYS, SharedTopology
from gateway.simulation.world.tasks import within

#: The time in which the broker ends the connections of a deleted user, in seconds.
_SOON_S: Final = 5.0


class RevokedMqtt(MqttProgram):
    """Publishes and subscribes with the rights of the moment. No client may get what it may not publish."""

    kind = "mqtt-revoked"

    def __init__(self, scene: Scene, topology: SharedTopology, number: int, random: Random) -> None:
        super().__init__(scene, topology, number, random)
        self.log_in_with(user=self.name)
        self._admin = Administrator(scene, f"{self.name}-admin")
        self._left = random.randint(2, 4)
        self._reason = 0

    async def attempt(self) -> bool:
        """Come with all rights, and lose some of them."""
        await create_user(self._admin, self.name)
        return await super().attempt()

    async def work(self) -> bool:
        """Use changing rights; at the end the user is deleted."""
        while self._left and not self.is_stopping:
            self._left -= 1
            rights = self.random.choice(tuple(Rights))
            await grant(self._admin, self.name, rights)
            if not await self._try_publish(rights):
                return False
            await self._try_subscribe(rights)
        await self._admin.delete("users", self.name)
        if self.client.is_connected:
            await within(self.scene.world, self.client.until_ended(), _SOON_S, f"{self.name}: the end of the user")
        await self._require_unknown()
        return True

    async def _try_publish(self, rights: Rights) -> bool:
        """Publish with QoS 1; return whether the connection is open afterwards."""
        route = self.topology.route(self.random.choice(KEYS))
        if rights.may_publish:
            self.publish(route, 1)
        else:
            body = self.scene.history.publish(self.name, (), qos=1)
            self.client.publish(route.topic, body.encode(), qos=1)
        try:
            await self.client.progress()
        except Lost:
            if rights.may_publish:
                raise
            return False
        if self.scene.process.has_failed:
            raise Lost("the store has failed")
        is_right = (self._reason < FAILURES) is rights.may_publish
        self.scene.findings.require(is_right, "permissions hold", f"{self.name} publishes with {rights.name}")
        return True

    async def _try_subscribe(self, rights: Rights) -> None:
        reasons = await self.client.subscribe([(f"own/{self.name}", 1)])
        is_right = (reasons[0] < FAILURES) is rights.may_subscribe
        self.scene.findings.require(is_right, "permissions hold", f"{self.name} subscribes with {rights.name}")

    async def _require_unknown(self) -> None:
        try:
            await self.client.connect()
        except RefusedRequest:
            return
        self.scene.findings.add("permissions hold", f"{self.name} logs in, although it is deleted")

    def published(self, publish: OutgoingPublish, reason: int) -> None:
        """Record the answer to a publish."""
        super().published(publish, reason)
        self._reason = reason
