"""Reason codes: what a packet says of success or failure, which packets may say it, and what 3.x has in their place."""

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


class Reason(IntEnum):
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
        """Whether what was asked for did not happen."""
        return self >= Reason.UNSPECIFIED_ERROR


_ACK: Final = frozenset({PacketType.PUBACK, PacketType.PUBREC})
_RELEASE: Final = frozenset({PacketType.PUBREL, PacketType.PUBCOMP})
_CONNACK: Final = frozenset({PacketType.CONNACK})
_SUBACK: Final = frozenset({PacketType.SUBACK})
_UNSUBACK: Final = frozenset({PacketType.UNSUBACK})
_DISCONNECT: Final = frozenset({PacketType.DISCONNECT})
_AUTH: Final = frozenset({PacketType.AUTH})
_CLOSING: Final = _CONNACK | _DISCONNECT
_ANY_REQUEST: Final = _CLOSING | _ACK | _SUBACK | _UNSUBACK

#: Which packets may carry a reason (Table 2-6).
CARRIERS: Final[Mapping[Reason, frozenset[PacketType]]] = {
    Reason.SUCCESS: _ANY_REQUEST | _RELEASE | _AUTH,
    Reason.GRANTED_QOS_1: _SUBACK,
    Reason.GRANTED_QOS_2: _SUBACK,
    Reason.DISCONNECT_WITH_WILL_MESSAGE: _DISCONNECT,
    Reason.NO_MATCHING_SUBSCRIBERS: _ACK,
    Reason.NO_SUBSCRIPTION_EXISTED: _UNSUBACK,
    Reason.CONTINUE_AUTHENTICATION: _AUTH,
    Reason.RE_AUTHENTICATE: _AUTH,
    Reason.UNSPECIFIED_ERROR: _ANY_REQUEST,
    Reason.MALFORMED_PACKET: _CLOSING,
    Reason.PROTOCOL_ERROR: _CLOSING,
    Reason.IMPLEMENTATION_SPECIFIC_ERROR: _ANY_REQUEST,
    Reason.UNSUPPORTED_PROTOCOL_VERSION: _CONNACK,
    Reason.CLIENT_IDENTIFIER_NOT_VALID: _CONNACK,
    Reason.BAD_USER_NAME_OR_PASSWORD: _CONNACK,
    Reason.NOT_AUTHORIZED: _ANY_REQUEST,
    Reason.SERVER_UNAVAILABLE: _CONNACK,
    Reason.SERVER_BUSY: _CLOSING,
    Reason.BANNED: _CONNACK,
    Reason.SERVER_SHUTTING_DOWN: _DISCONNECT,
    Reason.BAD_AUTHENTICATION_METHOD: _CLOSING,
    Reason.KEEP_ALIVE_TIMEOUT: _DISCONNECT,
    Reason.SESSION_TAKEN_OVER: _DISCONNECT,
    Reason.TOPIC_FILTER_INVALID: _SUBACK | _UNSUBACK | _DISCONNECT,
    Reason.TOPIC_NAME_INVALID: _CLOSING | _ACK,
    Reason.PACKET_IDENTIFIER_IN_USE: _ACK | _SUBACK | _UNSUBACK,
    Reason.PACKET_IDENTIFIER_NOT_FOUND: _RELEASE,
    Reason.RECEIVE_MAXIMUM_EXCEEDED: _DISCONNECT,
    Reason.TOPIC_ALIAS_INVALID: _DISCONNECT,
    Reason.PACKET_TOO_LARGE: _CLOSING,
    Reason.MESSAGE_RATE_TOO_HIGH: _DISCONNECT,
    Reason.QUOTA_EXCEEDED: _CLOSING | _ACK | _SUBACK,
    Reason.ADMINISTRATIVE_ACTION: _DISCONNECT,
    Reason.PAYLOAD_FORMAT_INVALID: _CLOSING | _ACK,
    Reason.RETAIN_NOT_SUPPORTED: _CLOSING,
    Reason.QOS_NOT_SUPPORTED: _CLOSING,
    Reason.USE_ANOTHER_SERVER: _CLOSING,
    Reason.SERVER_MOVED: _CLOSING,
    Reason.SHARED_SUBSCRIPTIONS_NOT_SUPPORTED: _SUBACK | _DISCONNECT,
    Reason.CONNECTION_RATE_EXCEEDED: _CLOSING,
    Reason.MAXIMUM_CONNECT_TIME: _DISCONNECT,
    Reason.SUBSCRIPTION_IDENTIFIERS_NOT_SUPPORTED: _SUBACK | _DISCONNECT,
    Reason.WILDCARD_SUBSCRIPTIONS_NOT_SUPPORTED: _SUBACK | _DISCONNECT,
}


def carried_by(packet_type: PacketType) -> frozenset[Reason]:
    """Return the reasons a packet of this kind may carry."""
    return frozenset(reason for reason, carriers in CARRIERS.items() if packet_type in carriers)


#: Reasons that only a server gives, of those a DISCONNECT or an AUTH may carry (Tables 3-10 and 3-11).
SERVERS_ALONE: Final = frozenset(
    {
        Reason.NOT_AUTHORIZED,
        Reason.SERVER_BUSY,
        Reason.SERVER_SHUTTING_DOWN,
        Reason.BAD_AUTHENTICATION_METHOD,
        Reason.KEEP_ALIVE_TIMEOUT,
        Reason.SESSION_TAKEN_OVER,
        Reason.TOPIC_FILTER_INVALID,
        Reason.RETAIN_NOT_SUPPORTED,
        Reason.QOS_NOT_SUPPORTED,
        Reason.USE_ANOTHER_SERVER,
        Reason.SERVER_MOVED,
        Reason.SHARED_SUBSCRIPTIONS_NOT_SUPPORTED,
        Reason.CONNECTION_RATE_EXCEEDED,
        Reason.MAXIMUM_CONNECT_TIME,
        Reason.SUBSCRIPTION_IDENTIFIERS_NOT_SUPPORTED,
        Reason.WILDCARD_SUBSCRIPTIONS_NOT_SUPPORTED,
    }
)

#: The return codes of CONNACK in 3.x. For a reason that is absent the connection closes without one (3.1.1: 3.2.2-6).
CONNACK_3: Final[Mapping[Reason, int]] = {
    Reason.SUCCESS: 0,
    Reason.UNSUPPORTED_PROTOCOL_VERSION: 1,
    Reason.CLIENT_IDENTIFIER_NOT_VALID: 2,
    Reason.SERVER_UNAVAILABLE: 3,
    Reason.SERVER_BUSY: 3,
    Reason.SERVER_SHUTTING_DOWN: 3,
    Reason.QUOTA_EXCEEDED: 3,
    Reason.CONNECTION_RATE_EXCEEDED: 3,
    Reason.USE_ANOTHER_SERVER: 3,
    Reason.SERVER_MOVED: 3,
    Reason.BAD_USER_NAME_OR_PASSWORD: 4,
    Reason.NOT_AUTHORIZED: 5,
    Reason.BANNED: 5,
}

#: What the kernel declines. What MQTT has no word for is *implementation specific*: valid, but not done by this server.
REFUSALS: Final[Mapping[type[Refused], Reason]] = {
    AccessRefused: Reason.NOT_AUTHORIZED,
    NotFound: Reason.IMPLEMENTATION_SPECIFIC_ERROR,
    ResourceLocked: Reason.IMPLEMENTATION_SPECIFIC_ERROR,
    PreconditionFailed: Reason.IMPLEMENTATION_SPECIFIC_ERROR,
    NotAllowed: Reason.QUOTA_EXCEEDED,
    CommandInvalid: Reason.IMPLEMENTATION_SPECIFIC_ERROR,
    NotImplementedHere: Reason.IMPLEMENTATION_SPECIFIC_ERROR,
    InternalError: Reason.UNSPECIFIED_ERROR,
}


def reason_for(refusal: Refused) -> Reason:
    """Return the reason a refusal is told with."""
    return next((REFUSALS[kind] for kind in type(refusal).__mro__ if kind in REFUSALS), Reason.UNSPECIFIED_ERROR)
