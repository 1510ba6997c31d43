"""The records of the log: every change to durable state, in order.

Three families. An *entity* (a user, an exchange, a binding ...) is ``Put`` as a whole or ``Removed`` by key. A
*message* is ``Stored`` once, ``Enqueued`` in each durable queue, ``Dequeued`` from each, and ``Discarded`` with the
last one. A *stream* is ``Appended`` to at its end, ``Sealed`` a segment at a time and ``Truncated`` at its front. A
record describes a state, not a transition, so applying one twice is the same as once.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NewType, TypeAlias

from gateway.kernel.journal.records.entity import Entity
from gateway.kernel.messages.message import Message, Value

Lsn = NewType("Lsn", int)
"""A position in the log: the n-th call of ``Store.append`` has position n, counted from 1 at each start."""

QueueId = NewType("QueueId", int)
"""The number of a durable queue in the store; not reused after the queue is deleted."""

Position = NewType("Position", int)
"""A message's position: grows with each enqueued message on the node, so it orders the messages of every queue."""


@dataclass(frozen=True, slots=True)
class Put:
    """Create or replace an entity.

    ``record`` is the encoded entity if it was encoded already (see ``writable``), else empty.
    """

    entity: Entity
    record: bytes = field(default=b"", compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Removed:
    """Delete an entity."""

    kind: str
    key: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class SetAside:
    """Quarantine a durable record that cannot be used: it is moved aside, with the reason.

    ``kind`` and ``key`` are those of an entity; ``MESSAGE`` and a message id; or ``PLACE`` and a position. ``queue_id``
    is the queue number under which the entity's messages are stored, 0 for none.
    """

    kind: str
    key: tuple[Value, ...]
    reason: str
    queue_id: int = 0


MESSAGE: Final = "message"
"""The kind of a message's content in ``SetAside``."""

PLACE: Final = "place"
"""The kind of a message's position in a queue in ``SetAside``."""


class Stored:
    """Store a message's content, for a durable queue or, if it ``is_spilled``, to free memory of a long queue.

    The store writes ``message_id``, exchange, routing key, header format and bytes, and body. Spilled content need
    not survive a restart.
    """

    __slots__ = ("is_spilled", "message", "message_id")

    def __init__(self, message: Message, is_spilled: bool = False) -> None:
        self.message = message
        self.message_id = message.id  # a copy: the last queue to remove the message resets its id, maybe in this turn
        self.is_spilled = is_spilled


class Enqueued:
    """A stored message was added to a durable queue, or requeued there.

    ``enqueued_at_ms`` is wall time since the epoch, ``delivery_count`` the number of requeued deliveries, ``body_size``
    the length of the body in bytes, ``priority`` the publisher's. ``due_at_ms`` is the end of a delay and
    ``expires_at_ms`` that of a message TTL: wall time, 0 for none. Recovery reads them here instead of in a million
    contents.
    """

    __slots__ = (
        "body_size",
        "delivery_count",
        "due_at_ms",
        "enqueued_at_ms",
        "expires_at_ms",
        "message_id",
        "position",
        "priority",
        "queue_id",
    )

    def __init__(
        self,
        queue_id: int,
        position: int,
        message_id: int,
        enqueued_at_ms: int,
        delivery_count: int = 0,
        body_size: int = 0,
        priority: int = 0,
        due_at_ms: int = 0,
        expires_at_ms: int = 0,
    ) -> None:
        self.queue_id = queue_id
        self.position = position
        self.message_id = message_id
        self.enqueued_at_ms = enqueued_at_ms
        self.delivery_count = delivery_count
        self.body_size = body_size
        self.priority = priority
        self.due_at_ms = due_at_ms
        self.expires_at_ms = expires_at_ms


class Dequeued:
    """The message at this position was removed from its durable queue."""

    __slots__ = ("position",)

    def __init__(self, position: int) -> None:
        self.position = position


class Discarded:
    """No queue holds the stored message any longer; its content can be deleted."""

    __slots__ = ("is_spilled", "message_id")

    def __init__(self, message_id: int, is_spilled: bool = False) -> None:
        self.message_id = message_id
        self.is_spilled = is_spilled


class Appended:
    """A message was appended to a stream: the n-th message ever has the offset n - 1, without gaps.

    ``timestamp_ms`` is wall time since the epoch and never decreases within a stream. ``filter_value`` is for filtered
    reads, empty for none. The store writes the content of the message with it.
    """

    __slots__ = ("filter_value", "message", "offset", "stream_id", "timestamp_ms")

    def __init__(self, stream_id: int, offset: int, timestamp_ms: int, filter_value: bytes, message: Message) -> None:
        self.stream_id = stream_id
        self.offset = offset
        self.timestamp_ms = timestamp_ms
        self.filter_value = filter_value
        self.message = message


@dataclass(frozen=True, slots=True)
class Sealed:
    """A segment of a stream is complete. The record follows the segment's last message and precedes the next one."""

    segment: "StreamSegment"


@dataclass(frozen=True, slots=True)
class Truncated:
    """Everything in a stream below the offset ``first`` is deleted. Sealed segments are deleted as a whole.

    ``EVERYTHING`` deletes the stream itself.
    """

    stream_id: int
    first: int


EVERYTHING: Final = (1 << 64) - 1
"""Greater than any offset."""


@dataclass(frozen=True, slots=True)
class StreamSegment:
    """A run of messages of a stream, from the offset ``first`` up to ``end`` (exclusive).

    ``size_bytes`` is approximate. The times of the first and last message are 0 if unknown. ``bloom`` is a Bloom filter
    of the filter values (``stream_filters``), empty if unknown.
    """

    stream_id: int
    first: int
    end: int
    size_bytes: int
    first_ms: int
    last_ms: int
    is_sealed: bool
    bloom: bytes = b""


Change: TypeAlias = Put | Removed | SetAside | Stored | Enqueued | Dequeued | Discarded | Appended | Sealed | Truncated
Changes: TypeAlias = Sequence[Change]

Recovered: TypeAlias = Put | SetAside | StreamSegment | Enqueued
"""The records that a store yields on recovery."""
