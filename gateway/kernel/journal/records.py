"""The entities that survive: users, exchanges, queues, sessions and more, put whole and removed by key."""

from dataclasses import dataclass, fields
from typing import ClassVar, Final, Self

from gateway.kernel.messages.message import Value

#: Kind of record to its class. A subclass of ``Entity`` adds itself; ``broker/restoring.py`` restores each kind.
ENTITY_BY_KIND: Final[dict[str, type["Entity"]]] = {}


@dataclass(frozen=True, slots=True)
class Entity:
    """Base of the records that are put and removed whole.

    ``kind`` names the table, ``version`` its layout: a store that holds a newer version refuses to start, an older one
    is upgraded by ``from_fields``. Fields hold ``Value``s only. The first ``key_width`` fields are the key.
    """

    kind: ClassVar[str]
    version: ClassVar[int] = 1
    key_width: ClassVar[int] = 1

    def __init_subclass__(cls) -> None:
        ENTITY_BY_KIND[cls.kind] = cls  # twice for a class with slots: the second is the one that is used

    @property
    def messages_id(self) -> int:
        """The number under which the store keeps messages for this entity; 0 if it keeps none."""
        return 0

    @property
    def key(self) -> tuple[Value, ...]:
        """What identifies the entity among its kind."""
        return tuple(getattr(self, f.name) for f in fields(self)[: self.key_width])

    def to_fields(self) -> dict[str, Value]:
        """Return the fields by name, ready for ``values.dumps``."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @classmethod
    def from_fields(cls, values: dict[str, Value], version: int) -> Self:
        """Rebuild an entity of layout ``version``; a new layout overrides this to upgrade the older ones."""
        return cls(**values)


@dataclass(frozen=True, slots=True)
class UserRecord(Entity):
    """A user of the internal database. ``password_hash`` is RabbitMQ's: base64 of a 4 byte salt and the digest.

    ``scram_sha_256`` is what ``gateway.access.scram`` keeps of the password. It is empty for a user of whom only the
    hash is known, and so for every record of version 1, which had no such field.
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
    """Random bytes that this store alone has, for what must not be guessed and yet stay the same over restarts."""

    kind: ClassVar[str] = "secret"
    name: str
    value: bytes


@dataclass(frozen=True, slots=True)
class VhostRecord(Entity):
    """A virtual host, and the plugins it enables: name to settings.

    An empty ``default_queue_type`` is the node's. Nobody deletes it while it ``is_protected``, which layout 2 added;
    layout 3 added ``trace_table``, whether what happens to its messages is written down.
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
    """Patterns of the names a user may configure, write and read in a virtual host."""

    kind: ClassVar[str] = "permission"
    key_width: ClassVar[int] = 2
    vhost: str
    user: str
    configure: str
    write: str
    read: str


@dataclass(frozen=True, slots=True)
class TopicPermissionRecord(Entity):
    """Patterns of the routing keys a user may write and read through one topic exchange."""

    kind: ClassVar[str] = "topic_permission"
    key_width: ClassVar[int] = 3
    vhost: str
    user: str
    exchange: str
    write: str
    read: str


@dataclass(frozen=True, slots=True)
class ExchangeRecord(Entity):
    """A durable exchange. ``queue_id`` names it in the message tables if it holds messages back, and is 0 otherwise."""

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
    """A durable queue. ``id`` names it in the message tables; ``user`` made it, which layout 2 added."""

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
    """How far a consumer got in a stream, by the name it gave itself: ``offset`` is the last message it dealt with."""

    kind: ClassVar[str] = "stream_offset"
    key_width: ClassVar[int] = 3
    vhost: str
    queue: str
    consumer: str
    offset: int


@dataclass(frozen=True, slots=True)
class ArchiveRecord(Entity):
    """An archive: ``source`` says of what, ``exchange``, ``queue`` or ``trace``, and ``name`` of which.

    ``id`` names its log in the message tables. ``since_ms`` is when it began, wall time: files are named by it, for an
    archive of the same name may come after this one.
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
    """A binding between two durable ends. ``destination_kind`` is ``queue`` or ``exchange``.

    ``user`` made it, which layout 2 added.
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
    """A session that outlives its connection: by ``expiry_s`` seconds, counted from ``ended_at_ms`` (wall time).

    ``ended_at_ms`` is 0 while its client is connected. ``user`` is whose it is, which layout 2 added; empty in records
    of layout 1.
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
    """What a session asked for under one filter, as its client wrote it.

    ``group`` is the name of the group it shares messages with, or empty. ``identifier`` comes with each message, unless
    it is 0. ``qos`` is the most it wants.
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
    """That a queue was made for a group of subscribers, and goes with the last of them. ``queue_id`` says which one."""

    kind: ClassVar[str] = "group"
    key_width: ClassVar[int] = 2
    vhost: str
    queue: str
    queue_id: int


@dataclass(frozen=True, slots=True)
class HandshakeRecord(Entity):
    """An exactly-once delivery under way, by its packet identifier.

    One that ``is_incoming`` was published already and is remembered until its publisher releases it. Of the others,
    ``position`` is the message's place in its queue, and 0 once its subscriber has it (MQTT 5.0, 4.3.3).
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
    """The last message of a topic that was to be kept. ``expires_at_ms`` is wall time, 0 for never."""

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
    """What is to be published for a client that is gone, at ``due_at_ms`` (wall time) unless it comes back before."""

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
    """The last batch that a producer published for one of its queries, and when (wall time)."""

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

    ``number`` orders the keys of one window. ``until_ms`` is wall time, 0 for as long as there is room.
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
    """There while the store is closed in order: what was handed out came back and was counted.

    All but the messages up to the position ``doubtful_up_to``, which were there when the node was last killed.
    """

    kind: ClassVar[str] = "clean_stop"
    node: str
    doubtful_up_to: int
