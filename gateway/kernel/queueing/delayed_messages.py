"""Delayed messages of a queue, and their release when they are due."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from gateway.kernel.backlog.delay_index import DelayIndex
from gateway.kernel.messages.death_records import DeathReason
from gateway.kernel.messages.message import Message
from gateway.kernel.messages.queued_message import QueuedMessage
from gateway.kernel.queueing.pending_dead_letters import HELD, PendingDeadLetters

if TYPE_CHECKING:
    from gateway.kernel.journal.changes import Enqueued
    from gateway.kernel.journal.journal import Journal
    from gateway.kernel.queueing.queue import Queue

#: The delay before the next attempt, in milliseconds, for a message that does not fit even into an empty queue.
HOPELESS_MS: Final = 10_000


class DelayedMessages:
    """The delayed messages of one queue: ``delays`` holds messages until they are due, ``letters`` dead letters.

    ``release`` handles a message that is due, and returns a reason if it has to wait on; by default the queue takes
    the message in.
    """

    __slots__ = ("_journal", "_queue", "delays", "letters")

    def __init__(
        self, queue: "Queue", journal: "Journal", release: Callable[[QueuedMessage], DeathReason | None] | None = None
    ) -> None:
        self._queue = queue
        self._journal = journal
        self.delays = DelayIndex(journal, release or self.release)
        self.letters = PendingDeadLetters(queue, journal)

    def restore(self, change: "Enqueued", is_redelivered: bool) -> None:
        """Take in a delayed message found by recovery."""
        if change.due_at_ms == HELD:
            self.letters.restore(change)
        else:
            self.delays.restore(change, is_redelivered)

    def close(self) -> None:
        """Forget every message: the queue is deleted."""
        self.delays.close()
        self.letters.close()

    def hold(self, message: Message, due_at_ms: int) -> None:
        """Delay a new message until ``due_at_ms`` (wall time)."""
        self.delays.hold(self._queue.enter(message, due_at_ms), due_at_ms)

    def hold_again(self, entry: QueuedMessage, due_at_ms: int) -> None:
        """Delay a message that a consumer returned until ``due_at_ms`` (wall time); count the delivery."""
        entry.deliveries += 1
        entry.is_redelivered = True
        if entry.is_durable:
            self._journal.requeued(self._queue.id, entry, due_at_ms)
        self.delays.hold(entry, due_at_ms)

    def arrive(self, message: Message) -> None:
        """Offer the queue a message that an exchange delayed; if it has no room, the message waits here."""
        if self._queue.offer_late(message) is not None:
            self.hold(message, self._journal.now_ms)

    def release(self, entry: QueuedMessage) -> DeathReason | None:
        """Make a delayed message ready, or return why it has to wait on.

        A message that was delivered before returns to its old place; any other goes to the end of the queue.
        """
        queue = self._queue
        if entry.deliveries:
            queue.come_back(entry)
            queue.dispatch()
            return None
        refusal = queue.offer_late(entry.message)
        if refusal is None:
            queue.forget(entry)
        elif not queue.ready.length:  # too large even for an empty queue: do not block the messages behind it
            self.delays.hold(entry, self._journal.now_ms + HOPELESS_MS)
            return None
        return refusal
