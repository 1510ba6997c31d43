"""The actions of the workbench on one message: each is done within one turn, so the store gets it as a whole."""

from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Protocol, TypeAlias

from gateway.kernel.messages.message import Message
from gateway.kernel.messages.queued_message import QueuedMessage
from gateway.kernel.queueing.queue import Queue
from gateway.kernel.workbench.filters import DELAYED, READY
from gateway.kernel.workbench.found import Found
from gateway.kernel.workbench.removed import MovedMessage, RemovedMessages
from gateway.kernel.workbench.targets import Target

if TYPE_CHECKING:
    from gateway.kernel.journal.journal import Journal

Edit: TypeAlias = Callable[[Message], Message]
"""Returns a changed copy of a message."""

TargetOf: TypeAlias = Callable[[Message], Target | str]
"""Returns the target of a message, or why it has none."""


class Outcome(Enum):
    """The outcome for one message; ``GONE``: it was consumed, moved or dropped since it was found."""

    DONE = "done"
    GONE = "gone"
    REFUSED = "refused"


class Action(Protocol):
    """Applies to messages that a search found. ``reason`` is that of the last refusal."""

    reason: str

    def apply(self, found: Found) -> Outcome:
        """Apply to one message."""
        ...


class SourceQueue:
    """A queue that messages are removed from. ``removed`` keeps them, ``None`` if the action cannot be undone."""

    def __init__(self, queue: Queue, journal: "Journal", removed: RemovedMessages | None) -> None:
        self.queue = queue
        self.removed = removed
        self._journal = journal

    def withdraw(self, found: Found) -> QueuedMessage | None:
        """Remove a message and return it; ``None`` if it is gone."""
        if found.state == READY:
            return withdrawn(self.queue, found.entry)
        return self.queue.delayed.delays.withdraw(found.key) if self.queue.delayed is not None else None

    def give_back(self, entry: QueuedMessage, found: Found) -> None:
        """Return a message that was withdrawn and not dropped."""
        if found.state == DELAYED:
            self.queue.ensure_delayed().delays.hold(entry, found.due_at_ms)
        else:
            self.queue.requeue(entry)

    def drop(self, entry: QueuedMessage, found: Found, made: int) -> None:
        """Record that a message left the queue; ``made`` is the position of the new one, 0 for none."""
        if self.removed is None:
            self.queue.forget(entry)
            return
        self.removed.hold(entry)
        self.removed.note(MovedMessage(entry.position, made, entry.position, found.due_at_ms))

    def replace(self, entry: QueuedMessage, found: Found, message: Message) -> None:
        """Put another message in the place of one that was withdrawn: same position, times and delivery count."""
        queue, journal = self.queue, self._journal
        new = entry.with_message(message)
        new.is_durable = bool(queue.id) and (message.header.is_persistent or queue.stores_all)
        kept = None if self.removed is None else self.removed.hold_copy(entry)
        if new.is_durable and entry.is_durable:
            journal.replaced(queue.id, new, entry.message, found.due_at_ms)
        elif new.is_durable:
            journal.enqueued(queue.id, new, found.due_at_ms)
        elif entry.is_durable:
            journal.dequeued(entry.position, entry.message)
        self.give_back(new, found)
        if self.removed is not None and kept is not None:
            self.removed.note(MovedMessage(entry.position, entry.position, kept.position, found.due_at_ms))


class Delete:
    """Deletes messages; they are not dead-lettered."""

    reason = ""

    def __init__(self, source: SourceQueue) -> None:
        self._source = source

    def apply(self, found: Found) -> Outcome:
        """Delete one message."""
        entry = self._source.withdraw(found)
        if entry is None:
            return Outcome.GONE
        self._source.drop(entry, found, 0)
        return Outcome.DONE


class Move:
    """Moves messages, changed by ``edit`` if there is one, to the targets that ``target_of`` returns."""

    def __init__(self, source: SourceQueue, target_of: TargetOf, edit: Edit | None) -> None:
        self.reason = ""
        self._source = source
        self._target_of = target_of
        self._edit = edit

    def apply(self, found: Found) -> Outcome:
        """Move one message; it stays in its queue if the target refuses it."""
        seen = found.entry.message if self._edit is None else self._edit(found.entry.message)
        target = self._target_of(found.entry.message)
        self.reason = target if isinstance(target, str) else target.refusal(seen)
        if self.reason or isinstance(target, str):
            return Outcome.REFUSED
        entry = self._source.withdraw(found)
        if entry is None:
            return Outcome.GONE
        made = target.put(entry.message if self._edit is None else seen)
        if made is None:
            self._source.give_back(entry, found)
            self.reason = "the target refused the message"
            return Outcome.REFUSED
        self._source.drop(entry, found, made)
        return Outcome.DONE


class Copy:
    """Copies messages, changed by ``edit`` if there is one, to a target. ``removed`` notes the copies."""

    def __init__(self, target: Target, edit: Edit | None, removed: RemovedMessages | None) -> None:
        self.reason = ""
        self._target = target
        self._edit = edit
        self._removed = removed

    def apply(self, found: Found) -> Outcome:
        """Copy one message. Its content is stored anew: the original may leave its queue meanwhile."""
        original = found.entry.message
        if self._edit is None:
            copy = Message(original.exchange, original.routing_key, original.header, original.body)
        else:
            copy = self._edit(original)
        self.reason = self._target.refusal(copy)
        made = None if self.reason else self._target.put(copy)
        if made is None:
            return Outcome.REFUSED
        if self._removed is not None and made:
            self._removed.note(MovedMessage(0, made, 0, 0))
        return Outcome.DONE


class Replace:
    """Puts an edited message in the place of each."""

    reason = ""

    def __init__(self, source: SourceQueue, edit: Edit) -> None:
        self._source = source
        self._edit = edit

    def apply(self, found: Found) -> Outcome:
        """Replace one message."""
        entry = self._source.withdraw(found)
        if entry is None:
            return Outcome.GONE
        self._source.replace(entry, found, self._edit(entry.message))
        return Outcome.DONE


class Undo:
    """Puts a removed message back in its place, and takes the one that was made from it out of its queue.

    A message that was consumed from its new queue stays consumed. ``target_of`` returns the queue that got a message
    (``None`` for a copy); the messages of an action that ``is_moving`` were all put somewhere.
    """

    def __init__(
        self,
        source: Queue,
        target_of: Callable[[Message | None], Queue | None],
        removed: RemovedMessages,
        journal: "Journal",
        *,
        is_moving: bool,
    ) -> None:
        self._source = source
        self._target_of = target_of
        self._removed = removed
        self._journal = journal
        self._is_moving = is_moving

    def apply(self, moved: MovedMessage) -> Outcome:
        """Undo the action on one message."""
        if not moved.held:
            return Outcome.DONE if self._took_back(moved.made, None) else Outcome.GONE
        entry = self._removed.take(moved.held)
        if entry is None:
            return Outcome.GONE
        if moved.held != moved.source:
            return self._replace(moved, entry)
        if self._is_moving and not self._took_back(moved.made, entry.message):
            self._removed.held.forget(entry)
            return Outcome.GONE
        if entry.is_durable and moved.due_at_ms:
            self._journal.requeued(self._source.id, entry, moved.due_at_ms)
        self._put(entry, moved.due_at_ms)
        return Outcome.DONE

    def _took_back(self, position: int, message: Message | None) -> bool:
        """Remove the message that was made from ``message``; return whether it was still there."""
        target = self._target_of(message) if position else None
        made = None if target is None else _taken(target, position)
        if made is None or target is None:
            return False
        target.forget(made)
        return True

    def _replace(self, moved: MovedMessage, entry: QueuedMessage) -> Outcome:
        """Put the original in the place of the edited message."""
        edited = _taken(self._source, moved.source)
        if edited is None:
            self._removed.held.forget(entry)
            return Outcome.GONE
        original = QueuedMessage(entry.message, moved.source, entry.enqueued_at_ms, entry.is_durable)
        original.deliveries, original.is_redelivered = entry.deliveries, entry.is_redelivered
        if original.is_durable and edited.is_durable:
            self._journal.replaced(self._source.id, original, edited.message, moved.due_at_ms)
        elif original.is_durable:
            self._journal.enqueued(self._source.id, original, moved.due_at_ms)
        elif edited.is_durable:
            self._journal.dequeued(edited.position, edited.message)
        if entry.is_durable:
            self._journal.dequeued(entry.position, entry.message)
        self._put(original, moved.due_at_ms)
        return Outcome.DONE

    def _put(self, entry: QueuedMessage, due_at_ms: int) -> None:
        if due_at_ms:
            self._source.ensure_delayed().delays.hold(entry, due_at_ms)
        else:
            self._source.requeue(entry)


def withdrawn(queue: Queue, seen: QueuedMessage) -> QueuedMessage | None:
    """Remove and return a ready message without a delivery; ``None`` if it is gone."""
    entry = queue.pick(seen)
    if entry is not None:
        queue.held.remove(entry)
    return entry


def _taken(queue: Queue, position: int) -> QueuedMessage | None:
    """Remove and return the message at a position of a queue; ``None`` if it is not ready or delayed there."""
    for row in queue.ready.rows():
        if (entry := row.look_at(position)) is not None:
            return withdrawn(queue, entry)
    return None if queue.delayed is None else queue.delayed.delays.withdraw_at(position)
