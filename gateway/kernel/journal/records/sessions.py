"""Records of MQTT sessions: subscriptions, groups, QoS 2 handshakes, retained messages, wills."""

from dataclasses import dataclass
from typing import ClassVar

from gateway.kernel.journal.records.entity import Entity
from gateway.kernel.messages.values import as_record, bytes_as_json, text_as_json


@dataclass(frozen=True, slots=True)
class SessionRecord(Entity):
    """A session that outlives its connection by ``expiry_s`` seconds, counted from ``ended_at_ms`` (wall time).

    ``ended_at_ms`` is 0 while its client is connected. ``user`` is its owner (since layout 2, empty in records of
    layout 1).
    """

    kind: ClassVar[str] = "session"
    version: ClassVar[int] = 2
    key_width: ClassVar[int] = 2
    vhost: str
    client_id: str
    expiry_s: int
    ended_at_ms: int
    user: str = ""


@dataclass(frozen=True, slots=True)
class SubscriptionRecord(Entity):
    """A session's subscription to one topic filter, as its client wrote it.

    ``group`` is the name of a shared subscription, or empty. ``identifier`` is sent with each message, unless it is 0.
    ``qos`` is the maximum QoS.
    """

    kind: ClassVar[str] = "subscription"
    key_width: ClassVar[int] = 3
    vhost: str
    client_id: str
    filter: str
    group: str
    binding_key: str
    qos: int
    identifier: int = 0
    no_local: bool = False
    retain_as_published: bool = False


@dataclass(frozen=True, slots=True)
class GroupRecord(Entity):
    """A queue of a shared subscription, deleted with its last subscriber. ``queue_id`` is its number."""

    kind: ClassVar[str] = "group"
    key_width: ClassVar[int] = 2
    vhost: str
    queue: str
    queue_id: int


@dataclass(frozen=True, slots=True)
class HandshakeRecord(Entity):
    """A QoS 2 delivery in progress, by its packet identifier.

    If it ``is_incoming``, the message was published and the identifier is kept until the publisher's PUBREL. Otherwise
    ``position`` is the message's position in its queue, and 0 once its subscriber has it (MQTT 5.0, 4.3.3).
    """

    kind: ClassVar[str] = "handshake"
    key_width: ClassVar[int] = 4
    vhost: str
    client_id: str
    is_incoming: bool
    packet_id: int
    position: int = 0


@dataclass(frozen=True, slots=True)
class RetainedRecord(Entity):
    """The retained message of a topic. ``expires_at_ms`` is wall time, 0 for never."""

    kind: ClassVar[str] = "retained"
    key_width: ClassVar[int] = 2
    vhost: str
    routing_key: str
    exchange: str
    header_format: str
    header: bytes
    body: bytes
    expires_at_ms: int

    def encoded(self) -> bytes:
        """Return the fields as those of every record, without the JSON encoder: a client may send one each time."""
        return as_record(
            f'{{"vhost":{text_as_json(self.vhost)},"routing_key":{text_as_json(self.routing_key)},'
            f'"exchange":{text_as_json(self.exchange)},"header_format":{text_as_json(self.header_format)},'
            f'"header":{bytes_as_json(self.header)},"body":{bytes_as_json(self.body)},'
            f'"expires_at_ms":{self.expires_at_ms}}}'
        )


@dataclass(frozen=True, slots=True)
class WillRecord(Entity):
    """The will message of a disconnected client, published at ``due_at_ms`` (wall time) unless it reconnects before."""

    kind: ClassVar[str] = "will"
    key_width: ClassVar[int] = 2
    vhost: str
    client_id: str
    exchange: str
    routing_key: str
    header_format: str
    header: bytes
    body: bytes
    is_retained: bool
    due_at_ms: int
