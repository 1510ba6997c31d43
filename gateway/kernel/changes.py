"""The records of the log: everything that changes what must survive, in the order it happened.

Two families. An *entity* (a user, an exchange, a binding ...) is ``Put`` whole or ``Removed`` by key. A *message* is
``Stored`` once, ``Enqueued`` in each durable queue, ``Dequeued`` from each, and ``Discarded`` when the last queue let
go. Records say what is, never how it came about, so applying one twice is the same as once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NewType, TypeAlias

from gateway.kernel.message import Message, Value
from gateway.kernel.records import Entity

Lsn = NewType("Lsn", int)
"""A position in the log: the n-th call of ``Store.append`` has position n, counted from 1 at each start."""

QueueId = NewType("QueueId", int)
"""The number of a durable queue in the store; never used again after the queue is gone."""

Position = NewType("Position", int)
"""The place of a message in all queues: grows with each enqueuing on the node, so it also orders every single queue."""


@dataclass(frozen=True, slots=True)
class Put:
    """The entity is now this, whether or not it was there before."""

    entity: Entity


@dataclass(frozen=True, slots=True)
class Removed:
    """The entity is gone."""

    kind: str
    key: tuple[Value, ...]


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


Change: TypeAlias = Put | Removed | Stored | Enqueued | Dequeued | Discarded
Changes: TypeAlias = Sequence[Change]
