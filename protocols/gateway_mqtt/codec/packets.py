"""Decoded client packets. PUBLISH and acknowledgements have no class, because they are too frequent for objects."""

from dataclasses import dataclass
from typing import NamedTuple

from gateway_mqtt.codec.properties import Properties
from gateway_mqtt.codec.reasons import ReasonCode


@dataclass(frozen=True, slots=True)
class WillPacket:
    """The message to publish if the connection ends without a normal DISCONNECT (3.1.3.2)."""

    topic: str
    payload: bytes
    qos: int
    retain: bool
    properties: Properties


class Connect(NamedTuple):
    """A CONNECT (3.1). ``version`` is 3 for MQTT 3.1, 4 for 3.1.1 and 5 for 5.0.

    ``clean_start`` is *clean session* in 3.x. ``keep_alive_s`` is 0 without keep alive. ``client_id`` may be empty if
    the server may assign one.
    """

    version: int
    protocol_name: str
    clean_start: bool
    keep_alive_s: int
    client_id: str
    username: str | None
    password: bytes | None
    will: WillPacket | None
    properties: Properties


@dataclass(frozen=True, slots=True)
class SubscriptionRequest:
    """One filter of a SUBSCRIBE with its options (3.8.3.1). The filter is not validated yet.

    ``retain_handling``: 0 sends retained messages, 1 only for a new subscription, 2 never.
    """

    filter: str
    qos: int
    no_local: bool = False
    retain_as_published: bool = False
    retain_handling: int = 0


@dataclass(frozen=True, slots=True)
class Subscribe:
    """A SUBSCRIBE (3.8), of at least one filter."""

    packet_id: int
    properties: Properties
    filters: tuple[SubscriptionRequest, ...]


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    """An UNSUBSCRIBE (3.10), of at least one filter."""

    packet_id: int
    properties: Properties
    filters: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Disconnect:
    """A DISCONNECT (3.14)."""

    reason: ReasonCode
    properties: Properties


@dataclass(frozen=True, slots=True)
class Auth:
    """An AUTH (3.15)."""

    reason: ReasonCode
    properties: Properties
