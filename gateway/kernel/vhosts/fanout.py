"""A message for very many queues: offered to them in slices, and one step of the store.

The offers to 100,000 queues take 0.2 to 0.4 s. Other clients are served between the slices, and may consume the message
meanwhile; the store gets all of its changes at once.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from gateway.kernel.budget import PendingWork
from gateway.kernel.journal.journal import Journal
from gateway.kernel.journal.open_step import OpenStep
from gateway.kernel.messages.message import Message
from gateway.kernel.queueing.queue import Queue
from gateway.kernel.streams.stream import Stream

#: The largest number of queues that a message is offered to in one turn.
MOST_QUEUES: Final = 2048

#: The number of queues between two readings of the clock.
_STEP: Final = 64


class SlicedFanout(PendingWork):
    """The offers of one message to very many queues.

    ``offer`` offers it to one queue and returns whether the queue takes it.
    """

    __slots__ = ("_journal", "_message", "_offer", "_queues")

    def __init__(
        self, queues: tuple[Queue, ...], message: Message, journal: Journal, offer: Callable[[Queue, Message], bool]
    ) -> None:
        super().__init__()
        self._queues = queues
        self._message = message
        self._journal = journal
        self._offer = offer

    def steps(self) -> Iterator[None]:
        """Return the steps in which the message is offered to each queue that still exists, and the work is finished.

        Streams come last, in the turn in which the store gets the step, because they count by the position of the turn.
        """
        step = self._journal.open_step()
        try:
            yield from self.offers(step)
        finally:
            self._journal.close_step(step)
        self._offer_to([queue for queue in self._queues if isinstance(queue, Stream)])
        self.finish()

    def offers(self, step: OpenStep) -> Iterator[None]:
        """Return the steps of the offers to all queues but streams. Their changes belong to a step of the store."""
        journal = self._journal
        for first in range(0, len(self._queues), _STEP):
            journal.enter(step)
            try:
                some = self._queues[first : first + _STEP]
                self._offer_to([queue for queue in some if not isinstance(queue, Stream)])
            finally:
                journal.leave()
            yield

    def _offer_to(self, queues: "Sequence[Queue]") -> None:
        for queue in queues:
            if not queue.is_deleted and not self._offer(queue, self._message):
                self.is_refused = True
