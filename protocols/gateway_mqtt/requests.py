"""Handlers for each packet type of an open connection; PUBLISH and short acknowledgements bypass them."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

from gateway_mqtt.codec.decoding import (
    check_flags,
    decode_ack,
    decode_auth,
    decode_disconnect,
    decode_subscribe,
    decode_unsubscribe,
)
from gateway_mqtt.codec.encoding import PINGRESP
from gateway_mqtt.codec.errors import MqttError, protocol_error
from gateway_mqtt.codec.packet_types import PacketType
from gateway_mqtt.codec.properties import PropertyId
from gateway_mqtt.codec.reasons import ReasonCode
from gateway_mqtt.conversation import Conversation
from gateway_mqtt.traffic.inflight import Inflight

if TYPE_CHECKING:
    from gateway_mqtt.connection import Connection


def _puback(connection: "Connection", flags: int, body: bytes) -> None:
    inflight = _conversation(connection).inflight
    _settle(inflight, inflight.accept, *_ack(connection, PacketType.PUBACK, flags, body))


def _pubrec(connection: "Connection", flags: int, body: bytes) -> None:
    inflight = _conversation(connection).inflight
    _settle(inflight, inflight.received, *_ack(connection, PacketType.PUBREC, flags, body))


def _settle(inflight: Inflight, take: Callable[[int], None], packet_id: int, reason: ReasonCode) -> None:
    """Reject the delivery if the client reports an error, else call ``take``."""
    if reason.is_error:
        inflight.refuse(packet_id)
    else:
        take(packet_id)


def _pubrel(connection: "Connection", flags: int, body: bytes) -> None:
    packet_id, _ = _ack(connection, PacketType.PUBREL, flags, body)
    _conversation(connection).publishing.released(packet_id)


def _pubcomp(connection: "Connection", flags: int, body: bytes) -> None:
    packet_id, _ = _ack(connection, PacketType.PUBCOMP, flags, body)
    _conversation(connection).inflight.completed(packet_id)


def _ack(connection: "Connection", packet_type: PacketType, flags: int, body: bytes) -> tuple[int, ReasonCode]:
    """Return the packet identifier and the reason of an acknowledgement."""
    check_flags(connection.version, packet_type, flags)
    packet_id, reason, _ = decode_ack(connection.version, packet_type, body)
    return packet_id, reason


def _subscribe(connection: "Connection", flags: int, body: bytes) -> None:
    packet = decode_subscribe(connection.version, flags, body, connection.settings.max_filters)
    connection.start_task(_conversation(connection).subscribing.subscribe(packet), len(packet.filters))


def _unsubscribe(connection: "Connection", flags: int, body: bytes) -> None:
    packet = decode_unsubscribe(connection.version, flags, body, connection.settings.max_filters)
    connection.start_task(_conversation(connection).subscribing.unsubscribe(packet), len(packet.filters))


def _ping(connection: "Connection", flags: int, body: bytes) -> None:
    check_flags(connection.version, PacketType.PINGREQ, flags)
    if body:
        raise MqttError(ReasonCode.MALFORMED_PACKET, f"PINGREQ with {len(body)} bytes")
    connection.outbox.write(PINGRESP)


def _connect_again(connection: "Connection", flags: int, body: bytes) -> None:
    raise protocol_error("a second CONNECT")  # MQTT-3.1.0-2


def _authenticate_again(connection: "Connection", flags: int, body: bytes) -> None:
    connection.handshake.proceed(decode_auth(connection.version, flags, body))


def _disconnect(connection: "Connection", flags: int, body: bytes) -> None:
    """Close the connection; discard its will unless the reason keeps it (MQTT-3.14.4-3)."""
    packet = decode_disconnect(connection.version, flags, body)
    expiry_s = packet.properties.get(PropertyId.SESSION_EXPIRY_INTERVAL)
    _conversation(connection).disconnect(expiry_s, keeps_will=packet.reason is not ReasonCode.SUCCESS)
    connection.close()


def _conversation(connection: "Connection") -> Conversation:
    """Return the conversation of an open connection."""
    assert connection.conversation is not None
    return connection.conversation


RequestHandler: TypeAlias = "Callable[[Connection, int, bytes], None]"

#: The handlers by packet type; each gets the connection, the flags and the body.
REQUESTS: Final[Mapping[int, RequestHandler]] = {
    PacketType.CONNECT: _connect_again,
    PacketType.PUBACK: _puback,
    PacketType.PUBREC: _pubrec,
    PacketType.PUBREL: _pubrel,
    PacketType.PUBCOMP: _pubcomp,
    PacketType.SUBSCRIBE: _subscribe,
    PacketType.UNSUBSCRIBE: _unsubscribe,
    PacketType.PINGREQ: _ping,
    PacketType.DISCONNECT: _disconnect,
    PacketType.AUTH: _authenticate_again,
}
