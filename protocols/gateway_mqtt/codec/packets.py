"""The packets a client sends, as values; not PUBLISH and the acknowledgements, which are too many to be objects."""

from dataclasses import dataclass

from gateway_mqtt.codec.properties import Properties
from gateway_mqtt.codec.reasons import ReasonCode


@dataclass(frozen=True, slots=True)
class WillPacket:
    """The message to publish should the connection end otherwise than by DISCONNECT (3.1.3.2)."""

    topic: str
    payload: bytes
    qos: int
    retain: bool
    properties: Properties


@dataclass(frozen=True, slots=True)
class Connect:
    """A CONNECT (3.1). ``version`` is 3 for MQTT 3.1, 4 for 3.1.1 and 5 for 5.0.

    ``clean_start`` is what 3.x calls *clean session*.
    ``keep_alive_s`` is 0 when the client asked for none; ``client_id`` may be empty where the server may choose one.
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
    """One filter of a SUBSCRIBE with its options (3.8.3.1). The filter is as it came, not yet checked.

    ``retain_handling``: 0 sends retained messages, 1 if the subscription is new, 2 never.
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
