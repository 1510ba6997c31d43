"""Records of what an action of the message workbench did, so that it can be undone for some time."""

from dataclasses import dataclass
from typing import ClassVar

from gateway.kernel.journal.records.entity import Entity


@dataclass(frozen=True, slots=True)
class UndoRecord(Entity):
    """An action that can be undone until ``until_ms`` (wall time); ``target`` is the queue that got the messages.

    ``queue_id`` is the number under which the store keeps the messages that the action removed.
    """

    kind: ClassVar[str] = "undo"
    number: int
    vhost: str
    queue: str
    action: str
    target_vhost: str
    target: str
    user: str
    at_ms: int
    until_ms: int
    queue_id: int

    @property
    def messages_id(self) -> int:
        """The number of the removed messages in the store."""
        return self.queue_id


@dataclass(frozen=True, slots=True)
class UndoRowsRecord(Entity):
    """Some messages of an action, four numbers of 64 bits each.

    These are the position in the source queue, the position of the new message (0 for none), the position of the
    removed message (0 for none) and the end of its delay in wall time (0 for a ready message).
    """

    kind: ClassVar[str] = "undo_rows"
    key_width: ClassVar[int] = 2
    undo: int
    number: int
    rows: bytes
