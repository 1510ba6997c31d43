"""Records of virtual hosts, and of their exchanges, queues, bindings, policies and archives."""

from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

from gateway.kernel.journal.records.entity import Entity
from gateway.kernel.messages.message import Value


@dataclass(frozen=True, slots=True)
class VhostRecord(Entity):
    """A virtual host, and its plugins: name to settings, or to ``False`` for one that the configuration enables.

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
    """A durable queue. ``id`` is its number in the message tables; ``user`` declared it (since layout 2).

    ``since_ms`` is when it was declared, wall time (since layout 3; 0 for an older one). A number may be assigned again
    after a restart, so both together tell a queue from its successor of the same name.
    """

    kind: ClassVar[str] = "queue"
    version: ClassVar[int] = 3
    key_width: ClassVar[int] = 2
    vhost: str
    name: str
    id: int
    is_auto_delete: bool
    arguments: dict[str, Value]
    user: str = ""
    since_ms: int = 0

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
class ArchiveRecord(Entity):
    """An archive of an exchange, a queue or the trace (``source``) of this ``name``.

    ``id`` is its number in the message tables. ``since_ms`` is when it began, wall time; its files are named by it,
    because another archive of the same name may follow. ``tables`` has pairs of an offset and the name of the typed
    table for messages from there on, ``""`` for the table of all archives, which is also that before the first pair.
    """

    kind: ClassVar[str] = "archive"
    version: ClassVar[int] = 2  # 1 had no tables
    key_width: ClassVar[int] = 3
    vhost: str
    source: str
    name: str
    id: int
    since_ms: int
    tables: list[Value] = field(default_factory=list)

    @property
    def messages_id(self) -> int:
        """The number under which the store keeps its messages."""
        return self.id

    @property
    def table(self) -> str:
        """The typed table of later messages, ``""`` for none."""
        return self._changes[-1][1] if self.tables else ""

    def table_of(self, offset: int) -> str:
        """Return the name of the typed table of a message, ``""`` for none."""
        return next((name for since, name in reversed(self._changes) if since <= offset), "")

    def with_table(self, table: str, since: int, first: int) -> Self:
        """Return the record with another typed table for messages from ``since`` on; none before ``first`` is left."""
        changes = [(first, self.table_of(first)), *self._changes, (since, table)]
        return replace(self, tables=[[offset, name] for offset, name in changes if offset >= first])

    @property
    def _changes(self) -> list[tuple[int, str]]:
        """The changes of the table, in order."""
        pairs = (pair for pair in self.tables if isinstance(pair, list))
        return [(since, name) for since, name in pairs if isinstance(since, int) and isinstance(name, str)]
