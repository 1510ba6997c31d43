"""Dead letters that could not be delivered yet (at-least-once): stored with their queue and retried."""

from collections.abc import Callable, Collection
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from gateway.kernel.backlog.delay_index import DelayIndex
from gateway.kernel.messages.death_records import DeathReason
from gateway.kernel.messages.message import Message
from gateway.kernel.messages.queued_message import QueuedMessage

if TYPE_CHECKING:
    from gateway.kernel.journal.changes import Enqueued
    from gateway.kernel.journal.journal import Journal
    from gateway.kernel.queueing.consumer import ConsumedQueue
    from gateway.kernel.settings.effective_settings import EffectiveSettings

#: The stored due time that marks a pending dead letter. No delay ends then, so recovery can distinguish the two.
PENDING_DEAD_LETTER: Final = 1

#: The time from a message's death to the first retry, in milliseconds; it doubles each time up to the longest.
FIRST_RETRY_MS: Final = 1000
LONGEST_RETRY_MS: Final = 180_000

Send = Callable[[Message, "Collection[ConsumedQueue]", "Callable[[Collection[ConsumedQueue] | None], None]"], None]
"""Sends a letter to all its queues except those given; then, perhaps in a later turn, calls back with all that have it,
or with ``None`` if none lacks it."""


class LetterQueue(Protocol):
    """A queue as its pending dead letters see it."""

    settings: "EffectiveSettings"
    is_deleted: bool

    def enter(self, message: Message, due_at_ms: int = 0) -> QueuedMessage:
        """Assign a position to a message, and store it if it is durable."""
        ...

    def forget(self, entry: QueuedMessage) -> None:
        """Remove a message from the store that was already removed from the queue."""
        ...


class PendingDeadLetters:
    """The pending dead letters of one queue. ``send`` is set while the queue has a dead-letter exchange.

    ``is_blocked`` returns whether no letter can be sent now, so that not all of them have to be tried. A letter for
    very many queues is sent in several turns; the others wait meanwhile.
    """

    __slots__ = ("_delays", "_journal", "_queue", "_sending", "_takers", "is_blocked", "send")

    def __init__(self, queue: "LetterQueue", journal: "Journal") -> None:
        self._queue = queue
        self._journal = journal
        self._takers: dict[int, Collection[ConsumedQueue]] = {}
        self._delays = DelayIndex(journal, self._release)
        self._sending: QueuedMessage | None = None
        self.send: Send | None = None
        self.is_blocked: Callable[[], bool] = lambda: False

    def __len__(self) -> int:
        return len(self._delays) + (self._sending is not None)

    def hold(self, letter: Message, takers: "Collection[ConsumedQueue]") -> None:
        """Keep a letter that some queue refused; ``takers`` have it and do not get it again.

        A letter of a queue that was deleted meanwhile is lost with the queue.
        """
        if self._queue.is_deleted:
            return
        entry = self._queue.enter(letter, PENDING_DEAD_LETTER)
        self._wait(entry, takers, FIRST_RETRY_MS)

    def restore(self, change: "Enqueued") -> None:
        """Take in a letter found by recovery."""
        self._delays.restore(change, False)

    def close(self) -> None:
        """Forget every letter: the queue is deleted."""
        self._delays.close()
        self._takers.clear()
        self.send = None

    def _wait(self, entry: QueuedMessage, takers: "Collection[ConsumedQueue]", delay_ms: int) -> None:
        if takers:
            self._takers[entry.position] = takers
        self._delays.hold(entry, self._journal.clock.wall_ms() + delay_ms)

    def _release(self, entry: QueuedMessage) -> DeathReason | None:
        """Try a letter again, or return a reason for all letters to wait on."""
        if self._queue.settings.text("dead-letter-exchange") is None:  # the policy that set it was removed
            self._takers.pop(entry.position, None)
            self._queue.forget(entry)
            return None
        if self.send is None or self._sending is not None or self.is_blocked():
            return DeathReason.REJECTED
        self._sending = entry
        try:
            self.send(entry.message, self._takers.get(entry.position, ()), partial(self._sent, entry))
        except BaseException:  # the index keeps the letter
            self._sending = None
            raise
        return None

    def _sent(self, entry: QueuedMessage, takers: "Collection[ConsumedQueue] | None") -> None:
        """Forget a letter that all its queues have or whose queue was deleted; any other waits again."""
        if self._sending is not entry:  # after an exception, there may be two outcomes
            return
        self._sending = None
        self._takers.pop(entry.position, None)
        if takers is None or self._queue.is_deleted:
            self._queue.forget(entry)
            return
        delay_ms = min(FIRST_RETRY_MS << min(entry.deliveries + 1, 10), LONGEST_RETRY_MS)
        entry.deliveries += 1  # the number of attempts; not visible to clients
        self._wait(entry, takers, delay_ms)
