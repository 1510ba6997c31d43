"""Properties of MQTT 5.0 packets (2.2.2): a table of their types, carriers and forbidden values, and the codec."""

from collections.abc import Callable
from enum import IntEnum
from typing import Any, Final, NamedTuple, TypeAlias

from gateway_mqtt.codec.data_types import (
    binary,
    read_binary,
    read_bounded_varint,
    read_octet,
    read_u16,
    read_u32,
    read_utf8,
    u16,
    u32,
    utf8,
    varint,
)
from gateway_mqtt.codec.errors import MqttError, malformed, protocol_error
from gateway_mqtt.codec.packet_types import PacketType
from gateway_mqtt.codec.reasons import ReasonCode


class PropertyId(IntEnum):
    """A property identifier (Table 2-4)."""

    PAYLOAD_FORMAT_INDICATOR = 0x01
    MESSAGE_EXPIRY_INTERVAL = 0x02
    CONTENT_TYPE = 0x03
    RESPONSE_TOPIC = 0x08
    CORRELATION_DATA = 0x09
    SUBSCRIPTION_IDENTIFIER = 0x0B
    SESSION_EXPIRY_INTERVAL = 0x11
    ASSIGNED_CLIENT_IDENTIFIER = 0x12
    SERVER_KEEP_ALIVE = 0x13
    AUTHENTICATION_METHOD = 0x15
    AUTHENTICATION_DATA = 0x16
    REQUEST_PROBLEM_INFORMATION = 0x17
    WILL_DELAY_INTERVAL = 0x18
    REQUEST_RESPONSE_INFORMATION = 0x19
    RESPONSE_INFORMATION = 0x1A
    SERVER_REFERENCE = 0x1C
    REASON_STRING = 0x1F
    RECEIVE_MAXIMUM = 0x21
    TOPIC_ALIAS_MAXIMUM = 0x22
    TOPIC_ALIAS = 0x23
    MAXIMUM_QOS = 0x24
    RETAIN_AVAILABLE = 0x25
    USER_PROPERTY = 0x26
    MAXIMUM_PACKET_SIZE = 0x27
    WILDCARD_SUBSCRIPTION_AVAILABLE = 0x28
    SUBSCRIPTION_IDENTIFIER_AVAILABLE = 0x29
    SHARED_SUBSCRIPTION_AVAILABLE = 0x2A


Properties: TypeAlias = dict[PropertyId, Any]
"""Property values of a packet: ``int``, ``str`` or ``bytes``, depending on the property.

``USER_PROPERTY`` is a list of pairs of ``str``, in order and with duplicates; ``SUBSCRIPTION_IDENTIFIER`` is a
list of ``int``. A list that is present has at least one item.
"""


class DataType(NamedTuple):
    """A data type: its decoder and its encoder."""

    read: Callable[[bytes, int, int], tuple[Any, int]]
    write: Callable[[Any], bytes]


def _read_pair(data: bytes, at: int, end: int) -> tuple[tuple[str, str], int]:
    name, at = read_utf8(data, at, end)
    value, at = read_utf8(data, at, end)
    return (name, value), at


_OCTET: Final = DataType(read_octet, lambda number: bytes((number,)))
_U16: Final = DataType(read_u16, u16)
_U32: Final = DataType(read_u32, u32)
_VARINT: Final = DataType(read_bounded_varint, varint)
_TEXT: Final = DataType(read_utf8, utf8)
_BINARY: Final = DataType(read_binary, binary)
_PAIR: Final = DataType(_read_pair, lambda pair: utf8(pair[0]) + utf8(pair[1]))


class PropertyDefinition(NamedTuple):
    """The specification of one property.

    ``carriers`` may hold it; ``repeats`` may hold several. ``refuses`` is true for values of the right type that are
    not allowed; they are refused with ``refusal``.
    """

    name: str
    kind: DataType
    carriers: frozenset[PacketType]
    repeats: frozenset[PacketType] = frozenset()
    refuses: Callable[[Any], bool] | None = None
    refusal: ReasonCode = ReasonCode.PROTOCOL_ERROR


def _not_boolean(number: int) -> bool:
    return number > 1


def _zero(number: int) -> bool:
    return number == 0


_P: Final = PacketType
_MESSAGES: Final = frozenset({_P.PUBLISH, _P.WILL})
_CONNECT: Final = frozenset({_P.CONNECT})
_CONNACK: Final = frozenset({_P.CONNACK})
_PUBLISH: Final = frozenset({_P.PUBLISH})
_HANDSHAKE: Final = _CONNECT | _CONNACK
_AUTHENTICATION: Final = _HANDSHAKE | {_P.AUTH}
_ANSWERS: Final = _CONNACK | {
    *(_P.PUBACK, _P.PUBREC, _P.PUBREL, _P.PUBCOMP, _P.SUBACK, _P.UNSUBACK, _P.DISCONNECT, _P.AUTH)
}
_ALL: Final = _ANSWERS | _CONNECT | _MESSAGES | {_P.SUBSCRIBE, _P.UNSUBSCRIBE}

DEFINITIONS: Final[dict[int, PropertyDefinition]] = {
    0x01: PropertyDefinition("Payload Format Indicator", _OCTET, _MESSAGES, refuses=_not_boolean),
    0x02: PropertyDefinition("Message Expiry Interval", _U32, _MESSAGES),
    0x03: PropertyDefinition("Content Type", _TEXT, _MESSAGES),
    0x08: PropertyDefinition("Response Topic", _TEXT, _MESSAGES),
    0x09: PropertyDefinition("Correlation Data", _BINARY, _MESSAGES),
    0x0B: PropertyDefinition(
        "Subscription Identifier", _VARINT, _PUBLISH | {_P.SUBSCRIBE}, repeats=_PUBLISH, refuses=_zero
    ),
    0x11: PropertyDefinition("Session Expiry Interval", _U32, _HANDSHAKE | {_P.DISCONNECT}),
    0x12: PropertyDefinition("Assigned Client Identifier", _TEXT, _CONNACK),
    0x13: PropertyDefinition("Server Keep Alive", _U16, _CONNACK),
    0x15: PropertyDefinition("Authentication Method", _TEXT, _AUTHENTICATION),
    0x16: PropertyDefinition("Authentication Data", _BINARY, _AUTHENTICATION),
    0x17: PropertyDefinition("Request Problem Information", _OCTET, _CONNECT, refuses=_not_boolean),
    0x18: PropertyDefinition("Will Delay Interval", _U32, frozenset({_P.WILL})),
    0x19: PropertyDefinition("Request Response Information", _OCTET, _CONNECT, refuses=_not_boolean),
    0x1A: PropertyDefinition("Response Information", _TEXT, _CONNACK),
    0x1C: PropertyDefinition("Server Reference", _TEXT, _CONNACK | {_P.DISCONNECT}),
    0x1F: PropertyDefinition("Reason String", _TEXT, _ANSWERS),
    0x21: PropertyDefinition("Receive Maximum", _U16, _HANDSHAKE, refuses=_zero),
    0x22: PropertyDefinition("Topic Alias Maximum", _U16, _HANDSHAKE),
    0x23: PropertyDefinition("Topic Alias", _U16, _PUBLISH, refuses=_zero, refusal=ReasonCode.TOPIC_ALIAS_INVALID),
    0x24: PropertyDefinition("Maximum QoS", _OCTET, _CONNACK, refuses=_not_boolean),
    0x25: PropertyDefinition("Retain Available", _OCTET, _CONNACK, refuses=_not_boolean),
    0x26: PropertyDefinition("User Property", _PAIR, _ALL, repeats=_ALL),
    0x27: PropertyDefinition("Maximum Packet Size", _U32, _HANDSHAKE, refuses=_zero),
    0x28: PropertyDefinition("Wildcard Subscription Available", _OCTET, _CONNACK, refuses=_not_boolean),
    0x29: PropertyDefinition("Subscription Identifier Available", _OCTET, _CONNACK, refuses=_not_boolean),
    0x2A: PropertyDefinition("Shared Subscription Available", _OCTET, _CONNACK, refuses=_not_boolean),
}

#: The limit of repetitions of one property in a packet. It bounds the work: all are decoded in one turn.
MOST_REPEATED: Final = 1_000

_BY_NUMBER: Final = {key.value: key for key in PropertyId}

_LISTS: Final = frozenset({PropertyId.USER_PROPERTY, PropertyId.SUBSCRIPTION_IDENTIFIER})


def decode_properties(data: bytes, at: int, end: int, packet: PacketType) -> tuple[Properties, int]:
    """Decode the properties of a packet, length first; return them and the position after them.

    :raises MqttError: ``MALFORMED_PACKET`` for unreadable properties or a wrong packet type (2.2.2.2),
        ``PROTOCOL_ERROR`` for a forbidden repetition or value, ``QUOTA_EXCEEDED`` for more than ``MOST_REPEATED`` of
        one property.
    """
    size, start = read_bounded_varint(data, at, end)
    stop = start + size
    if stop > end:
        raise malformed(f"{size} bytes of properties announced, of which {end - start} came")
    return read_block(data, start, stop, packet), stop


def read_block(data: bytes, at: int, end: int, packet: PacketType) -> Properties:
    """Decode properties that fill these bytes, without a length. Raises as ``decode_properties``."""
    properties: Properties = {}
    while at < end:
        identifier = data[at]  # a variable byte integer (2.2.2.2), but all defined identifiers fit in one byte
        definition = DEFINITIONS.get(identifier)
        if definition is None or packet not in definition.carriers:
            raise malformed(f"property {identifier:#04x} is not one of {packet.name}")
        value, at = definition.kind.read(data, at + 1, end)
        if definition.refuses is not None and definition.refuses(value):
            raise MqttError(definition.refusal, f"{definition.name} is {value}")
        _put(properties, _BY_NUMBER[identifier], value, packet)
    return properties


def _put(properties: Properties, key: PropertyId, value: object, packet: PacketType) -> None:
    if key not in properties:
        properties[key] = [value] if key in _LISTS else value
    elif packet in DEFINITIONS[key].repeats:
        if len(properties[key]) >= MOST_REPEATED:
            raise MqttError(ReasonCode.QUOTA_EXCEEDED, f"{DEFINITIONS[key].name} more than {MOST_REPEATED} times")
        properties[key].append(value)
    else:
        raise protocol_error(f"{DEFINITIONS[key].name} twice in {packet.name}")


def encode_properties(properties: Properties | None) -> bytes:
    """Encode properties, length first.

    :raises ValueError: for a value that MQTT cannot carry: text that is too long or contains a surrogate or U+0000.
    """
    if not properties:
        return b"\0"
    block = write_block(properties)
    return varint(len(block)) + block


def write_block(properties: Properties) -> bytes:
    """Encode properties without a length, in their order. Raises as ``encode_properties``."""
    parts: list[bytes] = []
    for key, given in properties.items():
        write = DEFINITIONS[key].kind.write
        for value in given if key in _LISTS else (given,):
            parts += (bytes((key,)), write(value))
    return b"".join(parts)
