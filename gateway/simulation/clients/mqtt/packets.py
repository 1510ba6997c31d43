"""Packets of MQTT 3.1.1 and 5.0 as a client knows them.

These modules follow from the specifications alone: they share nothing with the broker's codec, which they test.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final


class PacketKind(IntEnum):
    """The packet types (2.1.2)."""

    CONNECT = 1
    CONNACK = 2
    PUBLISH = 3
    PUBACK = 4
    PUBREC = 5
    PUBREL = 6
    PUBCOMP = 7
    SUBSCRIBE = 8
    SUBACK = 9
    UNSUBSCRIBE = 10
    UNSUBACK = 11
    PINGREQ = 12
    PINGRESP = 13
    DISCONNECT = 14
    AUTH = 15


#: Properties that the clients use (2.2.2.2).
CONTENT_TYPE: Final = 0x03
EXPIRY_INTERVAL: Final = 0x11
WILL_DELAY: Final = 0x18
RECEIVE_MAXIMUM: Final = 0x21

#: The form of each property's value: its size in bytes, or one of these.
TEXT, BINARY, VARIABLE, PAIR = "text", "binary", "variable", "pair"
FORMS: Final[dict[int, int | str]] = {
    0x01: 1,
    0x02: 4,
    0x03: TEXT,
    0x08: TEXT,
    0x09: BINARY,
    0x0B: VARIABLE,
    0x11: 4,
    0x12: TEXT,
    0x13: 2,
    0x15: TEXT,
    0x16: BINARY,
    0x17: 1,
    0x18: 4,
    0x19: 1,
    0x1A: TEXT,
    0x1C: TEXT,
    0x1F: TEXT,
    0x21: 2,
    0x22: 2,
    0x23: 2,
    0x24: 1,
    0x25: 1,
    0x26: PAIR,
    0x27: 4,
    0x28: 1,
    0x29: 1,
    0x2A: 1,
}

#: A property and its value; several may have the same number.
PropertyList = Sequence[tuple[int, Any]]  # Any: the value's type follows from the number


class UnreadablePacket(Exception):
    """The broker sent what is no packet."""


@dataclass(frozen=True, slots=True)
class Will:
    """The message that the broker publishes when the connection is lost."""

    topic: str
    payload: bytes
    qos: int = 0
    is_retained: bool = False
    delay_s: int = 0


@dataclass(frozen=True, slots=True)
class Login:
    """The contents of a CONNECT. ``version`` is 3 for 3.1, 4 for 3.1.1, or 5.

    The expiry and the Receive Maximum are for 5. The password of a user is its name.
    """

    client_id: str
    version: int = 5
    is_clean: bool = True
    keep_alive_s: int = 0
    will: Will | None = None
    expiry_s: int = 0
    receive_maximum: int | None = None
    user: str = "guest"


@dataclass(frozen=True, slots=True)
class ReceivedPacket:
    """A packet of the broker; only the fields of its kind are set. ``reasons`` has one for each filter in a SUBACK."""

    kind: PacketKind
    packet_id: int = 0
    reasons: tuple[int, ...] = (0,)
    is_session_present: bool = False
    is_dup: bool = False
    qos: int = 0
    is_retained: bool = False
    topic: str = ""
    payload: bytes = b""
    properties: PropertyList = ()

    @property
    def content_type(self) -> str | None:
        """The content type of a message, if it has one."""
        return next((str(value) for number, value in self.properties if number == CONTENT_TYPE), None)

    @property
    def reason(self) -> int:
        """The first reason."""
        return self.reasons[0]
