"""Dead letters that could not be delivered yet: kept in the store with their queue, and tried again (at-least-once)."""

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Final

from gateway.kernel.backlog.delay_index import Delays
from gateway.kernel.messages.death_records import DeathReason
from gateway.kernel.messages.message import Message
from gateway.kernel.messages.queued_message import QueuedMessage

if TYPE_CHECKING:
    from gateway.kernel.journal.changes import Enqueued
    from gateway.kernel.journal.journal import Journal
    from gateway.kernel.queueing.queue import Queue

#: What the store has for the due time of a held letter. No delay ends then, so recovery tells the two apart.
HELD: Final = 1

#: How long after its death a letter is tried again, in milliseconds; then twice as long each time, up to the longest.
FIRST_RETRY_MS: Final = 1000
LONGEST_RETRY_MS: Final = 180_000

Send = Callable[[Message, "Collection[Queue]", "Callable[[Collection[Queue]], None]"], None]
"""Sends a letter to all its queues but those that have it; the last is told all that have it if some have not."""


class HeldLetters:
    """The letters of one queue. ``send`` is set while the queue has a dead-letter exchange.

    ``is_hopeless`` says that no letter can be sent now, so that not all of them need to be tried.
    """

    __slots__ = ("_delays", "_journal", "_queue", "_takers", "is_hopeless", "send")

    def __init__(self, queue: "Queue", journal: "Journal") -> None:
        self._queue = queue
        self._journal = journal
        self._takers: dict[int, Collection[Queue]] = {}
        self._delays = Delays(journal, self._release)
        self.send: Send | None = None
        self.is_hopeless: Callable[[], bool] = lambda: False

    def __len__(self) -> int:
        return len(self._delays)

    def hold(self, letter: Message, takers: "Collection[Queue]") -> None:
        """Keep a letter that some queue has not taken; ``takers`` have it, and do not get it again.

        A letter of a queue that was deleted meanwhile is gone with the queue.
        """
        if self._queue.is_deleted:
            return
        entry = self._queue.enter(letter, HELD)
        self._wait(entry, takers, FIRST_RETRY_MS)

    def restore(self, change: "Enqueued") -> None:
        """Keep a letter that recovery found."""
        self._delays.restore(change, False)

    def close(self) -> None:
        """Forget every letter: the queue is gone."""
        self._delays.close()
        self._takers.clear()
        self.send = None

    def _wait(self, entry: QueuedMessage, takers: "Collection[Queue]", delay_ms: int) -> None:
        if takers:
            self._takers[entry.position] = takers
        self._delays.hold(entry, self._journal.clock.wall_ms() + delay_ms)

    def _release(self, entry: QueuedMessage) -> DeathReason | None:
        """Try a letter again, or return a reason for all to wait on."""
        if self._queue.settings.text("dead-letter-exchange") is None:  # a policy that is gone took it along
            self._takers.pop(entry.position, None)
            self._queue.forget(entry)
            return None
        if self.send is None or self.is_hopeless():
            return DeathReason.REJECTED
        left: list[Collection[Queue]] = []
        self.send(entry.message, self._takers.pop(entry.position, ()), left.append)
        if not left:
            self._queue.forget(entry)
            return None
        delay_ms = min(FIRST_RETRY_MS << min(entry.deliveries + 1, 10), LONGEST_RETRY_MS)
        entry.deliveries += 1  # the number of tries; nobody sees it
        self._wait(entry, left[0], delay_ms)
        return None
