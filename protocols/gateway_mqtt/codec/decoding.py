"""Decoders of packet bodies, the bytes after the fixed header. Versions: 3 is MQTT 3.1, 4 is 3.1.1, 5 is 5.0.

A violation is refused with the reason code of 5.0, in any version. Where 3.1 leaves a rule open that later versions
close, the decoders accept the packet.
"""

from collections.abc import Mapping
from typing import Final

from gateway_mqtt.codec.connecting import connect_version, decode_connect
from gateway_mqtt.codec.data_types import read_octet, read_u16, read_utf8
from gateway_mqtt.codec.errors import MqttError, malformed, protocol_error
from gateway_mqtt.codec.packet_types import PacketType
from gateway_mqtt.codec.packets import Auth, Disconnect, Subscribe, SubscriptionRequest, Unsubscribe
from gateway_mqtt.codec.properties import Properties, PropertyId, decode_properties
from gateway_mqtt.codec.reasons import SERVER_ONLY, ReasonCode, carried_by
from gateway_mqtt.translation.topics import SHARE, require_filter

__all__ = [
    "check_flags",
    "connect_version",
    "decode_ack",
    "decode_auth",
    "decode_connect",
    "decode_disconnect",
    "decode_subscribe",
    "decode_unsubscribe",
]

_FLAGS: Final[Mapping[int, int]] = {PacketType.PUBREL: 2, PacketType.SUBSCRIBE: 2, PacketType.UNSUBSCRIBE: 2}

#: The reasons that a client may send in each packet type.
_REASONS: Final[Mapping[int, Mapping[int, ReasonCode]]] = {
    packet_type: {reason.value: reason for reason in reasons}
    for packet_type, reasons in (
        (PacketType.PUBACK, carried_by(PacketType.PUBACK)),
        (PacketType.PUBREC, carried_by(PacketType.PUBREC)),
        (PacketType.PUBREL, carried_by(PacketType.PUBREL)),
        (PacketType.PUBCOMP, carried_by(PacketType.PUBCOMP)),
        (PacketType.DISCONNECT, carried_by(PacketType.DISCONNECT) - SERVER_ONLY),
        (PacketType.AUTH, carried_by(PacketType.AUTH)),
    )
}

_SUCCESS: Final = ReasonCode.SUCCESS

#: The default limit of filters in one SUBSCRIBE or UNSUBSCRIBE. It bounds the work: all are decoded in one turn.
MAX_FILTERS: Final = 2_000


def check_flags(version: int, packet_type: int, flags: int) -> None:
    """Refuse reserved flags, the lower half of the first byte, in any packet but PUBLISH (MQTT-2.1.3-1).

    MQTT 3.1 uses these bits for DUP and QoS of repeated requests and gives them no effect.
    """
    if version > 3 and flags != _FLAGS.get(packet_type, 0):
        raise malformed(f"flags {flags:#x} in {PacketType(packet_type).name}")


def decode_ack(version: int, packet_type: int, body: bytes) -> tuple[int, ReasonCode, Properties | None]:
    """Decode PUBACK, PUBREC, PUBREL or PUBCOMP: the packet identifier, the reason and, if present, properties."""
    if len(body) == 2 and (packet_id := body[0] << 8 | body[1]):
        return packet_id, _SUCCESS, None
    packet_id, at = _read_packet_id(body)
    if version < 5:
        raise malformed(f"{len(body)} bytes in {PacketType(packet_type).name}")
    reason, properties = _read_reason(PacketType(packet_type), body, at)
    return packet_id, reason, properties or None


def decode_subscribe(
    version: int, flags: int, body: bytes, most: int = MAX_FILTERS, *, is_resumed: bool = False
) -> Subscribe:
    """Decode a SUBSCRIBE (3.8) of at most ``most`` filters.

    A node of a cluster that goes on with a connection (``is_resumed``) uses the options of 5.0 in any version.
    """
    check_flags(version, PacketType.SUBSCRIBE, flags)
    packet_id, at = _read_packet_id(body)
    properties, at = _read_properties(version, body, at, PacketType.SUBSCRIBE)
    requests: list[SubscriptionRequest] = []
    while at < len(body):
        _require_fewer(len(requests), most)
        filter, at = _read_filter(body, at)
        options, at = read_octet(body, at, len(body))
        requests.append(_request(5 if is_resumed else version, filter, options))
    if not requests:
        raise protocol_error("SUBSCRIBE without a filter")  # MQTT-3.8.3-2
    return Subscribe(packet_id, properties, tuple(requests))


def decode_unsubscribe(version: int, flags: int, body: bytes, most: int = MAX_FILTERS) -> Unsubscribe:
    """Decode an UNSUBSCRIBE (3.10) of at most ``most`` filters."""
    check_flags(version, PacketType.UNSUBSCRIBE, flags)
    packet_id, at = _read_packet_id(body)
    properties, at = _read_properties(version, body, at, PacketType.UNSUBSCRIBE)
    filters: list[str] = []
    while at < len(body):
        _require_fewer(len(filters), most)
        filter, at = _read_filter(body, at)
        filters.append(filter)
    if not filters:
        raise protocol_error("UNSUBSCRIBE without a filter")  # MQTT-3.10.3-2
    return Unsubscribe(packet_id, properties, tuple(filters))


def decode_disconnect(version: int, flags: int, body: bytes) -> Disconnect:
    """Decode a DISCONNECT (3.14); before 5.0 its body is empty."""
    check_flags(version, PacketType.DISCONNECT, flags)
    if version < 5:
        if body:
            raise malformed(f"{len(body)} bytes in DISCONNECT")
        return Disconnect(_SUCCESS, {})
    return Disconnect(*_read_reason(PacketType.DISCONNECT, body, 0))


def decode_auth(version: int, flags: int, body: bytes) -> Auth:
    """Decode an AUTH (3.15). :raises MqttError: also if it has no Authentication Method."""
    if version < 5:
        raise protocol_error("AUTH before MQTT 5.0")
    check_flags(version, PacketType.AUTH, flags)
    reason, properties = _read_reason(PacketType.AUTH, body, 0)
    if reason is _SUCCESS:
        raise protocol_error("AUTH with reason Success from a client")  # Table 3-11
    if PropertyId.AUTHENTICATION_METHOD not in properties:
        raise protocol_error("AUTH without Authentication Method")  # 3.15.2.2.2
    return Auth(reason, properties)


def _request(version: int, filter: str, options: int) -> SubscriptionRequest:
    """Decode the options (3.8.3.1). Before 5.0 only the QoS is defined; 3.1 ignores the other bits."""
    qos = options & 0x03
    if qos == 3:
        raise protocol_error("a subscription of QoS 3")
    if version < 5:
        if version == 4 and options > 3:
            raise malformed(f"subscription options {options:#04x}")  # 3.1.1: MQTT-3-8.3-4
        return SubscriptionRequest(filter, qos)
    if options > 0x3F:
        raise malformed(f"subscription options {options:#04x}")  # MQTT-3.8.3-5
    if options >> 4 == 3:
        raise protocol_error("Retain Handling is 3")
    no_local = bool(options & 0x04)
    if no_local and filter.startswith(SHARE):
        raise protocol_error("No Local on a shared subscription")  # MQTT-3.8.3-4
    return SubscriptionRequest(filter, qos, no_local, bool(options & 0x08), options >> 4)


def _require_fewer(count: int, most: int) -> None:
    if count >= most:
        raise MqttError(ReasonCode.QUOTA_EXCEEDED, f"more than {most} filters in one request")


def _read_filter(body: bytes, at: int) -> tuple[str, int]:
    filter, at = read_utf8(body, at, len(body))
    require_filter(filter)
    return filter, at


def _read_packet_id(body: bytes) -> tuple[int, int]:
    packet_id, at = read_u16(body, 0, len(body))
    if not packet_id:
        raise protocol_error("packet identifier 0")  # MQTT-2.2.1-3
    return packet_id, at


def _read_properties(version: int, body: bytes, at: int, packet_type: PacketType) -> tuple[Properties, int]:
    return decode_properties(body, at, len(body), packet_type) if version >= 5 else ({}, at)


def _read_reason(packet_type: PacketType, body: bytes, at: int) -> tuple[ReasonCode, Properties]:
    """Decode the end of a packet: reason and properties. Either may be omitted with all that follows (3.4.2.1)."""
    if at == len(body):
        return _SUCCESS, {}
    reason = _REASONS[packet_type].get(body[at])
    if reason is None:
        raise protocol_error(f"reason {body[at]:#04x} in {packet_type.name}")  # MQTT-3.4.2-1, 3.14.2-1 and similar
    if at + 1 == len(body):
        return reason, {}
    properties, at = decode_properties(body, at + 1, len(body), packet_type)
    if at != len(body):
        raise malformed(f"{len(body) - at} bytes follow {packet_type.name}")
    return reason, properties
