"""Delayed messages of a queue, and their release when they are due."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from gateway.kernel.backlog.delay_index import DelayIndex
from gateway.kernel.messages.death_records import DeathReason
from gateway.kernel.messages.message import Message
from gateway.kernel.messages.queued_message import QueuedMessage
from gateway.kernel.queueing.pending_dead_letters import PENDING_DEAD_LETTER, LetterQueue, PendingDeadLetters

if TYPE_CHECKING:
    from gateway.kernel.backlog.waiting import Waiting
    from gateway.kernel.journal.changes import Enqueued
    from gateway.kernel.journal.journal import Journal
    from gateway.kernel.queueing.drops import Drops

#: The delay before the next attempt, in milliseconds, for a message that does not fit even into an empty queue.
OVERSIZED_RETRY_MS: Final = 10_000


class DelayingQueue(LetterQueue, Protocol):
    """A queue as its delayed messages see it."""

    @property
    def id(self) -> int:
        """The queue's number in the store, 0 for a transient queue."""
        ...

    @property
    def ready(self) -> "Waiting":
        """The waiting messages."""
        ...

    @property
    def drops(self) -> "Drops":
        """The removal of messages that no consumer gets."""
        ...

    def offer(self, message: Message, *, was_delayed: bool = False) -> DeathReason | None:
        """Enqueue a message, or return why it was refused."""
        ...

    def refusal_of(self, message: Message) -> DeathReason | None:
        """Return why the queue has no room for a message, or ``None``."""
        ...

    def requeue(self, entry: QueuedMessage) -> None:
        """Requeue a message in the place it was taken from."""
        ...

    def dispatch(self) -> None:
        """Deliver waiting messages while some consumer has capacity."""
        ...


class DelayedMessages:
    """The delayed messages of one queue: ``delays`` until they are due, and pending ``dead_letters``.

    ``release`` handles a message that is due, and returns a reason if it has to wait on; by default the queue takes
    the message in.
    """

    __slots__ = ("_journal", "_queue", "dead_letters", "delays")

    def __init__(
        self,
        queue: "DelayingQueue",
        journal: "Journal",
        release: Callable[[QueuedMessage], DeathReason | None] | None = None,
    ) -> None:
        self._queue = queue
        self._journal = journal
        self.delays = DelayIndex(journal, release or self.release)
        self.dead_letters = PendingDeadLetters(queue, journal)

    def restore(self, change: "Enqueued", is_redelivered: bool) -> None:
        """Take in a delayed message found by recovery."""
        if change.due_at_ms == PENDING_DEAD_LETTER:
            self.dead_letters.restore(change)
        else:
            self.delays.restore(change, is_redelivered)

    def close(self) -> None:
        """Forget every message: the queue is deleted."""
        self.delays.close()
        self.dead_letters.close()

    def hold(self, message: Message, due_at_ms: int) -> QueuedMessage:
        """Delay a new message until ``due_at_ms`` (wall time); return its place."""
        entry = self._queue.enter(message, due_at_ms)
        self.delays.hold(entry, due_at_ms)
        return entry

    def requeue_delayed(self, entry: QueuedMessage, due_at_ms: int) -> None:
        """Delay a message that a consumer returned until ``due_at_ms`` (wall time); count the delivery."""
        entry.deliveries += 1
        entry.is_redelivered = True
        if entry.is_durable:
            self._journal.requeued(self._queue.id, entry, due_at_ms)
        self.delays.hold(entry, due_at_ms)

    def offer(self, message: Message) -> None:
        """Offer the queue a message that an exchange delayed.

        Its publisher can no longer be informed of a refusal: if the queue is full the message is dead-lettered; without
        dead-lettering it waits here, so that it is not lost.
        """
        queue = self._queue
        refusal = queue.refusal_of(message)
        if refusal is not None and self._dead_letters_overflow:
            queue.drops.drop_arriving(message, refusal)
        elif (refusal or queue.offer(message, was_delayed=True)) is not None:
            self.hold(message, self._journal.now_ms)

    def release(self, entry: QueuedMessage) -> DeathReason | None:
        """Make a delayed message ready or dead-letter it as ``offer`` does, or return why it has to wait on.

        A message that was delivered before returns to its old place; any other goes to the end of the queue.
        """
        queue = self._queue
        if entry.deliveries:
            queue.requeue(entry)
            queue.dispatch()
            return None
        refusal = queue.refusal_of(entry.message)
        if refusal is not None and self._dead_letters_overflow:
            queue.drops.discard(entry, refusal)
            return None
        refusal = refusal or queue.offer(entry.message, was_delayed=True)
        if refusal is None:
            queue.forget(entry)
        elif not queue.ready.length:  # too large even for an empty queue: do not block the messages behind it
            self.delays.hold(entry, self._journal.now_ms + OVERSIZED_RETRY_MS)
            return None
        return refusal

    @property
    def _dead_letters_overflow(self) -> bool:
        return self._queue.settings.text("dead-letter-exchange") is not None
