"""What a queue holds back: messages that do not take part before their time, and how they get in then."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from gateway.kernel.backlog.delay_index import Delays
from gateway.kernel.messages.death_records import DeathReason
from gateway.kernel.messages.message import Message
from gateway.kernel.messages.queued_message import QueuedMessage
from gateway.kernel.queueing.pending_dead_letters import HELD, HeldLetters

if TYPE_CHECKING:
    from gateway.kernel.journal.changes import Enqueued
    from gateway.kernel.journal.journal import Journal
    from gateway.kernel.queueing.queue import Queue

#: How long a message waits that is too large for its queue even while that is empty, in milliseconds.
HOPELESS_MS: Final = 10_000


class DelayedMessages:
    """The messages of one queue whose time has not come; ``delays`` has them until then, ``letters`` the dead ones.

    ``release`` is what happens to one whose time has come, and returns why it has to wait on; unless given, the queue
    takes it in.
    """

    __slots__ = ("_journal", "_queue", "delays", "letters")

    def __init__(
        self, queue: "Queue", journal: "Journal", release: Callable[[QueuedMessage], DeathReason | None] | None = None
    ) -> None:
        self._queue = queue
        self._journal = journal
        self.delays = Delays(journal, release or self.release)
        self.letters = HeldLetters(queue, journal)

    def restore(self, change: "Enqueued", is_redelivered: bool) -> None:
        """Hold a message back that recovery found held back."""
        if change.due_at_ms == HELD:
            self.letters.restore(change)
        else:
            self.delays.restore(change, is_redelivered)

    def close(self) -> None:
        """Forget every message: the queue is gone."""
        self.delays.close()
        self.letters.close()

    def hold(self, message: Message, due_at_ms: int) -> None:
        """Give a message that just came its place, where it does not take part before ``due_at_ms``."""
        self.delays.hold(self._queue.enter(message, due_at_ms), due_at_ms)

    def hold_again(self, entry: QueuedMessage, due_at_ms: int) -> None:
        """Count a message back from a consumer, into a place where it does not take part before ``due_at_ms``."""
        entry.deliveries += 1
        entry.is_redelivered = True
        if entry.is_durable:
            self._journal.requeued(self._queue.id, entry, due_at_ms)
        self.delays.hold(entry, due_at_ms)

    def arrive(self, message: Message) -> None:
        """Let the queue take in a message that an exchange held back; without room it waits for it here."""
        if self._queue.offer_late(message) is not None:
            self.hold(message, self._journal.now_ms)

    def release(self, entry: QueuedMessage) -> DeathReason | None:
        """Let a message take part that was held back, or return why it has to wait on.

        It gets its old place if it has been out, else it is the youngest.
        """
        queue = self._queue
        if entry.deliveries:
            queue.come_back(entry)
            queue.dispatch()
            return None
        refusal = queue.offer_late(entry.message)
        if refusal is None:
            queue.forget(entry)
        elif not queue.ready.length:  # alone it is too much: others may have room
            self.delays.hold(entry, self._journal.now_ms + HOPELESS_MS)
            return None
        return refusal
