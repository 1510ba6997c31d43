"""Decoding of CONNECT packets (3.1) of MQTT 3.1, 3.1.1 and 5.0."""

from typing import Final

from gateway_mqtt.codec.data_types import read_binary, read_octet, read_u16, read_utf8
from gateway_mqtt.codec.errors import MqttError, malformed, protocol_error
from gateway_mqtt.codec.packet_types import PacketType
from gateway_mqtt.codec.packets import Connect, WillPacket
from gateway_mqtt.codec.properties import Properties, PropertyId, decode_properties
from gateway_mqtt.codec.reasons import ReasonCode
from gateway_mqtt.translation.topics import check_topic

VERSIONS: Final = frozenset({("MQIsdp", 3), ("MQTT", 4), ("MQTT", 5)})
"""The supported pairs of protocol name and protocol level."""

_USERNAME: Final = 0x80
_PASSWORD: Final = 0x40
_WILL_RETAIN: Final = 0x20
_WILL: Final = 0x04
_CLEAN_START: Final = 0x02
_RESERVED: Final = 0x01


def connect_version(body: bytes) -> int:
    """Return the version in which to refuse a CONNECT that cannot be accepted: 3, 4 or 5.

    A later version than 5 is refused in 5.0 (MQTT-3.1.2-2), an unreadable CONNECT in 3.1.1. The highest bit of the
    level is ignored: bridges set it and try again without it.
    """
    try:
        _, at = read_utf8(body, 0, len(body))
        level, _ = read_octet(body, at, len(body))
    except MqttError:
        return 4
    return min(max(level & 0x7F, 3), 5)


def decode_connect(body: bytes, flags: int = 0) -> Connect:
    """Decode a CONNECT.

    :raises MqttError: ``UNSUPPORTED_PROTOCOL_VERSION`` for an unsupported name or level,
        ``CLIENT_IDENTIFIER_NOT_VALID`` for an empty identifier that the version forbids, and the errors of the readers.
    """
    version, name, at = _read_version(body)
    end = len(body)
    connect_flags, at = read_octet(body, at, end)
    if version > 3:
        _check_flags(version, flags, connect_flags)
    keep_alive_s, at = read_u16(body, at, end)
    properties: Properties = {}
    if version == 5:
        properties, at = decode_properties(body, at, end, PacketType.CONNECT)
        _check_authentication(properties)
    client_id, at = read_utf8(body, at, end)
    will, at = _read_will(version, connect_flags, body, at) if connect_flags & _WILL else (None, at)
    username, password, at = _read_credentials(version, connect_flags, body, at)
    if at != end:
        raise malformed(f"{end - at} bytes follow CONNECT")
    clean_start = bool(connect_flags & _CLEAN_START)
    _check_client_id(version, client_id, clean_start)
    return Connect(version, name, clean_start, keep_alive_s, client_id, username, password, will, properties)


def _read_version(body: bytes) -> tuple[int, str, int]:
    name, at = read_utf8(body, 0, len(body))
    level, at = read_octet(body, at, len(body))
    if (name, level) not in VERSIONS:  # MQTT-3.1.2-1, 3.1.2-2
        raise MqttError(ReasonCode.UNSUPPORTED_PROTOCOL_VERSION, f"protocol '{name}' of level {level}")
    return level, name, at


def _check_flags(version: int, flags: int, connect_flags: int) -> None:
    """Refuse reserved flags and flags of absent fields; 3.1 leaves those flags undefined."""
    if flags:
        raise malformed(f"flags {flags:#x} in CONNECT")  # MQTT-2.1.3-1
    if connect_flags & _RESERVED:
        raise malformed("the reserved Connect Flag is set")  # MQTT-3.1.2-3
    if not connect_flags & _WILL and connect_flags & 0x38:
        raise malformed("Will QoS or Will Retain without a Will")  # MQTT-3.1.2-11, 3.1.2-13
    if version == 4 and connect_flags & (_USERNAME | _PASSWORD) == _PASSWORD:
        raise malformed("a password without a user name")  # 3.1.1: MQTT-3.1.2-22


def _check_authentication(properties: Properties) -> None:
    if PropertyId.AUTHENTICATION_DATA in properties and PropertyId.AUTHENTICATION_METHOD not in properties:
        raise protocol_error("Authentication Data without Authentication Method")  # 3.1.2.11.10


def _read_will(version: int, connect_flags: int, body: bytes, at: int) -> tuple[WillPacket, int]:
    """Decode the Will (3.1.3.2 to 3.1.3.4)."""
    end = len(body)
    qos = connect_flags >> 3 & 0x03
    if qos == 3:
        raise malformed("Will QoS is 3")  # MQTT-3.1.2-12
    properties: Properties = {}
    if version == 5:
        properties, at = decode_properties(body, at, end, PacketType.WILL)
        if (response_topic := properties.get(PropertyId.RESPONSE_TOPIC)) is not None:
            check_topic(response_topic)  # MQTT-3.3.2-14
    topic, at = read_utf8(body, at, end)
    check_topic(topic)
    payload, at = read_binary(body, at, end)
    return WillPacket(topic, payload, qos, bool(connect_flags & _WILL_RETAIN), properties), at


def _read_credentials(version: int, connect_flags: int, body: bytes, at: int) -> tuple[str | None, bytes | None, int]:
    """Decode user name and password. In 3.1 the packet may end before a field that its flag announces."""
    username, password = None, None
    end = len(body)
    if connect_flags & _USERNAME and not (version == 3 and at == end):
        username, at = read_utf8(body, at, end)
    if connect_flags & _PASSWORD and not (version == 3 and at == end):
        password, at = read_binary(body, at, end)
    return username, password, at


def _check_client_id(version: int, client_id: str, clean_start: bool) -> None:
    """Refuse an empty client identifier that the server may not replace.

    3.1 requires at least one character; its upper limit of 23 was dropped later. 3.1.1 requires a clean session
    (MQTT-3.1.3-8).
    """
    if not client_id and (version == 3 or (version == 4 and not clean_start)):
        raise MqttError(ReasonCode.CLIENT_IDENTIFIER_NOT_VALID, "the client identifier is empty")
