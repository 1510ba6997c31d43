"""Reason codes of MQTT 5.0, the packets that may carry them, and the return codes of 3.x."""

from collections.abc import Mapping
from enum import IntEnum
from typing import Final

from gateway.kernel.errors import (
    AccessRefused,
    CommandInvalid,
    InternalError,
    NotAllowed,
    NotFound,
    NotImplementedHere,
    PreconditionFailed,
    Refused,
    ResourceLocked,
)
from gateway_mqtt.codec.packet_types import PacketType


class ReasonCode(IntEnum):
    """A reason code of MQTT 5.0 (2.4); 0x80 and above are errors.

    ``SUCCESS`` is also *normal disconnection* and *granted QoS 0*.
    """

    SUCCESS = 0x00
    GRANTED_QOS_1 = 0x01
    GRANTED_QOS_2 = 0x02
    DISCONNECT_WITH_WILL_MESSAGE = 0x04
    NO_MATCHING_SUBSCRIBERS = 0x10
    NO_SUBSCRIPTION_EXISTED = 0x11
    CONTINUE_AUTHENTICATION = 0x18
    RE_AUTHENTICATE = 0x19
    UNSPECIFIED_ERROR = 0x80
    MALFORMED_PACKET = 0x81
    PROTOCOL_ERROR = 0x82
    IMPLEMENTATION_SPECIFIC_ERROR = 0x83
    UNSUPPORTED_PROTOCOL_VERSION = 0x84
    CLIENT_IDENTIFIER_NOT_VALID = 0x85
    BAD_USER_NAME_OR_PASSWORD = 0x86
    NOT_AUTHORIZED = 0x87
    SERVER_UNAVAILABLE = 0x88
    SERVER_BUSY = 0x89
    BANNED = 0x8A
    SERVER_SHUTTING_DOWN = 0x8B
    BAD_AUTHENTICATION_METHOD = 0x8C
    KEEP_ALIVE_TIMEOUT = 0x8D
    SESSION_TAKEN_OVER = 0x8E
    TOPIC_FILTER_INVALID = 0x8F
    TOPIC_NAME_INVALID = 0x90
    PACKET_IDENTIFIER_IN_USE = 0x91
    PACKET_IDENTIFIER_NOT_FOUND = 0x92
    RECEIVE_MAXIMUM_EXCEEDED = 0x93
    TOPIC_ALIAS_INVALID = 0x94
    PACKET_TOO_LARGE = 0x95
    MESSAGE_RATE_TOO_HIGH = 0x96
    QUOTA_EXCEEDED = 0x97
    ADMINISTRATIVE_ACTION = 0x98
    PAYLOAD_FORMAT_INVALID = 0x99
    RETAIN_NOT_SUPPORTED = 0x9A
    QOS_NOT_SUPPORTED = 0x9B
    USE_ANOTHER_SERVER = 0x9C
    SERVER_MOVED = 0x9D
    SHARED_SUBSCRIPTIONS_NOT_SUPPORTED = 0x9E
    CONNECTION_RATE_EXCEEDED = 0x9F
    MAXIMUM_CONNECT_TIME = 0xA0
    SUBSCRIPTION_IDENTIFIERS_NOT_SUPPORTED = 0xA1
    WILDCARD_SUBSCRIPTIONS_NOT_SUPPORTED = 0xA2

    @property
    def is_error(self) -> bool:
        """Whether the request failed."""
        return self >= ReasonCode.UNSPECIFIED_ERROR


_ACK: Final = frozenset({PacketType.PUBACK, PacketType.PUBREC})
_RELEASE: Final = frozenset({PacketType.PUBREL, PacketType.PUBCOMP})
_CONNACK: Final = frozenset({PacketType.CONNACK})
_SUBACK: Final = frozenset({PacketType.SUBACK})
_UNSUBACK: Final = frozenset({PacketType.UNSUBACK})
_DISCONNECT: Final = frozenset({PacketType.DISCONNECT})
_AUTH: Final = frozenset({PacketType.AUTH})
_CLOSING: Final = _CONNACK | _DISCONNECT
_ANY_REQUEST: Final = _CLOSING | _ACK | _SUBACK | _UNSUBACK

#: The packets that may carry each reason (Table 2-6).
CARRIERS: Final[Mapping[ReasonCode, frozenset[PacketType]]] = {
    ReasonCode.SUCCESS: _ANY_REQUEST | _RELEASE | _AUTH,
    ReasonCode.GRANTED_QOS_1: _SUBACK,
    ReasonCode.GRANTED_QOS_2: _SUBACK,
    ReasonCode.DISCONNECT_WITH_WILL_MESSAGE: _DISCONNECT,
    ReasonCode.NO_MATCHING_SUBSCRIBERS: _ACK,
    ReasonCode.NO_SUBSCRIPTION_EXISTED: _UNSUBACK,
    ReasonCode.CONTINUE_AUTHENTICATION: _AUTH,
    ReasonCode.RE_AUTHENTICATE: _AUTH,
    ReasonCode.UNSPECIFIED_ERROR: _ANY_REQUEST,
    ReasonCode.MALFORMED_PACKET: _CLOSING,
    ReasonCode.PROTOCOL_ERROR: _CLOSING,
    ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR: _ANY_REQUEST,
    ReasonCode.UNSUPPORTED_PROTOCOL_VERSION: _CONNACK,
    ReasonCode.CLIENT_IDENTIFIER_NOT_VALID: _CONNACK,
    ReasonCode.BAD_USER_NAME_OR_PASSWORD: _CONNACK,
    ReasonCode.NOT_AUTHORIZED: _ANY_REQUEST,
    ReasonCode.SERVER_UNAVAILABLE: _CONNACK,
    ReasonCode.SERVER_BUSY: _CLOSING,
    ReasonCode.BANNED: _CONNACK,
    ReasonCode.SERVER_SHUTTING_DOWN: _DISCONNECT,
    ReasonCode.BAD_AUTHENTICATION_METHOD: _CLOSING,
    ReasonCode.KEEP_ALIVE_TIMEOUT: _DISCONNECT,
    ReasonCode.SESSION_TAKEN_OVER: _DISCONNECT,
    ReasonCode.TOPIC_FILTER_INVALID: _SUBACK | _UNSUBACK | _DISCONNECT,
    ReasonCode.TOPIC_NAME_INVALID: _CLOSING | _ACK,
    ReasonCode.PACKET_IDENTIFIER_IN_USE: _ACK | _SUBACK | _UNSUBACK,
    ReasonCode.PACKET_IDENTIFIER_NOT_FOUND: _RELEASE,
    ReasonCode.RECEIVE_MAXIMUM_EXCEEDED: _DISCONNECT,
    ReasonCode.TOPIC_ALIAS_INVALID: _DISCONNECT,
    ReasonCode.PACKET_TOO_LARGE: _CLOSING,
    ReasonCode.MESSAGE_RATE_TOO_HIGH: _DISCONNECT,
    ReasonCode.QUOTA_EXCEEDED: _CLOSING | _ACK | _SUBACK,
    ReasonCode.ADMINISTRATIVE_ACTION: _DISCONNECT,
    ReasonCode.PAYLOAD_FORMAT_INVALID: _CLOSING | _ACK,
    ReasonCode.RETAIN_NOT_SUPPORTED: _CLOSING,
    ReasonCode.QOS_NOT_SUPPORTED: _CLOSING,
    ReasonCode.USE_ANOTHER_SERVER: _CLOSING,
    ReasonCode.SERVER_MOVED: _CLOSING,
    ReasonCode.SHARED_SUBSCRIPTIONS_NOT_SUPPORTED: _SUBACK | _DISCONNECT,
    ReasonCode.CONNECTION_RATE_EXCEEDED: _CLOSING,
    ReasonCode.MAXIMUM_CONNECT_TIME: _DISCONNECT,
    ReasonCode.SUBSCRIPTION_IDENTIFIERS_NOT_SUPPORTED: _SUBACK | _DISCONNECT,
    ReasonCode.WILDCARD_SUBSCRIPTIONS_NOT_SUPPORTED: _SUBACK | _DISCONNECT,
}


def carried_by(packet_type: PacketType) -> frozenset[ReasonCode]:
    """Return the reasons a packet of this kind may carry."""
    return frozenset(reason for reason, carriers in CARRIERS.items() if packet_type in carriers)


#: Reasons in a DISCONNECT or an AUTH that only a server may send (Tables 3-10 and 3-11).
SERVER_ONLY: Final = frozenset(
    {
        ReasonCode.NOT_AUTHORIZED,
        ReasonCode.SERVER_BUSY,
        ReasonCode.SERVER_SHUTTING_DOWN,
        ReasonCode.BAD_AUTHENTICATION_METHOD,
        ReasonCode.KEEP_ALIVE_TIMEOUT,
        ReasonCode.SESSION_TAKEN_OVER,
        ReasonCode.TOPIC_FILTER_INVALID,
        ReasonCode.RETAIN_NOT_SUPPORTED,
        ReasonCode.QOS_NOT_SUPPORTED,
        ReasonCode.USE_ANOTHER_SERVER,
        ReasonCode.SERVER_MOVED,
        ReasonCode.SHARED_SUBSCRIPTIONS_NOT_SUPPORTED,
        ReasonCode.CONNECTION_RATE_EXCEEDED,
        ReasonCode.MAXIMUM_CONNECT_TIME,
        ReasonCode.SUBSCRIPTION_IDENTIFIERS_NOT_SUPPORTED,
        ReasonCode.WILDCARD_SUBSCRIPTIONS_NOT_SUPPORTED,
    }
)

#: The return codes of CONNACK in 3.x. For any other reason the connection closes without one (3.1.1: 3.2.2-6).
CONNACK_3: Final[Mapping[ReasonCode, int]] = {
    ReasonCode.SUCCESS: 0,
    ReasonCode.UNSUPPORTED_PROTOCOL_VERSION: 1,
    ReasonCode.CLIENT_IDENTIFIER_NOT_VALID: 2,
    ReasonCode.SERVER_UNAVAILABLE: 3,
    ReasonCode.SERVER_BUSY: 3,
    ReasonCode.SERVER_SHUTTING_DOWN: 3,
    ReasonCode.QUOTA_EXCEEDED: 3,
    ReasonCode.CONNECTION_RATE_EXCEEDED: 3,
    ReasonCode.USE_ANOTHER_SERVER: 3,
    ReasonCode.SERVER_MOVED: 3,
    ReasonCode.BAD_USER_NAME_OR_PASSWORD: 4,
    ReasonCode.NOT_AUTHORIZED: 5,
    ReasonCode.BANNED: 5,
}

#: Refusals of the kernel. *Implementation specific* means: valid, but refused by this server.
REFUSALS: Final[Mapping[type[Refused], ReasonCode]] = {
    AccessRefused: ReasonCode.NOT_AUTHORIZED,
    NotFound: ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR,
    ResourceLocked: ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR,
    PreconditionFailed: ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR,
    NotAllowed: ReasonCode.QUOTA_EXCEEDED,
    CommandInvalid: ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR,
    NotImplementedHere: ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR,
    InternalError: ReasonCode.UNSPECIFIED_ERROR,
}


def reason_for(refusal: Refused) -> ReasonCode:
    """Return the reason code for a refusal of the kernel."""
    return next((REFUSALS[kind] for kind in type(refusal).__mro__ if kind in REFUSALS), ReasonCode.UNSPECIFIED_ERROR)
