"""The durable entities: users, exchanges, queues, sessions and more, put as a whole and removed by key."""

from dataclasses import dataclass, fields
from typing import ClassVar, Final, Self

from gateway.kernel.messages.message import Value

#: Kind of record to its class. A subclass of ``Entity`` adds itself; ``broker/restoring.py`` restores each kind.
ENTITY_BY_KIND: Final[dict[str, type["Entity"]]] = {}


@dataclass(frozen=True, slots=True)
class Entity:
    """Base of the records that are put and removed as a whole.

    ``kind`` names the table, ``version`` its layout: a store with a newer version refuses to start, an older one is
    upgraded by ``from_fields``. Fields hold only ``Value``s. The first ``key_width`` fields are the key.
    """

    kind: ClassVar[str]
    version: ClassVar[int] = 1
    key_width: ClassVar[int] = 1

    def __init_subclass__(cls) -> None:
        ENTITY_BY_KIND[cls.kind] = cls  # called twice for a class with slots; the second one is in use

    @property
    def messages_id(self) -> int:
        """The number under which the store keeps the entity's messages; 0 if it has none."""
        return 0

    @property
    def key(self) -> tuple[Value, ...]:
        """The fields that identify the entity among those of its kind."""
        return tuple(getattr(self, f.name) for f in fields(self)[: self.key_width])

    def to_fields(self) -> dict[str, Value]:
        """Return the fields by name, ready for ``values.dumps``."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @classmethod
    def from_fields(cls, values: dict[str, Value], version: int) -> Self:
        """Build an entity from fields of layout ``version``; a newer layout overrides this to upgrade older ones."""
        return cls(**values)


@dataclass(frozen=True, slots=True)
class UserRecord(Entity):
    """A user of the internal database. ``password_hash`` is RabbitMQ's: base64 of a 4 byte salt and the digest.

    ``scram_sha_256`` is the verifier of ``gateway.access.scram``. It is empty if only the password's hash is known, as
    in every record of version 1, which did not have the field.
    """

    kind: ClassVar[str] = "user"
    version: ClassVar[int] = 2
    name: str
    password_hash: str
    hashing_algorithm: str
    tags: list[Value]
    limits: dict[str, Value]
    scram_sha_256: str = ""


@dataclass(frozen=True, slots=True)
class SecretRecord(Entity):
    """Random bytes of this store, for secrets that have to stay the same over restarts."""

    kind: ClassVar[str] = "secret"
    name: str
    value: bytes


@dataclass(frozen=True, slots=True)
class VhostRecord(Entity):
    """A virtual host, and the plugins it enables: name to settings.

    An empty ``default_queue_type`` means the node's. Deleting it is refused while it ``is_protected`` (since layout 2);
    ``trace_table`` (since layout 3) enables the table of its message events.
    """

    kind: ClassVar[str] = "vhost"
    version: ClassVar[int] = 3
    name: str
    description: str
    tags: list[Value]
    default_queue_type: str
    tracing: bool
    plugins: dict[str, Value]
    limits: dict[str, Value]
    is_protected: bool = False
    trace_table: bool = False


@dataclass(frozen=True, slots=True)
class PermissionRecord(Entity):
    """Patterns of the names that a user may configure, write and read in a virtual host."""

    kind: ClassVar[str] = "permission"
    key_width: ClassVar[int] = 2
    vhost: str
    user: str
    configure: str
    write: str
    read: str


@dataclass(frozen=True, slots=True)
class TopicPermissionRecord(Entity):
    """Patterns of the routing keys that a user may write and read through one topic exchange."""

    kind: ClassVar[str] = "topic_permission"
    key_width: ClassVar[int] = 3
    vhost: str
    user: str
    exchange: str
    write: str
    read: str


@dataclass(frozen=True, slots=True)
class ExchangeRecord(Entity):
    """A durable exchange. ``queue_id`` is its number in the message tables if it delays messages, else 0."""

    kind: ClassVar[str] = "exchange"
    key_width: ClassVar[int] = 2
    vhost: str
    name: str
    type: str
    is_auto_delete: bool
    is_internal: bool
    arguments: dict[str, Value]
    queue_id: int = 0

    @property
    def messages_id(self) -> int:
        """The number under which the store keeps its messages."""
        return self.queue_id


@dataclass(frozen=True, slots=True)
class QueueRecord(Entity):
    """A durable queue. ``id`` is its number in the message tables; ``user`` declared it (since layout 2)."""

    kind: ClassVar[str] = "queue"
    version: ClassVar[int] = 2
    key_width: ClassVar[int] = 2
    vhost: str
    name: str
    id: int
    is_auto_delete: bool
    arguments: dict[str, Value]
    user: str = ""

    @property
    def messages_id(self) -> int:
        """The number under which the store keeps its messages."""
        return self.id


@dataclass(frozen=True, slots=True)
class StreamOffsetRecord(Entity):
    """The stored offset of a named stream consumer: ``offset`` is the last message that it processed."""

    kind: ClassVar[str] = "stream_offset"
    key_width: ClassVar[int] = 3
    vhost: str
    queue: str
    consumer: str
    offset: int


@dataclass(frozen=True, slots=True)
class ArchiveRecord(Entity):
    """An archive of an exchange, a queue or the trace (``source``) of this ``name``.

    ``id`` is its number in the message tables. ``since_ms`` is when it began, wall time; its files are named by it,
    because another archive of the same name may follow.
    """

    kind: ClassVar[str] = "archive"
    key_width: ClassVar[int] = 3
    vhost: str
    source: str
    name: str
    id: int
    since_ms: int

    @property
    def messages_id(self) -> int:
        """The number under which the store keeps its messages."""
        return self.id


@dataclass(frozen=True, slots=True)
class BindingRecord(Entity):
    """A binding of a durable source to a durable destination. ``destination_kind`` is ``queue`` or ``exchange``.

    ``user`` created it (since layout 2).
    """

    kind: ClassVar[str] = "binding"
    version: ClassVar[int] = 2
    key_width: ClassVar[int] = 6
    vhost: str
    source: str
    destination_kind: str
    destination: str
    routing_key: str
    arguments: dict[str, Value]
    user: str = ""


@dataclass(frozen=True, slots=True)
class PolicyRecord(Entity):
    """A policy, or an operator policy."""

    kind: ClassVar[str] = "policy"
    key_width: ClassVar[int] = 3
    vhost: str
    name: str
    is_operator: bool
    pattern: str
    apply_to: str
    priority: int
    definition: dict[str, Value]


@dataclass(frozen=True, slots=True)
class ParameterRecord(Entity):
    """A runtime parameter; ``vhost`` and ``component`` are empty for a global one."""

    kind: ClassVar[str] = "parameter"
    key_width: ClassVar[int] = 3
    vhost: str
    component: str
    name: str
    value: Value


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


@dataclass(frozen=True, slots=True)
class ProducerRecord(Entity):
    """The last batch that a producer published for one of its queries, and its wall time."""

    kind: ClassVar[str] = "producer"
    key_width: ClassVar[int] = 3
    vhost: str
    producer: str
    query: str
    batch: int
    published_at_ms: int


@dataclass(frozen=True, slots=True)
class SeenRecord(Entity):
    """A key in the deduplication window of a queue or exchange (``place``), as a digest.

    ``number`` orders the keys of one window. ``until_ms`` is wall time, 0 for no time limit.
    """

    kind: ClassVar[str] = "seen"
    key_width: ClassVar[int] = 4
    vhost: str
    place: str
    name: str
    digest: bytes
    number: int
    until_ms: int


@dataclass(frozen=True, slots=True)
class CleanStopRecord(Entity):
    """Marks that the store was closed cleanly: unsettled messages were requeued and their deliveries counted.

    Except messages up to the position ``doubtful_up_to``, which existed when the node was last killed.
    """

    kind: ClassVar[str] = "clean_stop"
    node: str
    doubtful_up_to: int
