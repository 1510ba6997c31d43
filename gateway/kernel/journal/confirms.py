"""Publisher confirms, in order of publishing, sent when the store has made the messages durable."""

from bisect import bisect_right
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gateway.kernel.budget import PendingWork
    from gateway.kernel.journal.changes import Lsn
    from gateway.kernel.journal.journal import Journal


class Confirms:
    """The outstanding confirms of one publisher, in order of publishing.

    ``answer(number, is_multiple, is_accepted)`` is called once with the highest number of a run of durable messages,
    and once for each refused message (R119, R120, R121); never from within a publish.
    """

    __slots__ = (
        "_answer",
        "_answered",
        "_drained",
        "_is_due",
        "_is_stored",
        "_journal",
        "_pending",
        "_published",
        "_refused",
        "_waiting",
    )

    def __init__(self, journal: "Journal", answer: Callable[[int, bool, bool], None]) -> None:
        self._journal = journal
        self._answer = answer
        self._published = 0
        self._pending = 0  # the number of the first message that is part of work in later turns; else 0
        self._answered = 0
        self._drained = 0
        self._is_stored = False
        self._is_due = False
        # Lists: an empty deque takes 760 bytes, and most of 10,000 clients publish nothing.
        self._refused: list[int] = []
        self._waiting: list[tuple[int, int]] = []

    def published(self, is_accepted: bool, is_stored: bool = True) -> int:
        """Count one more message, offered to its queues in this turn; return its number, from 1.

        ``is_stored`` means that the message is confirmed only once the store has made it durable. Call this right after
        the publish: if its offers continue in later turns, the confirm waits for them, and for the store.
        """
        self._published += 1
        if self._journal.budget.pending is not None and not self._pending:
            self._pending = self._published
            self._journal.budget.pending.when_done(self._offered)
        if is_stored:
            self._is_stored = True
        if not is_accepted:
            self._refused.append(self._published)
        if not self._is_due:
            self._is_due = True
            self._journal.after_turn(self.end_turn)
        return self._published

    @property
    def unanswered(self) -> int:
        """The number of messages without a confirm yet."""
        return self._published - self._answered

    def drain(self) -> int:
        """Return the number of messages published since the last call."""
        published, self._drained = self._published - self._drained, self._published
        return published

    def end_turn(self) -> None:
        """Confirm what needs no store; messages stored in this turn wait until they are durable.

        The journal calls it once for each turn in which a message was published, after the turn's changes went to the
        store. A message that needs no store waits only for earlier stored messages of the same publisher, because order
        is worth more to it than a millisecond.
        """
        self._is_due = False
        if self._journal.has_failed:
            self.fail()
            return
        last = self._waiting[-1][1] if self._waiting else self._answered
        published = self._pending - 1 if self._pending else self._published
        if published == last:
            return
        lsn = self._journal.pending_lsn
        # a message dead-lettered on arrival is confirmed once its dead letter is durable
        if self._is_stored or self._waiting or self._journal.indirect_lsn == lsn:
            self._wait(lsn, published)
        else:
            self._answer_up_to(published)
        self._is_stored = False

    def wait_for(self, work: "PendingWork") -> None:
        """Confirm no message that is published from now on until the work is done that it is part of."""
        self._pending = self._published + 1
        work.when_done(lambda _: self._confirm_pending())

    def _offered(self, work: "PendingWork") -> None:
        """Confirm the last message, which now was offered to all of its queues."""
        if work.is_refused and self._pending > self._answered:
            self._refused.append(self._pending)
        self._confirm_pending()

    def _confirm_pending(self) -> None:
        """Confirm the messages of work that is done now, once they are durable."""
        first, self._pending = self._pending, 0
        if self._published < first or self._published <= self._answered:
            return  # there is none, or the store has failed, or the publisher has disconnected
        self._wait(self._journal.pending_lsn, self._published)

    def _wait(self, lsn: "Lsn", number: int) -> None:
        """Confirm up to a message once a log position is durable."""
        self._journal.confirm_lsn = lsn
        self._waiting.append((lsn, number))
        self._journal.when_durable(lsn, self._release)

    def fail(self) -> None:
        """Refuse all outstanding messages: the store has failed permanently."""
        self._waiting.clear()
        self._refused = list(range(self._answered + 1, self._published + 1))
        self._answer_up_to(self._published)

    def abandon(self) -> None:
        """Send no more confirms: the publisher has disconnected."""
        self._waiting.clear()
        self._refused.clear()
        self._answered = self._published
        self._answer = _to_nobody  # drops the bound method, a reference cycle until the next full collection

    def _release(self) -> None:
        watermark, released = self._journal.watermark, 0
        for lsn, _ in self._waiting:
            if lsn > watermark:
                break
            released += 1
        if released:
            _, number = self._waiting[released - 1]
            del self._waiting[:released]
            self._answer_up_to(number)

    def _answer_up_to(self, number: int) -> None:
        due = bisect_right(self._refused, number)
        refused, self._refused = self._refused[:due], self._refused[due:]
        for each in refused:
            self._accept_up_to(each - 1)
            self._answer(each, False, False)
            self._answered = each
        self._accept_up_to(number)

    def _accept_up_to(self, number: int) -> None:
        if number > self._answered:
            self._answer(number, number > self._answered + 1, True)
            self._answered = number


def _to_nobody(number: int, is_multiple: bool, is_accepted: bool) -> None:
    """Discard a confirm for a publisher that has disconnected."""
