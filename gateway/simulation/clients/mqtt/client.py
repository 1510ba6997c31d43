"""An MQTT client: one session, over one connection after another."""

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from gateway.simulation.clients.client import SimulatedClient
from gateway.simulation.clients.errors import Lost, RefusedRequest
from gateway.simulation.clients.mqtt import writing
from gateway.simulation.clients.mqtt.packets import Login, PacketKind, ReceivedPacket, UnreadablePacket
from gateway.simulation.clients.mqtt.reading import PacketReader
from gateway.simulation.clients.mqtt.session import ClientSession, OutgoingPublish
from gateway.simulation.scene import Scene
from gateway.simulation.world.tasks import Promise, within

T = TypeVar("T")

#: Time for an answer, in seconds: longer than any hold-up that a run causes.
ANSWER_S: Final = 90.0

#: Reasons from which on an answer is an error.
FAILURES: Final = 0x80

#: CONNACK's reasons of a broker that is not ready, or stops: 3.1.1 and 5.0.
_UNAVAILABLE: Final = frozenset((3, 0x88, 0x8B))

#: The broker's limit for clients without a Receive Maximum (``mqtt.prefetch``).
_USUAL_RECEIVE_MAXIMUM: Final = 10


class MqttClient(SimulatedClient):
    """One client. ``on_message`` gets each message once that the handshakes make one of, ``on_published`` the answer.

    With ``answers_itself`` each message is acknowledged at once; otherwise the program calls ``acknowledge``.
    ``ended_with`` is the reason of the broker's DISCONNECT, ``was_cut`` whether the network ended the last connection.
    """

    def __init__(self, scene: Scene, name: str, login: Login) -> None:
        super().__init__(scene, name)
        self.login = login
        self.session = ClientSession()
        self.on_message: Callable[[ReceivedPacket], None] = lambda packet: None
        self.on_published: Callable[[OutgoingPublish, int], None] = lambda publish, reason: None
        self.on_repeated: Callable[[OutgoingPublish], None] = lambda publish: None
        self.answers_itself = True
        self.ended_with: int | None = None
        self.was_cut = False
        self._reader = PacketReader(login.version)
        self._answers: dict[tuple[PacketKind, int], Promise[ReceivedPacket]] = {}
        self._progress: list[Promise[None]] = []
        self._end: Promise[None] = Promise()
        self._unanswered: set[int] = set()

    # Requests

    async def connect(self) -> bool:
        """Connect and log in, and resend what has no answer; return whether the broker had the session.

        :raises Lost: if that fails. :raises RefusedRequest: if the broker refuses the login.
        """
        self._open("mqtt")
        self._reader = PacketReader(self.login.version)
        self._answers, self._progress, self._unanswered = {}, [], set()
        self._end = Promise()
        self.ended_with = None
        answer = await self._request(writing.connect(self.login), PacketKind.CONNACK, 0)
        if answer.reason:
            self.drop()
            if answer.reason in _UNAVAILABLE:
                raise Lost("the broker is not ready")
            raise RefusedRequest(answer.reason, "CONNECT")
        if (
            self.login.version == 3
        ):  # CONNACK does not tell (MQTT 3.1, 3.2): the client goes on as if the session is there
            self.scene.findings.require(not answer.is_session_present, "3.1 has no flag for sessions", self.name)
            return not self.login.is_clean
        if answer.is_session_present and self.login.is_clean:
            self.scene.findings.add("a clean start has no session", self.name)
        return answer.is_session_present

    def resume(self, is_present: bool) -> None:
        """Resend what has no answer, in its order (4.4); without a session at the broker, forget it."""
        if not is_present:
            self.session.clear()
        for publish in self.session.outgoing.values():
            if publish.is_received:
                self._acknowledge(PacketKind.PUBREL, publish.packet_id)
            else:
                self.on_repeated(publish)
                self._send_publish(publish, is_dup=True)

    def publish(
        self, topic: str, payload: bytes, *, qos: int, is_retained: bool = False, content_type: str | None = None
    ) -> None:
        """Publish a message; ``on_published`` is called with the answer, if the QoS has one."""
        packet_id = self.session.next_id() if qos else 0
        publish = OutgoingPublish(packet_id, topic, payload, qos, is_retained, content_type)
        if qos:
            self.session.outgoing[packet_id] = publish
        self._send_publish(publish, is_dup=False)

    async def subscribe(self, filters: Sequence[tuple[str, int]]) -> Sequence[int]:
        """Subscribe to filters, each with its options; return the reasons."""
        packet_id = self.session.next_id()
        self.scene.trace.add(self.name, f"-> SUBSCRIBE {packet_id} {list(filters)}")
        packet = writing.subscribe(self.login.version, packet_id, filters)
        return (await self._request(packet, PacketKind.SUBACK, packet_id)).reasons

    async def unsubscribe(self, filters: Sequence[str]) -> None:
        """Unsubscribe from filters."""
        packet_id = self.session.next_id()
        self.scene.trace.add(self.name, f"-> UNSUBSCRIBE {packet_id} {list(filters)}")
        packet = writing.unsubscribe(self.login.version, packet_id, filters)
        await self._request(packet, PacketKind.UNSUBACK, packet_id)

    async def ping(self) -> None:
        """Ask for an answer, after which the broker knows all earlier packets."""
        await self._request(writing.ping(), PacketKind.PINGRESP, 0)

    def progress(self) -> Promise[None]:
        """Return a promise that is fulfilled by the next answer to a publish."""
        promise: Promise[None] = Promise()
        if self._connection is None:
            promise.fail(Lost("the connection ended"))
        self._progress.append(promise)
        return within(self.scene.world, promise, ANSWER_S, f"{self.name}: the answer to a publish")

    def acknowledge(self, packet: ReceivedPacket) -> None:
        """Answer a message of QoS 1 or 2."""
        if packet.qos == 1:
            self._unanswered.discard(packet.packet_id)
            self._acknowledge(PacketKind.PUBACK, packet.packet_id)
        elif packet.qos == 2:
            self._acknowledge(PacketKind.PUBREC, packet.packet_id)

    async def disconnect(self, reason: int = 0) -> bool:
        """Send DISCONNECT and wait for the end; return whether the broker ended the connection, not the network."""
        if self._connection is None:
            return False
        self.scene.trace.add(self.name, f"-> DISCONNECT {reason}")
        self._connection.send(writing.disconnect(self.login.version, reason))
        await self.until_ended()
        return not self.was_cut

    def until_ended(self) -> Promise[None]:
        """Return a promise that is fulfilled by the end of the connection."""
        return within(self.scene.world, self._end, ANSWER_S, f"{self.name}: the end of the connection")

    async def _request(self, packet: bytes, kind: PacketKind, packet_id: int) -> ReceivedPacket:
        if self._connection is None:
            raise Lost("the connection ended")
        promise = self._answers[kind, packet_id] = Promise[ReceivedPacket]()
        self._connection.send(packet)
        return await within(self.scene.world, promise, ANSWER_S, f"{self.name}: {kind.name}")

    def _send_publish(self, publish: OutgoingPublish, *, is_dup: bool) -> None:
        if self.scene.trace.is_on:
            self.scene.trace.add(self.name, f"-> PUBLISH {publish}{' again' if is_dup else ''}")
        if self._connection is not None:
            self._connection.send(
                writing.publish(
                    self.login.version,
                    publish.topic,
                    publish.payload,
                    qos=publish.qos,
                    packet_id=publish.packet_id,
                    is_retained=publish.is_retained,
                    is_dup=is_dup,
                    content_type=publish.content_type,
                )
            )

    def _acknowledge(self, kind: PacketKind, packet_id: int) -> None:
        self.scene.trace.add(self.name, f"-> {kind.name} {packet_id}")
        if self._connection is not None:
            self._connection.send(writing.acknowledge(kind, packet_id))

    # Input

    def received(self, data: bytes) -> None:
        """Handle bytes of the broker."""
        try:
            for packet in self._reader.feed(data):
                if self._connection is None:
                    return
                self._handle(packet)
        except (UnreadablePacket, ValueError) as error:
            self.scene.findings.add("what the broker sends can be read", f"{self.name}: {error}")
            self.drop()

    def closed(self) -> None:
        """Handle the end of the connection."""
        connection, self._connection = self._connection, None
        self.was_cut = connection is None or connection.was_cut
        self.scene.trace.add(self.name, "connection ended")
        self._end.fulfil(None)
        for promise in self._answers.values():
            promise.fail(Lost("the connection ended"))
        for waiting in self._progress:
            waiting.fail(Lost("the connection ended"))

    def _handle(self, packet: ReceivedPacket) -> None:
        if self.scene.trace.is_on:
            self.scene.trace.add(self.name, f"<- {_shown(packet)}")
        match packet.kind:
            case PacketKind.PUBLISH:
                self._handle_message(packet)
            case PacketKind.PUBREL:
                self.session.received.pop(packet.packet_id, None)
                self._unanswered.discard(packet.packet_id)
                self._acknowledge(PacketKind.PUBCOMP, packet.packet_id)
            case PacketKind.PUBACK | PacketKind.PUBREC | PacketKind.PUBCOMP:
                self._handle_answer(packet)
            case PacketKind.DISCONNECT:
                self.ended_with = packet.reason
            case _:
                promise = self._answers.pop((packet.kind, packet.packet_id), None)
                if promise is None:
                    self.scene.findings.add("each request is answered once", f"{self.name}: {_shown(packet)}")
                else:
                    promise.fulfil(packet)

    def _handle_message(self, packet: ReceivedPacket) -> None:
        """Handle a message; one of QoS 2 whose identifier waits for PUBREL is the same again (4.3.3, method A)."""
        if packet.qos:
            self._check_window(packet)
        if packet.qos == 2:
            earlier = self.session.received.get(packet.packet_id)
            self.session.received[packet.packet_id] = packet.payload
            if earlier is not None:
                self.scene.findings.require(
                    earlier == packet.payload and packet.is_dup,
                    "a packet identifier is free before it is used again",
                    f"{self.name}: {_shown(packet)} instead of {earlier!r}",
                )
                self.acknowledge(packet)
                return
        if self.login.version == 5:
            body = packet.payload.decode(errors="replace")
            self.scene.history.check_properties(self.name, body, packet.content_type, None)
        self.on_message(packet)
        if self.answers_itself:
            self.acknowledge(packet)

    def _check_window(self, packet: ReceivedPacket) -> None:
        """Check the identifier, and the number of messages without an answer (4.9)."""
        require = self.scene.findings.require
        require(
            packet.packet_id not in self._unanswered,
            "a packet identifier is free before it is used again",
            f"{self.name}: {_shown(packet)}",
        )
        self._unanswered.add(packet.packet_id)
        most = self.login.receive_maximum or _USUAL_RECEIVE_MAXIMUM
        require(
            len(self._unanswered) <= most,
            "no more than Receive Maximum messages are unacknowledged",
            f"{self.name}: {sorted(self._unanswered)} of {most}",
        )

    def _handle_answer(self, packet: ReceivedPacket) -> None:
        publish = self.session.outgoing.get(packet.packet_id)
        is_wanted = publish is not None and packet.kind is (
            PacketKind.PUBACK if publish.qos == 1 else PacketKind.PUBCOMP if publish.is_received else PacketKind.PUBREC
        )
        if publish is None or not is_wanted:
            self.scene.findings.add("each publish is answered once", f"{self.name}: {_shown(packet)} for {publish}")
            return
        if packet.kind is PacketKind.PUBREC and packet.reason < FAILURES:
            publish.is_received = True
            self._acknowledge(PacketKind.PUBREL, packet.packet_id)
        else:
            del self.session.outgoing[packet.packet_id]
        if packet.kind is not PacketKind.PUBCOMP:
            self.on_published(publish, packet.reason)
        progress, self._progress = self._progress, []
        for promise in progress:
            promise.fulfil(None)


def _shown(packet: ReceivedPacket) -> str:
    match packet.kind:
        case PacketKind.PUBLISH:
            flags = f"{' dup' if packet.is_dup else ''}{' retained' if packet.is_retained else ''}"
            return f"PUBLISH {packet.packet_id} QoS {packet.qos}{flags} {packet.topic!r} {packet.payload[:40]!r}"
        case PacketKind.CONNACK:
            return f"CONNACK {packet.reason}{' session present' if packet.is_session_present else ''}"
        case _:
            return f"{packet.kind.name} {packet.packet_id} {' '.join(f'{reason:#x}' for reason in packet.reasons)}"
