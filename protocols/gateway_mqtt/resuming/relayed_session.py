"""One MQTT connection that a follower passes to the leader, and to the next leader when that one is lost.

Both directions are cut into packets. A connection that is not understood is passed on as it comes, and ends with the
leader.
"""

import re
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Final

from gateway.net.forwarding.relayed_bytes import RelayedBytes
from gateway.net.forwarding.routing import ClientRoute
from gateway_mqtt.codec.data_types import LARGEST_PACKET
from gateway_mqtt.codec.encoding import PINGRESP, disconnect
from gateway_mqtt.codec.errors import MqttError, protocol_error
from gateway_mqtt.codec.packet_types import PacketType
from gateway_mqtt.codec.properties import PropertyId
from gateway_mqtt.codec.reasons import ReasonCode
from gateway_mqtt.handshake.vhost_choice import ConnectionSource, choose_vhost
from gateway_mqtt.resuming.connect import ConnectAnswer, RelayedConnect
from gateway_mqtt.resuming.filters import RelayedFilters
from gateway_mqtt.resuming.owed_answers import OwedAnswers
from gateway_mqtt.resuming.packet_stream import PacketStream
from gateway_mqtt.resuming.topic_aliases import RelayedAliases
from gateway_mqtt.resuming.unanswered import UnansweredPackets

#: So many bytes of unanswered requests are kept; then the client is not read until the leader answers some.
MOST_KEPT: Final = 4 * 2**20

#: The packet identifier of the requests to a new leader; those of the client are sent after them.
_OWN_ID: Final = 1

_PINGREQ: Final = b"\xc0\x00"

_QOS: Final = 0x06
_ERROR: Final = 0x80


#: The end of a read with the DISCONNECT of a leader that stops: the reason, and perhaps a text.
_STOPS: Final = re.compile(rb"\xe0(?:\x01\x8b|.{1,2}\x8b.{1,2}\x1f.*)\Z", re.DOTALL)


class SessionStage(Enum):
    """The progress of the connection."""

    LOGIN = "login"
    OPEN = "open"
    HELD = "held"
    CONNECTING = "connecting"
    SUBSCRIBING = "subscribing"
    PASSING = "passing"
    OVER = "over"


class RelayedSession:
    """Owns what is remembered of one connection; see ``Resumable`` for its interface.

    ``login_limit`` is the number of bytes that are kept of a client that has not logged in. ``default_vhost``
    is the virtual host of one that names none, in any of the ways to name one.
    """

    def __init__(self, login_limit: int = 64 * 1024, default_vhost: str = "/") -> None:
        self.stage = SessionStage.LOGIN
        self.has_leader_ended = False
        self.awaits_client = False
        self.route: ClientRoute | None = None
        self.is_rerouted = False
        self._default_vhost = default_vhost
        self._has_begun = False
        self._login: RelayedConnect | None = None
        self._requests = UnansweredPackets()
        self._answers = OwedAnswers()
        self._aliases = RelayedAliases()
        self._subscriptions = RelayedFilters(4)
        self._subscribing: Iterator[bytes] = iter(())
        self._client = PacketStream(login_limit)
        self._login_limit = login_limit
        self._leader = PacketStream()
        self.waiting = RelayedBytes()
        self._is_closing = False
        #: Publishes that the leader refuses now are sent again to the next one.
        self._ignores_refusals = False
        self._has_question = False

    @property
    def is_full(self) -> bool:
        """See ``Resumable``."""
        if self.stage is SessionStage.LOGIN and self._login is not None:
            return self._requests.size + self._client.kept > self._login_limit
        return self._requests.size > MOST_KEPT and self.stage is not SessionStage.PASSING

    @property
    def is_restoring(self) -> bool:
        """See ``Resumable``."""
        return self.stage in (SessionStage.CONNECTING, SessionStage.SUBSCRIBING)

    @property
    def _is_open(self) -> bool:
        """Whether a leader serves the client, or is about to."""
        return self.stage is SessionStage.OPEN or self.is_restoring

    @property
    def is_closing(self) -> bool:
        """See ``Resumable``."""
        return self._is_closing

    @property
    def is_over(self) -> bool:
        """See ``Resumable``."""
        return self.stage is SessionStage.OVER

    @property
    def heartbeat_s(self) -> int:
        """See ``Resumable``. The broker answers the client's PINGREQ; a client that is held gets PINGRESP unasked."""
        return 0 if self._login is None else self._login.keep_alive_s

    @property
    def awaits_answer(self) -> bool:
        """See ``Resumable``."""
        return self._has_question

    # From the client

    def receive_from_client(self, data: bytes) -> None:
        """See ``Resumable``."""
        if data and not self._has_begun:
            self._has_begun = True
            if data[0] >> 4 != PacketType.CONNECT:
                self.stage = SessionStage.PASSING
        if self.stage is SessionStage.PASSING:
            self.waiting.for_leader.append(data)
        elif self.stage is SessionStage.HELD or self.is_restoring:
            self._keep_early(data)
        elif self.stage is not SessionStage.OVER:
            self._pass_packets(self._client, data, self.waiting.for_leader, self._from_client)

    def _keep_early(self, data: bytes) -> None:
        """Keep what a client sends while no leader takes it; PINGREQs alone are dropped: ``beat`` answers them."""
        if not self._client.kept and not self.waiting.early:
            if not data.replace(_PINGREQ, b""):
                return
            self._has_question |= _asks(data)
        self.waiting.early.append(data)

    def _from_client(self, body: int, data: bytes) -> bytes:
        """Note a packet of the client; return what the leader gets."""
        kind = data[0] >> 4
        if self._login is None:
            return self._connect(kind, body, data)
        if kind == PacketType.PUBLISH:
            return self._publish(self._login.version, body, data)
        if kind in (PacketType.PUBACK, PacketType.PUBREC, PacketType.PUBCOMP):
            packet_id, is_error = _acknowledged(body, data)
            return data if self._answers.is_for_leader(kind, packet_id, is_error=is_error) else b""
        if kind == PacketType.PUBREL:
            answer = self._requests.released(_acknowledged(body, data)[0])
            self.waiting.for_client.append(answer)
            return b"" if answer else data
        if kind == PacketType.SUBSCRIBE:
            self._requests.sent(kind, self._subscriptions.subscribe(data[body:]), data)
        elif kind == PacketType.UNSUBSCRIBE:
            self._requests.sent(kind, self._subscriptions.unsubscribe(data[body:]), data)
        elif kind == PacketType.DISCONNECT:
            self._is_closing = True
        return data

    def _connect(self, kind: int, body: int, data: bytes) -> bytes:
        login = RelayedConnect(data[body:]) if kind == PacketType.CONNECT and not self._client.is_cut else None
        if login is not None and self.route is not None:
            self.is_rerouted = not self.route.leads_to(self._vhost_of(login, self.route))
        if login is None or not login.can_be_repeated:
            self.stage = SessionStage.PASSING
        else:
            self._login = login
            self._client.limit = LARGEST_PACKET  # more than the limit waits in the client: ``is_full``
            self._subscriptions = RelayedFilters(login.version)
        return data

    def _vhost_of(self, login: RelayedConnect, route: ClientRoute) -> str:
        """Return the virtual host of a client, as the leader will choose it."""
        origin = route.origin
        source = ConnectionSource(origin.peer_host, origin.port, origin.certificate, origin.is_from_page)
        return choose_vhost(login.username, source, route.global_parameters, self._default_vhost).vhost

    def _publish(self, version: int, body: int, data: bytes) -> bytes:
        """Keep a PUBLISH of QoS 1 or 2. An alias that this leader does not know yet gets its topic."""
        whole = data
        if version == 5 and not self._client.is_cut:
            data, whole = self._aliases.with_topic(data, body)
        if data[0] & _QOS:
            self._requests.sent(PacketType.PUBLISH, _publish_id(body, data), whole, is_whole=not self._client.is_cut)
        return data

    # From the leader

    def receive_from_leader(self, data: bytes) -> None:
        """See ``Resumable``."""
        if self.stage is SessionStage.PASSING:
            self.waiting.for_client.append(data)
        elif self.stage not in (SessionStage.HELD, SessionStage.OVER):
            # a leader that cannot write any more refuses everything that waits, and says that it stops
            self._ignores_refusals = _STOPS.search(data) is not None
            self._pass_packets(self._leader, data, self.waiting.for_client, self._from_leader)

    def _from_leader(self, body: int, data: bytes) -> bytes:
        """Note a packet of the leader; return what the client gets."""
        if self.has_leader_ended or self.stage is SessionStage.OVER:
            return b""
        kind = data[0] >> 4
        if kind == PacketType.CONNACK:
            return self._connected(body, data)
        if kind == PacketType.PUBLISH:
            if qos := (data[0] & _QOS) >> 1:
                self._answers.delivered(qos, _publish_id(body, data))
        elif kind == PacketType.PUBREL:
            self._answers.released(_acknowledged(body, data)[0])
        elif kind in (PacketType.PUBACK, PacketType.PUBREC, PacketType.PUBCOMP):
            packet_id, is_error = _acknowledged(body, data)
            if is_error and self._ignores_refusals:
                return b""
            self._requests.answered(kind, packet_id, is_error=is_error)
        elif kind in (PacketType.SUBACK, PacketType.UNSUBACK):
            return self._subscribed(kind, body, data)
        elif kind == PacketType.DISCONNECT:
            return self._disconnected(body, data)
        return data

    def _connected(self, body: int, data: bytes) -> bytes:
        if self._login is None or self.stage not in (SessionStage.LOGIN, SessionStage.CONNECTING):
            raise protocol_error("a CONNACK that is not due")
        answer = ConnectAnswer(self._login.version, data[body:])
        if self.stage is SessionStage.LOGIN:
            self.stage = SessionStage.PASSING if answer.reason.is_error else SessionStage.OPEN
            self._login.accepted(answer)
            return data
        if answer.reason.is_error:
            self._end(answer.reason, f"the next leader of the cluster refused the connection: {answer.reason.name}")
        elif answer.has_session:
            self._go_on()
        elif self._may_lose:
            self._end(ReasonCode.SERVER_SHUTTING_DOWN, "the next leader of the cluster does not have the session")
        else:
            self.waiting.for_client.append(self._requests.session_lost())
            self.stage = SessionStage.SUBSCRIBING
            self._subscribing = self._subscriptions.again(_OWN_ID)
            self._subscribe_more()
        return b""

    @property
    def _may_lose(self) -> bool:
        """Whether a leader without the session would break a promise of QoS 2."""
        return self._requests.may_repeat or self._answers.has_exactly_once

    def _subscribe_more(self) -> None:
        request = next(self._subscribing, None)
        if request is None:
            self._go_on()
        else:
            self.waiting.for_leader.append(request)

    def _subscribed(self, kind: int, body: int, data: bytes) -> bytes:
        if self.stage is SessionStage.SUBSCRIBING:
            self._subscribe_more()
            return b""
        noted = self._subscriptions.subscribed if kind == PacketType.SUBACK else self._subscriptions.unsubscribed
        self._requests.answered(kind, noted(data[body:]))
        return data

    def _disconnected(self, body: int, data: bytes) -> bytes:
        """Leave a leader that ends in order; pass on any other end."""
        reason = data[body] if len(data) > body else 0
        if reason == ReasonCode.SERVER_SHUTTING_DOWN and self.stage is not SessionStage.LOGIN and not self._is_closing:
            self.has_leader_ended = True
            return b""
        self.stage = SessionStage.PASSING
        return data

    # Packets

    def _pass_packets(
        self, stream: PacketStream, data: bytes, outgoing: list[bytes], note: Callable[[int, bytes], bytes]
    ) -> None:
        """Pass whole packets on, or what takes their place; keep the rest until it is whole."""
        try:
            for body, packet in stream.cut(data):
                is_followed = body and self.stage is not SessionStage.PASSING
                outgoing.append(self._noted(note, body, packet) if is_followed else packet)
        except MqttError:
            self.stage = SessionStage.PASSING
        if self.stage is SessionStage.PASSING:
            self.waiting.for_leader.append(self._client.take())
            self.waiting.for_client.append(self._leader.take())

    def _noted(self, note: Callable[[int, bytes], bytes], body: int, packet: bytes) -> bytes:
        try:
            return note(body, packet)
        except (MqttError, IndexError, ValueError):
            self.stage = SessionStage.PASSING
            return packet

    # Another leader

    def leader_lost(self) -> bool:
        """See ``Resumable``."""
        self.waiting.for_leader.clear()
        self.has_leader_ended = False
        if (
            self.stage in (SessionStage.LOGIN, SessionStage.PASSING, SessionStage.OVER)
            or self._is_closing
            or self._login is None
        ):
            return False
        is_cut = self._leader.is_cut or self._client.is_cut or not self._requests.are_whole
        if is_cut or (not self._login.has_durable_session and self._may_lose):
            self.give_up("the leader of the cluster changed, and the connection could not be moved to the next one")
            return False
        self._leader.take()
        self._answers.leader_lost()
        self._aliases.leader_lost()
        self._has_question |= self._requests.have_question
        self.stage = SessionStage.HELD
        return True

    def leader_found(self) -> None:
        """See ``Resumable``."""
        if self.stage in (SessionStage.LOGIN, SessionStage.PASSING):
            return  # rerouted: what the client has sent waits for this leader
        assert self._login is not None
        self.stage = SessionStage.CONNECTING
        self.waiting.for_leader.append(self._login.again())

    def _go_on(self) -> None:
        """Continue where the former leader ended: with what it did not answer."""
        self.stage = SessionStage.OPEN
        self._has_question = False
        self.waiting.for_leader.append(self._requests.again())
        if early := self.waiting.take_early():
            self.receive_from_client(early)

    def give_up(self, reason: str) -> None:
        """See ``Resumable``."""
        self._end(ReasonCode.SERVER_SHUTTING_DOWN, reason)

    def _end(self, code: ReasonCode, reason: str) -> None:
        """End the connection; before 5.0 the client is told nothing."""
        login = self._login
        if login is not None and self.stage in (
            SessionStage.OPEN,
            SessionStage.HELD,
            SessionStage.CONNECTING,
            SessionStage.SUBSCRIBING,
        ):
            properties = {PropertyId.REASON_STRING: reason} if login.explains else {}
            self.waiting.for_client.append(disconnect(login.version, code, properties))
        self.stage = SessionStage.OVER
        self.waiting.for_leader.clear()

    def beat(self) -> None:
        """See ``Resumable``."""
        if self.stage is SessionStage.HELD or self.is_restoring:
            self.waiting.for_client.append(PINGRESP)

    def tell_held(self) -> None:
        """See ``Resumable``. MQTT has no packet for it: PUBACK and PUBREC come late."""


def _asks(data: bytes) -> bool:
    """Whether packets that a client sends contain a request other than a publish, or are not valid."""
    kinds = (PacketType.SUBSCRIBE, PacketType.UNSUBSCRIBE)
    try:
        return any(body and packet[0] >> 4 in kinds for body, packet in PacketStream().cut(data))
    except MqttError:
        return True


def _acknowledged(body: int, data: bytes) -> tuple[int, bool]:
    """Return the packet identifier of an acknowledgement, and whether it reports an error."""
    return data[body] << 8 | data[body + 1], len(data) > body + 2 and data[body + 2] >= _ERROR


def _publish_id(body: int, data: bytes) -> int:
    """Return the packet identifier of a PUBLISH of QoS 1 or 2. It is in the first piece of a large one."""
    at = body + 2 + (data[body] << 8 | data[body + 1])
    return data[at] << 8 | data[at + 1]
