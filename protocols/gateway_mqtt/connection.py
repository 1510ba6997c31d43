"""The server side of one MQTT connection as a state machine: bytes in, kernel calls, packets out; no sockets, no clock.

CONNECT comes first and once (MQTT-3.1.0-1, MQTT-3.1.0-2). After it, ``REQUESTS`` dispatches each packet type. PUBLISH
and acknowledgements without a reason, the most frequent packets, bypass that table. A protocol violation ends the
connection; a 5.0 client also gets the reason (4.13).
"""

from collections.abc import Callable, Iterator
from typing import Final

from gateway.access import PermissionUnknown
from gateway.kernel.broker.connections import PeerLoad
from gateway.kernel.budget import WORK_PER_CLOCK_READING
from gateway.kernel.errors import ProtocolViolation, Refused
from gateway.kernel.messages.queued_message import QueuedMessage
from gateway.kernel.queueing.consumer import ConsumedQueue
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.net.machine import EXPIRED, Driver, Machine, Phase
from gateway.net.turn import TurnParticipant
from gateway_mqtt.codec.data_types import LARGEST_PACKET, require_minimal
from gateway_mqtt.codec.decoding import check_flags, connect_version, decode_auth, decode_connect
from gateway_mqtt.codec.encoding import connack, disconnect
from gateway_mqtt.codec.errors import MqttError, protocol_error
from gateway_mqtt.codec.incoming import IncomingPackets, remaining_length
from gateway_mqtt.codec.packet_types import PacketType, name_of
from gateway_mqtt.codec.packets import Auth
from gateway_mqtt.codec.properties import Properties, PropertyId
from gateway_mqtt.codec.reasons import ReasonCode, reason_for
from gateway_mqtt.conversation import Conversation
from gateway_mqtt.handshake.handshake import Handshake
from gateway_mqtt.listener_context import MqttContext
from gateway_mqtt.meter import MeterCount
from gateway_mqtt.requests import REQUESTS
from gateway_mqtt.state import State
from gateway_mqtt.traffic.inflight import Inflight
from gateway_mqtt.traffic.packet_outbox import PacketOutbox

#: An ``int``: comparing with a member of an enumeration costs a call.
_PUBLISH: Final = int(PacketType.PUBLISH)

#: The first byte of a PUBACK with its flags (Table 2-2). One comes for each message sent, so it bypasses
#: ``Conversation.acknowledge``, see docs/adr/0020.
_PUBACK: Final = PacketType.PUBACK << 4

#: Module constants, because each packet needs them: the lookup of an enum member takes 40 ns in Python 3.11.
_OPEN: Final = State.OPEN
_CLOSED: Final = State.CLOSED

#: Packets between two checks of the time budget: the smallest have five bytes, so one read can bring thousands.
_CHECK_MASK: Final = 0x7F

#: The limit of bytes a client may send before its login is finished.
_EARLY_LIMIT: Final = 64 * 1024

#: The longest reason text sent, in characters: it may contain long text of the client.
_LONGEST_REASON: Final = 200


class Connection(Machine):
    """One client's connection. Owns its outbox; ``conversation`` exists once the client has entered its virtual host.

    ``packet_outbox`` is the outbox under its own type; ``_inflight`` is the conversation's. ``is_from_page`` marks a
    WebSocket opened by a browser. ``expiry_s`` is when the credentials expire (Unix time; 0 is never): each tick reads
    it. ``handshake`` exists until the login has ended, or longer if the client may authenticate again. ``_task`` is a
    request in progress that takes more than one turn.
    """

    def __init__(self, settings: MqttContext, driver: Driver, participant: TurnParticipant) -> None:
        self.settings = settings
        self.driver = driver
        self.outbox = self.packet_outbox = PacketOutbox(participant)
        self.state = State.AWAITING_CONNECT
        self.version = 0
        self.keep_alive_s = 0
        self.has_published = False
        self.is_busy = False
        self.is_held = False
        self._budget = settings.broker.journal.budget
        self.explains = True
        self.is_from_page = False
        self.max_packet_size = LARGEST_PACKET
        self.handshake: Handshake | None = Handshake(self)
        self.expiry_s = 0.0
        self.conversation: Conversation | None = None
        self._inflight: Inflight | None = None
        self._incoming: IncomingPackets | None = None
        self._limit = settings.max_packet_size_unauthenticated
        self._packets = 0
        self._task: Iterator[None] | None = None
        self._lost_user: str | None = None  # the user name, once the transport is lost

    # Queries of the transport

    @property
    def phase(self) -> Phase:
        """The phase of the connection for the transport."""
        return self.state.phase

    @property
    def vhost(self) -> VirtualHost | None:
        """The client's virtual host; ``None`` before login."""
        return None if self.conversation is None else self.conversation.scope.vhost

    @property
    def user_name(self) -> str:
        """The user name; empty before login. Long jobs of the client act for it after the transport is lost."""
        if self._lost_user is not None:
            return self._lost_user
        if self.conversation is not None:
            return self.conversation.scope.user_name
        return "" if self.handshake is None else self.handshake.user_name

    @property
    def client_id(self) -> str:
        """The client identifier; empty before CONNECT and after the end."""
        if self.conversation is not None:
            return self.conversation.scope.client_id
        return "" if self.handshake is None else self.handshake.client_id

    @property
    def surface(self) -> str:
        """The protocol's name in the audit record."""
        return "MQTT"

    @property
    def expires_at_s(self) -> float:
        """The Unix time at which the client's token expires; 0 is never."""
        return self.expiry_s

    def expire(self) -> None:
        """End the connection: the client's token has expired."""
        self.end(ReasonCode.NOT_AUTHORIZED, EXPIRED)

    @property
    def has_unsettled(self) -> bool:
        """Whether deliveries wait for the client's acknowledgement."""
        return self._inflight is not None and len(self._inflight) > 0

    def load(self) -> PeerLoad | None:
        """Add what was counted to the totals of the virtual host; return what the connection holds."""
        return None if self.conversation is None else self.conversation.load()

    def unsettled(self) -> list[tuple[ConsumedQueue, QueuedMessage, int]]:
        """Return the deliveries that wait for an acknowledgement; the channel is always 0."""
        deliveries = {} if self._inflight is None else self._inflight.deliveries
        return [(delivery.queue, delivery.entry, 0) for delivery in deliveries.values()]

    def count(self, tally: MeterCount) -> None:
        """Add this connection's packets and publishes to ``tally``."""
        tally.packets_received += self._packets
        tally.packets_sent += self.packet_outbox.packets
        if self.conversation is not None:
            self.conversation.count(tally)

    # Input

    @property
    def awaited(self) -> int:
        """The size of the packet of which a part was received, at least; 0 without one."""
        return 0 if self._incoming is None else self._incoming.awaited

    def receive(self, data: bytes) -> None:
        """Feed bytes from the peer, in pieces of any size."""
        if self.state is _CLOSED:
            self.is_held = False
            return
        if self._incoming is not None:
            data = self._incoming.feed(data)
            if self.is_busy:
                self._incoming = IncomingPackets(data, 0)
                return
            if not data and self._task is None:
                self.is_held = False
                return
            self._incoming = None
        self.is_held = False
        try:
            if self._task is not None:
                self._run_task()
            if self._task is None:
                self._read(data)
            elif data:
                self._incoming = IncomingPackets(data, 0)
        except MqttError as error:
            self.end(error.reason, str(error))
        except Refused as refusal:
            self.end(reason_for(refusal), str(refusal))
        except ProtocolViolation as violation:
            self.end(ReasonCode.PROTOCOL_ERROR, str(violation))

    def _read(self, data: bytes) -> None:
        """Handle each complete packet; keep the rest."""
        at, end, missing = 0, len(data), 1
        is_settling = False
        budget, packets = self._budget, self._packets
        try:
            while end - at > 1:
                if (
                    packets & _CHECK_MASK == _CHECK_MASK or budget.work >= WORK_PER_CLOCK_READING
                ) and budget.is_spent():
                    self.is_held = True
                    missing = 0
                    break
                if self.state is not _OPEN and not self._may_read(end - at):
                    missing = 0
                    break
                first, length, start = data[at], data[at + 1], at + 2
                if length > 0x7F:  # most packets are short, with a length of one byte
                    found = remaining_length(data, at, end, self._limit)
                    if found is None:
                        break
                    length, start = found
                    if self.version == 5:
                        require_minimal(length, start - at - 1)
                stop = start + length
                if stop > end:
                    missing = stop - end
                    break
                self._packets = packets = packets + 1
                packet_id = data[start] << 8 | data[start + 1] if length == 2 else 0
                if first == _PUBACK and packet_id and self._inflight is not None:
                    is_settling = True
                    self._inflight.accept(packet_id)
                elif self.conversation is None:
                    self._handle_login_packet(first, data[start:stop], start - at - 1)
                elif first >> 4 == _PUBLISH:
                    publishing = self.conversation.publishing
                    if publishing is None:
                        publishing = self.conversation.begin_publishing()
                    publishing.publish(first, data, start, stop)
                else:
                    is_settling = True
                    if not packet_id or not self.conversation.acknowledge(first, packet_id):
                        self._handle_packet(self.conversation, first, data[start:stop])
                        if self._task is not None:
                            at, missing = stop, 0
                            break
                at = stop
        except PermissionUnknown as unknown:  # the packet is read again once the permission is known
            self._packets, missing = packets - 1, 0
            self.wait_for(unknown)
        if at < end and self.state is not _CLOSED:
            self._incoming = IncomingPackets(data[at:], missing)
        if is_settling and self._inflight is not None and self._inflight.credit.is_awaited:
            self.resume()

    def _may_read(self, size: int) -> bool:
        """Whether the next packet may be parsed. Packets sent before the login is finished wait, up to a limit.

        :raises MqttError: beyond that limit.
        """
        if self.state in (State.AWAITING_CONNECT, State.CHALLENGED):
            return True
        if self.state is State.CLOSED:
            return False
        if size > _EARLY_LIMIT:
            text = f"{size} bytes sent before CONNACK; the limit is {_EARLY_LIMIT}"
            raise MqttError(ReasonCode.PACKET_TOO_LARGE, text)
        return False

    def _handle_packet(self, conversation: Conversation, first: int, body: bytes) -> None:
        """Handle a packet of an open connection."""
        handler = REQUESTS.get(first >> 4)
        if handler is None:
            raise protocol_error(f"{name_of(first)} from a client")
        handler(conversation, first & 0x0F, body)
        self._follow(conversation)

    def start_task(self, task: Iterator[None], work: int) -> None:
        """Start a long request as a task that yields after each step. Later packets wait until it is finished.

        ``work`` is the cost of decoding the request, in units of the time budget.
        """
        self._task = task
        self._budget.work += work
        self._run_task()

    def _run_task(self) -> None:
        """Run as many steps of the task as the turn's budget allows."""
        task, budget = self._task, self._budget
        assert task is not None
        for _ in task:
            if self.state is _CLOSED:
                break
            if budget.is_spent():
                self.is_held = True
                return
        self._task = None

    def _handle_login_packet(self, first: int, body: bytes, length_size: int) -> None:
        """Handle a packet before the connection is open: CONNECT, or AUTH in a challenge-response login.

        ``length_size`` is the size of the remaining length; only 5.0 requires its shortest form.
        """
        packet_type, handshake = first >> 4, self.handshake
        assert handshake is not None  # it stays until the login ends
        if self.state is State.AWAITING_CONNECT:
            if packet_type != PacketType.CONNECT:
                raise protocol_error(f"{name_of(first)} before CONNECT")  # MQTT-3.1.0-1
            self.version = connect_version(body)
            self.settings.meter.connects += 1
            if self.version == 5:
                require_minimal(len(body), length_size)
            check_flags(4, packet_type, first & 0x0F)
            handshake.connect(decode_connect(body))
        elif packet_type == PacketType.AUTH:
            handshake.proceed(decode_auth(self.version, first & 0x0F, body))
        elif packet_type == PacketType.DISCONNECT:
            self.close()
        else:
            raise protocol_error(f"{name_of(first)} while authenticating")  # MQTT-3.1.2-30

    def count_down(self) -> None:
        """Count down the delay of a refused login; called ``TICKS_PER_S`` times a second."""
        if self.handshake is not None:
            self.handshake.tick()

    def resume_reading(self) -> None:
        """Continue with the packets that arrived during the authentication, in a turn and within its budget."""
        if self._incoming is not None:
            self.is_held = True
            self.driver.go_on()

    def opened(self, conversation: Conversation) -> None:
        """Enter the open state: the client is in its virtual host."""
        self.conversation = conversation
        self._follow(conversation)
        self.state = State.OPEN
        self._limit = self.settings.max_packet_size
        self.driver.opened()

    def _follow(self, conversation: Conversation) -> None:
        """Keep the unacknowledged deliveries at hand, once the client receives."""
        receiving = conversation.receiving
        self._inflight = None if receiving is None or self.state is _CLOSED else receiving.inflight

    def authenticate_again(self, packet: Auth) -> None:
        """Handle an AUTH of a client that has logged in (4.12.1)."""
        if self.handshake is None:  # MQTT-4.12.0-7: CONNECT had no method
            raise protocol_error("AUTH without an Authentication Method")
        self.handshake.proceed(packet)

    # Flow control

    def resume(self) -> None:
        """Serve the consumers that waited for room in the outbox or for credit."""
        if self.conversation is not None and self.conversation.receiving is not None:
            self.conversation.receiving.delivering.resume()

    @property
    def is_resumed(self) -> bool:
        """Whether a node of the cluster goes on with a connection that another leader had."""
        return self.driver.is_resumed

    def fail_confirms(self) -> None:
        """Refuse every publish that waits for its confirm."""
        if self.conversation is not None and self.conversation.publishing is not None:
            self.conversation.publishing.fail()

    # Closing

    def end(self, reason: ReasonCode, text: str) -> None:
        """End the connection from this side, with the reason if the version can carry it (4.13)."""
        if self.state is State.CLOSED:
            return
        text = text[:_LONGEST_REASON]
        self.driver.log("connection closing", reason=text)
        packet = self.with_reason_string(text, lambda properties: self._closing_packet(reason, properties))
        if 0 < len(packet) <= self.max_packet_size:
            self.outbox.write(packet)
        self.close()

    def with_reason_string(self, text: str, write: Callable[[Properties], bytes]) -> bytes:
        """Return the packet that ``write`` builds, with a reason string if the client accepts it (MQTT-3.1.2-29).

        ``write`` takes the properties. The reason string is omitted if it would make the packet too large
        (MQTT-3.2.2-19, MQTT-3.4.2-2, MQTT-3.5.2-2, MQTT-3.7.2-2, MQTT-3.9.2-1, MQTT-3.11.2-1, MQTT-3.14.2-3).
        """
        if self.explains and self.version == 5:
            packet = write({PropertyId.REASON_STRING: text[:_LONGEST_REASON]})
            if len(packet) <= self.max_packet_size:
                return packet
        return write({})

    def _closing_packet(self, reason: ReasonCode, properties: Properties) -> bytes:
        """Return the DISCONNECT or refusing CONNACK; empty if the version has none or is not known yet."""
        if self.conversation is not None:
            return disconnect(self.version, reason, properties)
        return connack(self.version, False, reason, properties) if self.version else b""

    def close(self) -> None:
        """Close the transport and release everything the client held."""
        if self.state is not State.CLOSED:
            self.state = State.CLOSED
            self._release_all()
            self.driver.hang_up()

    def displaced(self) -> None:
        """End the connection because the same client connects again (MQTT-3.1.4-3)."""
        self.end(ReasonCode.SESSION_TAKEN_OVER, "the session was taken over by another connection")

    def force_close(self, reason: str) -> None:
        """End the connection on behalf of the operator or of a shutdown, which a kept client does not notice."""
        is_stop = "shutdown" in reason
        if is_stop and self.driver.is_kept and self.conversation is not None:
            self.conversation.will = None
        self.end(ReasonCode.SERVER_SHUTTING_DOWN if is_stop else ReasonCode.ADMINISTRATIVE_ACTION, reason)

    def time_out(self) -> None:
        """End the connection: nothing arrived for one and a half times the keep alive (MQTT-3.1.2-22)."""
        self.end(ReasonCode.KEEP_ALIVE_TIMEOUT, "keep alive timeout")

    def fault(self) -> None:
        """End the connection because of an internal error."""
        self.end(ReasonCode.UNSPECIFIED_ERROR, "internal error")

    def lost(self) -> None:
        """Release everything after the transport is lost, including back references, to leave no reference cycle."""
        self.state = State.CLOSED
        self._release_all()
        self._lost_user = self.user_name
        self.conversation = self._inflight = self.handshake = None

    def _release_all(self) -> None:
        self._task = None
        if self.conversation is not None:
            self.conversation.close()
