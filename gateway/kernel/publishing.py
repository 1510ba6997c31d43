"""When a publisher hears that its messages are safe: confirms, in order, released by the store's watermark."""

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gateway.kernel.journal import Journal


class Confirms:
    """The confirms one publisher waits for, in order of publishing.

    ``answer(number, is_multiple, is_accepted)`` is called outside of publishing: for messages that are safe, with the
    highest number released at once; for each refused one, alone (R119, R120, R121).
    """

    __slots__ = ("_answer", "_answered", "_is_stored", "_journal", "_published", "_refused", "_waiting")

    def __init__(self, journal: "Journal", answer: Callable[[int, bool, bool], None]) -> None:
        self._journal = journal
        self._answer = answer
        self._published = 0
        self._answered = 0
        self._is_stored = False
        self._refused: deque[int] = deque()
        self._waiting: deque[tuple[int, int]] = deque()

    def published(self, is_accepted: bool, is_stored: bool = True) -> int:
        """Count one more message, offered to its queues in this turn; return its number, from 1.

        ``is_stored`` says that the message is safe only once the store has it.
        """
        self._published += 1
        if is_stored:
            self._is_stored = True
        if not is_accepted:
            self._refused.append(self._published)
        return self._published

    @property
    def unanswered(self) -> int:
        """How many messages wait for their confirm."""
        return self._published - self._answered

    def end_turn(self) -> None:
        """Answer what is safe already; what was stored in this turn waits for the disk.

        Call after the journal was flushed. Messages that need no store wait only behind those of the same publisher
        that do: order is worth more to it than the millisecond.
        """
        if self._journal.has_failed:
            self.fail()
            return
        last = self._waiting[-1][1] if self._waiting else self._answered
        if self._published == last:
            return
        lsn = self._journal.pending_lsn
        # what died on arrival is safe once its dead letter is
        if self._is_stored or self._waiting or self._journal.moved_lsn == lsn:
            self._waiting.append((lsn, self._published))
            self._journal.when_durable(lsn, self._release)
        else:
            self._answer_up_to(self._published)
        self._is_stored = False

    def fail(self) -> None:
        """Refuse everything that waits: the store will never be durable again."""
        self._waiting.clear()
        self._refused = deque(range(self._answered + 1, self._published + 1))
        self._answer_up_to(self._published)

    def abandon(self) -> None:
        """Answer nothing any more: the publisher is gone."""
        self._waiting.clear()
        self._refused.clear()
        self._answered = self._published

    def _release(self) -> None:
        if self._waiting and self._waiting[0][0] <= self._journal.watermark:
            while self._waiting and self._waiting[0][0] <= self._journal.watermark:
                _, number = self._waiting.popleft()
            self._answer_up_to(number)

    def _answer_up_to(self, number: int) -> None:
        while self._refused and self._refused[0] <= number:
            refused = self._refused.popleft()
            self._accept_up_to(refused - 1)
            self._answer(refused, False, False)
            self._answered = refused
        self._accept_up_to(number)

    def _accept_up_to(self, number: int) -> None:
        if number > self._answered:
            self._answer(number, number > self._answered + 1, True)
            self._answered = number
