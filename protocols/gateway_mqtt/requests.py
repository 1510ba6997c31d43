"""Handlers for each packet type of an open connection; PUBLISH and short acknowledgements bypass them."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, TypeAlias

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
from gateway_mqtt.conversation import Conversation, first_byte


def _acknowledgement(packet_type: PacketType, conversation: Conversation, flags: int, body: bytes) -> None:
    """Handle an acknowledgement with a reason; an error in PUBACK or PUBREC rejects the delivery."""
    version = conversation.scope.version
    check_flags(version, packet_type, flags)
    packet_id, reason, _ = decode_ack(version, packet_type, body)
    if reason.is_error and packet_type in (PacketType.PUBACK, PacketType.PUBREC):
        conversation.begin_receiving().inflight.refuse(packet_id)
    else:
        conversation.acknowledge(first_byte(packet_type), packet_id)


def _subscribe(conversation: Conversation, flags: int, body: bytes) -> None:
    scope = conversation.scope
    packet = decode_subscribe(scope.version, flags, body, scope.settings.max_filters, is_resumed=scope.host.is_resumed)
    subscribing = conversation.begin_receiving().subscribing
    subscribing.await_permissions(packet)
    scope.host.start_task(subscribing.subscribe(packet), len(packet.filters))


def _unsubscribe(conversation: Conversation, flags: int, body: bytes) -> None:
    scope = conversation.scope
    packet = decode_unsubscribe(scope.version, flags, body, scope.settings.max_filters)
    scope.host.start_task(conversation.begin_receiving().subscribing.unsubscribe(packet), len(packet.filters))


def _ping(conversation: Conversation, flags: int, body: bytes) -> None:
    check_flags(conversation.scope.version, PacketType.PINGREQ, flags)
    if body:
        raise MqttError(ReasonCode.MALFORMED_PACKET, f"PINGREQ with {len(body)} bytes")
    conversation.scope.outbox.write(PINGRESP)


def _connect_again(conversation: Conversation, flags: int, body: bytes) -> None:
    raise protocol_error("a second CONNECT")  # MQTT-3.1.0-2


def _authenticate_again(conversation: Conversation, flags: int, body: bytes) -> None:
    conversation.scope.host.authenticate_again(decode_auth(conversation.scope.version, flags, body))


def _disconnect(conversation: Conversation, flags: int, body: bytes) -> None:
    """Close the connection; discard its will unless the reason keeps it (MQTT-3.14.4-3)."""
    packet = decode_disconnect(conversation.scope.version, flags, body)
    expiry_s = packet.properties.get(PropertyId.SESSION_EXPIRY_INTERVAL)
    conversation.disconnect(expiry_s, keeps_will=packet.reason is not ReasonCode.SUCCESS)
    conversation.scope.host.close()


RequestHandler: TypeAlias = Callable[[Conversation, int, bytes], None]

#: The handlers by packet type; each gets the conversation, the flags and the body.
REQUESTS: Final[Mapping[int, RequestHandler]] = {
    PacketType.CONNECT: _connect_again,
    PacketType.PUBACK: partial(_acknowledgement, PacketType.PUBACK),
    PacketType.PUBREC: partial(_acknowledgement, PacketType.PUBREC),
    PacketType.PUBREL: partial(_acknowledgement, PacketType.PUBREL),
    PacketType.PUBCOMP: partial(_acknowledgement, PacketType.PUBCOMP),
    PacketType.SUBSCRIBE: _subscribe,
    PacketType.UNSUBSCRIBE: _unsubscribe,
    PacketType.PINGREQ: _ping,
    PacketType.DISCONNECT: _disconnect,
    PacketType.AUTH: _authenticate_again,
}
