"""The base of the programs of MQTT clients."""

from abc import abstractmethod
from dataclasses import replace
from random import Random
from typing import Any, Final

from gateway.simulation.clients.mqtt.client import FAILURES, MqttClient
from gateway.simulation.clients.mqtt.packets import Login, Will
from gateway.simulation.clients.mqtt.session import OutgoingPublish
from gateway.simulation.programs.program import ConnectedProgram
from gateway.simulation.publishes import Fate, PublishRoute
from gateway.simulation.scene import Scene
from gateway.simulation.topology import SharedTopology

#: The versions of clients, 3 being 3.1; one that is listed twice is as likely again.
VERSIONS: Final = (3, 4, 4, 5, 5, 5)

#: A session expiry that no run reaches, in seconds. The broker keeps sessions of 3.1.1 as long.
LONG_S: Final = 86_400


class MqttProgram(ConnectedProgram):
    """A program with one client identifier and one connection at a time.

    ``has_session`` is whether the broker must have the session: it answered something that it stores with it.
    """

    client: MqttClient

    def __init__(self, scene: Scene, topology: SharedTopology, number: int, random: Random) -> None:
        super().__init__(scene, topology, number, random)
        self.client = MqttClient(scene, self.name, Login(self.name, random.choice(VERSIONS)))
        self.client.on_published = self.published
        self.client.on_repeated = self._repeated
        self.has_session = False

    def choose_qos(self) -> int:
        """Return a QoS, most often that of the run's other clients: each handshake needs both ends."""
        return self.topology.qos if self.random.random() < 0.7 else self.random.choice((0, 1, 2))

    def use_session(self) -> None:
        """Keep the session from one connection to the next."""
        self.log_in_with(is_clean=False, expiry_s=LONG_S)

    def log_in_with(self, **fields: Any) -> None:
        """Change fields of the next CONNECT."""
        self.client.login = replace(self.client.login, **fields)

    async def connect(self) -> bool:
        """Connect, and resume the session; return whether the broker had it."""
        is_present = await self.client.connect()
        if not self.client.login.is_clean:
            self.scene.findings.require(
                is_present or not self.has_session, "a session is present until it ends", self.name
            )
        self.client.resume(is_present)
        return is_present

    def publish(
        self, route: PublishRoute, qos: int, *, is_retained: bool = False, content_type: str | None = None
    ) -> str:
        """Publish a message; return its body. Clients before 5 have no content type."""
        if self.client.login.version < 5:
            content_type = None
        body = self.scene.history.publish(
            self.name, route.places, qos=qos, topic_key=route.topic_key, content_type=content_type
        )
        self.client.publish(route.topic, body.encode(), qos=qos, is_retained=is_retained, content_type=content_type)
        return body

    def will(self, route: PublishRoute, *, qos: int = 1, delay_s: int = 0) -> tuple[str, Will]:
        """Return a will for the next login, and its body."""
        body = self.scene.history.publish(self.name, route.places, qos=qos, topic_key=route.topic_key)
        self.scene.history.published[body].is_delayed_will = delay_s > 0
        return body, Will(route.topic, body.encode(), qos, delay_s=delay_s)

    def published(self, publish: OutgoingPublish, reason: int) -> None:
        """Record the answer to a publish."""
        is_open = reason >= FAILURES and self.scene.process.has_failed  # a store that fails loses what it had
        if publish.payload and not is_open:
            fate = Fate.CONFIRMED if reason < FAILURES else Fate.REFUSED
            self.scene.history.decided(publish.payload.decode(), fate)
        # a message of QoS 1 without a queue is answered although nothing is stored; 3.x has no reason that tells
        is_stored = (publish.qos == 2 and reason < FAILURES) or (reason == 0 and self.client.login.version == 5)
        self.has_session = self.has_session or is_stored

    def _repeated(self, publish: OutgoingPublish) -> None:
        if not publish.payload:
            return
        published = self.scene.history.published[publish.payload.decode()]
        if publish.qos == 1:
            published.is_repeated = True
        published.is_resent = published.incarnation != self.scene.history.incarnation


class MqttLives(MqttProgram):
    """A client that comes and goes several times: what it looks at is between its connections.

    ``left`` is the number of its lives.
    """

    left: int

    async def attempt(self) -> bool:
        """Live until no life is left."""
        while self.left and not self.is_stopping:
            self.left -= 1
            await self.live_once()
        return True

    @abstractmethod
    async def live_once(self) -> None:
        """Connect, leave, and look at what became of it."""

    async def work(self) -> bool:
        """Do nothing: ``live_once`` connects by itself."""
        return True
