"""The records of the log: everything that changes what must survive, in the order it happened.

Three families. An *entity* (a user, an exchange, a binding ...) is ``Put`` whole or ``Removed`` by key. A *message* is
``Stored`` once, ``Enqueued`` in each durable queue, ``Dequeued`` from each, and ``Discarded`` when the last queue let
go. A *stream* is ``Appended`` to at its end, ``Sealed`` a segment at a time and ``Truncated`` at its front. Records say
what is, never how it came about, so applying one twice is the same as once.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NewType, TypeAlias

from gateway.kernel.journal.records import Entity
from gateway.kernel.messages.message import Message, Value

Lsn = NewType("Lsn", int)
"""A position in the log: the n-th call of ``Store.append`` has position n, counted from 1 at each start."""

QueueId = NewType("QueueId", int)
"""The number of a durable queue in the store; never used again after the queue is gone."""

Position = NewType("Position", int)
"""The place of a message in all queues: grows with each enqueuing on the node, so it also orders every single queue."""


@dataclass(frozen=True, slots=True)
class Put:
    """The entity is now this, whether or not it was there before.

    ``record`` is the entity as bytes where it was encoded already (see ``writable``), and empty otherwise.
    """

    entity: Entity
    record: bytes = field(default=b"", compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Removed:
    """The entity is gone."""

    kind: str
    key: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class SetAside:
    """A durable record of the store cannot be used: it leaves its place and is kept aside, with the reason.

    ``kind`` and ``key`` are those of an entity; ``MESSAGE`` and a message id; or ``PLACE`` and a position. ``queue_id``
    is what messages are kept under for it, 0 for nothing.
    """

    kind: str
    key: tuple[Value, ...]
    reason: str
    queue_id: int = 0


MESSAGE: Final = "message"
"""The kind of the content of a message, where it is set aside."""

PLACE: Final = "place"
"""The kind of a message's place in a queue, where it is set aside."""


class Stored:
    """The message's content is needed: by a durable queue or, if it ``is_spilled``, by a long queue of this run only.

    The store writes ``message_id``, exchange, routing key, header format and bytes, and body. Spilled content need
    not survive a restart.
    """

    __slots__ = ("is_spilled", "message", "message_id")

    def __init__(self, message: Message, is_spilled: bool = False) -> None:
        self.message = message
        self.message_id = message.id  # the message forgets its id when its last queue lets go, in this very turn maybe
        self.is_spilled = is_spilled


class Enqueued:
    """A stored message took its place in a durable queue, or came back to it.

    ``enqueued_at_ms`` is wall time since the epoch, ``delivery_count`` the number of deliveries that came back,
    ``body_size`` the length of the body in bytes, ``priority`` the publisher's. ``due_at_ms`` is when a message that
    was held back may take part, ``expires_at_ms`` when it asked to expire: wall time, 0 for not at all. Recovery reads
    them here instead of in a million contents.
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
    """The message at this position left its durable queue for good."""

    __slots__ = ("position",)

    def __init__(self, position: int) -> None:
        self.position = position


class Discarded:
    """No queue holds these stored messages any longer; their content may go."""

    __slots__ = ("is_spilled", "message_id")

    def __init__(self, message_id: int, is_spilled: bool = False) -> None:
        self.message_id = message_id
        self.is_spilled = is_spilled


class Appended:
    """A message took its place at the end of a stream: the n-th message ever has the offset n - 1, without gaps.

    ``timestamp_ms`` is wall time since the epoch and never runs backwards within a stream. ``filter_value`` is what
    readers may ask for, empty for none. The store writes the content of the message along.
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
    """A segment of a stream is complete. It comes behind the last message of the segment and before any other."""

    segment: "StreamSegment"


@dataclass(frozen=True, slots=True)
class Truncated:
    """Everything in a stream below the offset ``first`` is gone. Sealed segments go whole.

    With ``EVERYTHING`` the stream is gone itself.
    """

    stream_id: int
    first: int


EVERYTHING: Final = (1 << 64) - 1
"""Above every offset there will be."""


@dataclass(frozen=True, slots=True)
class StreamSegment:
    """A run of messages of a stream, from the offset ``first`` up to ``end``.

    ``size_bytes`` is about what they take. The moments of the first and the last one are 0 where there is none.
    ``bloom`` says which filter values may be among them (``stream_filters``), and is empty where nobody knows.
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
"""What a store yields after a start."""
