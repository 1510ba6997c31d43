"""MQTT clients that read: with a session that outlives their connections, or without."""

from random import Random

from gateway.simulation.clients.mqtt.client import FAILURES
from gateway.simulation.clients.mqtt.packets import ReceivedPacket
from gateway.simulation.history import MessagePlace
from gateway.simulation.programs.mqtt.program import MqttProgram
from gateway.simulation.programs.program import LONGEST_PAUSE_S
from gateway.simulation.scene import Scene
from gateway.simulation.subscriptions import TopicSubscription
from gateway.simulation.topics import filter_of
from gateway.simulation.topology import KEYS, SharedTopology
from gateway.simulation.world.tasks import Promise, within

#: What subscribers ask for. The topics of retained messages and wills are others.
PATTERNS = (*KEYS, "a.*", "*.b", "a.#", "b.#")

#: The longest time until the last message of a session comes, in seconds.
_LAST_S = 120.0

#: How often a session asks for an answer.
_SHARE_OF_FENCES = 0.7


class MqttReader(MqttProgram):
    """Receives messages of one place, and checks each."""

    is_reader = True

    def __init__(self, scene: Scene, topology: SharedTopology, number: int, random: Random) -> None:
        super().__init__(scene, topology, number, random)
        self.qos = self.choose_qos()
        self.client.on_message = self._received
        self.client.answers_itself = random.random() < 0.6
        self.place = self.scene.history.add_place(self.new_place())
        self._rounds = 0
        self._unanswered: list[tuple[int, ReceivedPacket]] = []
        self._acknowledged: list[str] = []
        self._awaited: dict[str, Promise[None]] = {}

    def new_place(self) -> MessagePlace:
        """Return the place that the client reads."""
        return MessagePlace(self.name, keeps=self.qos > 0, keeps_transient=False, qos=self.qos)

    async def connect(self) -> bool:
        """Connect, and begin to read."""
        self._rounds += 1
        self._unanswered, self._acknowledged = [], []
        return await super().connect()

    async def fence(self) -> None:
        """Ask for an answer, after which the broker knows the acknowledgements so far."""
        acknowledged, self._acknowledged = self._acknowledged, []
        await self.client.ping()
        self.scene.history.settled(self.place.name, acknowledged)

    async def request(self, subscriptions: list[TopicSubscription], options: int = 0) -> None:
        """Subscribe, after which what is published is promised."""
        filters = [(self.filter_of(each), self.qos | options) for each in subscriptions]
        reasons = await self.client.subscribe(filters)
        self.scene.findings.require(
            all(reason < FAILURES for reason in reasons), "a valid request is not refused", f"{self.name}: {reasons}"
        )
        for subscription in subscriptions:
            subscription.is_promised = True
        self.has_session = not self.client.login.is_clean

    def filter_of(self, subscription: TopicSubscription) -> str:
        """Return the filter to subscribe to."""
        return filter_of(subscription.pattern)

    async def read_all(self, end: TopicSubscription) -> None:
        """Read until a last message comes, which the client publishes to itself."""
        body = self.publish(self.topology.route(end.pattern), 1)
        came: Promise[None] = Promise()
        self._awaited[body] = came
        await within(self.scene.world, came, _LAST_S, f"{self.name}: the last message")
        await self.client.ping()

    def is_retained_right(self, packet: ReceivedPacket) -> bool:
        """Return whether the RETAIN flag is right: clear, for messages as they are published (3.3.1.3)."""
        return not packet.is_retained

    def _received(self, packet: ReceivedPacket) -> None:
        history, body = self.scene.history, packet.payload.decode()
        reader = f"{self.name}/{history.incarnation if self.place.survives else self._rounds}"
        history.received(self.place.name, reader, body, is_redelivered=packet.is_dup, removes=True)
        published = history.published.get(body)
        if published is not None:
            details = f"{self.name}: {packet.qos} for {body}"
            self.scene.findings.require(
                packet.qos == min(published.qos, self.qos), "a message has the lower QoS of publish and filter", details
            )
            topic = None if published.topic_key is None else published.topic_key.replace(".", "/")
            self.scene.findings.require(packet.topic == topic, "a message has its topic", f"{self.name}: {packet}")
        self.scene.findings.require(self.is_retained_right(packet), "RETAIN is right", f"{self.name}: {packet}")
        self._answer(packet, body)
        if body in self._awaited:
            self._awaited[body].fulfil(None)

    def _answer(self, packet: ReceivedPacket, body: str) -> None:
        if packet.qos == 0:
            return
        if self.client.answers_itself:
            self._acknowledged.append(body)
        else:  # later, but in the order of the messages (MQTT-4.6.0-2)
            self._unanswered.append((self._rounds, packet))
            self.scene.world.schedule(self.random.uniform(0, LONGEST_PAUSE_S), self._answer_oldest)

    def _answer_oldest(self) -> None:
        if self._unanswered and self.client.is_connected:
            _, packet = self._unanswered.pop(0)
            self._acknowledged.append(packet.payload.decode())
            self.client.acknowledge(packet)


class SessionReader(MqttReader):
    """Reads in a session, which collects messages while its client is away."""

    kind = "mqtt-session"

    def __init__(self, scene: Scene, topology: SharedTopology, number: int, random: Random) -> None:
        super().__init__(scene, topology, number, random)
        self.use_session()
        self.log_in_with(receive_maximum=random.choice((None, 1, 3)) if self.client.login.version == 5 else None)
        self._patterns = random.sample(PATTERNS, random.randint(1, 2))
        self.end: TopicSubscription | None = None

    async def work(self) -> bool:
        """Read until the end, or leave to come back."""
        if self.end is None:
            await self.subscribe()
        return await self.read_on(0.2)

    async def fence(self) -> None:
        """Ask for an answer most of the times: without one, acknowledgements are under way when the client leaves."""
        if self.random.random() < _SHARE_OF_FENCES:
            await super().fence()

    async def subscribe(self) -> None:
        """Subscribe to the patterns, and to a topic of the session's own."""
        add = self.scene.history.subscriptions.open
        end = add(self.name, f"end.{self.name}")
        await self.request([*(add(self.name, pattern) for pattern in self._patterns), end])
        self.end = end

    async def finish(self) -> None:
        """Read what is left in the session."""
        end = self.end
        if end is None or not self.qos:
            return
        self.client.answers_itself = True
        await self.connect()
        await self.read_all(end)
        await self.client.disconnect()


class PassingReader(MqttReader):
    """Reads without a session: what comes while it is away is not for it."""

    kind = "mqtt-passing"

    def __init__(self, scene: Scene, topology: SharedTopology, number: int, random: Random) -> None:
        super().__init__(scene, topology, number, random)
        self._left = random.randint(0, 6)

    def new_place(self) -> MessagePlace:
        """Return the place that the client reads."""
        return MessagePlace(self.name, keeps=False, survives=False, keeps_transient=False, qos=self.qos)

    async def work(self) -> bool:
        """Subscribe, read for a while, and unsubscribe or leave."""
        topics = self.scene.history.subscriptions
        is_selfless = self.client.login.version == 5 and self.random.random() < 0.5
        pattern = self.random.choice(PATTERNS)
        subscription = topics.open(self.name, pattern, not_from=self.name if is_selfless else "")
        try:
            await self.request([subscription], options=4 if is_selfless else 0)
            for _ in range(self.random.randint(1, 4)):
                await self.scene.sleep(self.random.uniform(0.05, 0.5))
                if self._left:
                    self._left -= 1
                    self.publish(self.topology.route(self.random.choice(KEYS)), self.random.choice((0, 1)))
                await self.fence()
            topics.close(subscription)
            await self.client.unsubscribe([filter_of(pattern)])
            topics.remove(subscription)
        finally:
            topics.close(subscription)
            topics.remove(subscription)
        return self.is_stopping
