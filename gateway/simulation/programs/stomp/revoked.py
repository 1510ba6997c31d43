"""STOMP clients of a user whose rights are revoked."""

from random import Random

from gateway.simulation.clients.errors import Lost, RefusedRequest
from gateway.simulation.clients.stomp.client import StompClient
from gateway.simulation.programs.administrator import Administrator
from gateway.simulation.programs.rights import Rights, create_user, grant
from gateway.simulation.programs.stomp.program import VERSIONS, StompProgram
from gateway.simulation.publishes import Fate
from gateway.simulation.scene import Scene
from gateway.simulation.topology import KEYS, SharedTopology


class RevokedStomp(StompProgram):
    """Sends and subscribes with the rights of the moment. No client may get what it may not send."""

    kind = "stomp-revoked"

    def __init__(self, scene: Scene, topology: SharedTopology, number: int, random: Random) -> None:
        super().__init__(scene, topology, number, random)
        self.client = StompClient(scene, self.name, random.choice(VERSIONS), user=self.name)
        self._admin = Administrator(scene, f"{self.name}-admin")
        self._left = random.randint(2, 4)

    async def attempt(self) -> bool:
        """Come with all rights, and lose some of them."""
        await create_user(self._admin, self.name)
        return await super().attempt()

    async def work(self) -> bool:
        """Use changing rights; a refusal ends the connection."""
        while self._left and not self.is_stopping:
            self._left -= 1
            rights = self.random.choice(tuple(Rights))
            await grant(self._admin, self.name, rights)
            if self.random.random() < 0.5:
                await self._try_send(rights)
            else:
                headers = {"destination": f"/topic/own.{self.name}", "id": str(self._left)}
                await self._try("SUBSCRIBE", headers, b"", is_permitted=rights.may_subscribe)
        return True

    async def _try_send(self, rights: Rights) -> None:
        history, route = self.scene.history, self.topology.route(self.random.choice(KEYS))
        places, key = (route.places, route.topic_key) if rights.may_publish else ((), None)
        body = history.publish(self.name, places, topic_key=key)
        headers = {"destination": self.topic_destination(route.key), "persistent": "true"}
        await self._try("SEND", headers, body.encode(), is_permitted=rights.may_publish)
        history.decided(body, Fate.CONFIRMED)

    async def _try(self, command: str, headers: dict[str, str], body: bytes, *, is_permitted: bool) -> None:
        """Send a frame, whose receipt must come if it is permitted. :raises Lost: after a refusal that is right."""
        try:
            await self.client.ask(command, headers, body)
        except RefusedRequest as error:
            if is_permitted or not error.text.startswith("access_refused"):
                raise
            raise Lost("the refusal ends the connection") from None
        self.scene.findings.require(is_permitted, "permissions hold", f"{self.name}: {command} {headers}")
