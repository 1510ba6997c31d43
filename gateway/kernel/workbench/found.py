"""A message that a search found, and the place of a search."""

from dataclasses import dataclass

from gateway.kernel.messages.queued_message import QueuedMessage


@dataclass(frozen=True, slots=True)
class Found:
    """A message of a queue that stays where it is.

    ``key`` identifies it within its state: the position of a ready or unacknowledged message, the key of a delayed one,
    the offset in a stream. ``row`` is the number of the row of a queue with priorities. ``due_at_ms`` is the end of a
    delay, wall time. ``holder`` is the connection and ``channel`` the channel of the consumer that has it.
    """

    state: str
    entry: QueuedMessage
    key: int
    row: int = 0
    due_at_ms: int = 0
    holder: str = ""
    channel: int = 0


@dataclass(frozen=True, slots=True)
class Place:
    """The point at which a search continues: after the message with this key, in this row and state."""

    state: str
    row: int = 0
    key: int = 0
