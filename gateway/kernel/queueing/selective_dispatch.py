"""The turns of a queue some of whose consumers want certain messages only.

A message goes to the first in the round who wants it; who does not is passed over for this message alone. What nobody
wants waits in its place, and what comes behind may go past it. Each consumer looks at a waiting message once: whoever
comes, or has credit again, goes on from where it was, and back only to what came back. All that is done in slices.
"""

from collections.abc import Iterator
from itertools import cycle, islice
from typing import TYPE_CHECKING, Final

from gateway.kernel.queueing.scheduler import ConsumerScheduler
from gateway.kernel.queueing.search import Search

if TYPE_CHECKING:
    from gateway.kernel.journal.journal import Journal
    from gateway.kernel.messages.message import Message
    from gateway.kernel.messages.queued_message import QueuedMessage
    from gateway.kernel.queueing.consumer import Consumer
    from gateway.kernel.queueing.queue import Queue

#: How many looks are taken before it is asked anew who may look: somebody may have come, or have credit again.
_LOOKS_AT_A_TIME: Final = 64


class SelectiveDispatch(ConsumerScheduler):
    """Replaces a queue's ``ConsumerScheduler``, and asks it for the next consumer. Owns the search of each consumer."""

    __slots__ = ("_is_searching", "_journal", "_queue", "_round", "_search_by_consumer")

    def __init__(self, queue: "Queue", round: ConsumerScheduler, journal: "Journal") -> None:
        self._queue = queue
        self._round = round
        self._journal = journal
        self._search_by_consumer = {consumer: Search(queue.ready) for consumer in round}
        self._is_searching = False

    def __len__(self) -> int:
        return len(self._round)

    def __iter__(self) -> "Iterator[Consumer]":
        return iter(self._round)

    def __contains__(self, consumer: "Consumer") -> bool:
        return consumer in self._round

    @property
    def is_needed(self) -> bool:
        """Whether somebody does not want everything."""
        return any(consumer.selection is not None for consumer in self._round)

    def end(self) -> ConsumerScheduler:
        """Give the round back, for the queue to have nothing else."""
        self._search_by_consumer.clear()
        return self._round

    # As the round

    @property
    def permits_exclusive(self) -> bool:
        """Whether one may ask to be the only one."""
        return self._round.permits_exclusive

    def is_active(self, consumer: "Consumer") -> bool:
        """Return whether it gets messages while it has capacity."""
        return self._round.is_active(consumer)

    def add(self, consumer: "Consumer") -> None:
        """Let a consumer take part, which has not looked at anything yet."""
        self._search_by_consumer[consumer] = Search(self._queue.ready)
        self._round.add(consumer)

    def remove(self, consumer: "Consumer") -> None:
        """Take a consumer out for good."""
        del self._search_by_consumer[consumer]
        self._round.remove(consumer)

    def resume(self, consumer: "Consumer") -> None:
        """Let a consumer that waited take part again."""
        self._round.resume(consumer)

    def able(self) -> "list[Consumer]":
        """Return those who can take a message now, in the order of their turns. The others wait from now on."""
        return self._round.able()

    def served(self, consumer: "Consumer") -> None:
        """Let the turn of a consumer that is able come last."""
        self._round.served(consumer)

    def next(self) -> None:
        """Return nobody: who is next depends on the message."""

    # By the message

    def taker(self, message: "Message") -> "Consumer | None":
        """Return who is to have a message that just came; ``None`` if it is to wait.

        Who has older ones to look at first does so.
        """
        if self._looking():
            self.search()
        asked = []
        for consumer in self._round.able():
            search = self._search_by_consumer[consumer]
            if search.is_over:
                if consumer.selection is None or consumer.selection.wants(message, 0, False):
                    self._round.served(consumer)
                    return consumer
                asked.append(search)
        for search in asked:
            search.seen = self._journal.position + 1  # the place it is about to get
        return None

    def search(self) -> None:
        """Look for what somebody wants among the waiting messages, the first slice now."""
        if not self._is_searching:
            self._is_searching = True
            self._journal.clock.background.add(self._looks())

    def _looks(self) -> Iterator[None]:
        """Let consumers look until nobody is left who can have a message and has not looked at all of them."""
        try:
            while looking := self._looking():
                yield from self._turns(looking)
        finally:
            self._is_searching = False

    def _looking(self) -> "list[Consumer]":
        searches = self._search_by_consumer
        return [consumer for consumer in self._round.able() if not searches[consumer].is_over] if searches else []

    def _turns(self, looking: "list[Consumer]") -> Iterator[None]:
        """Let these look at one message each, over and over, until one of them gets it: then others come first."""
        for consumer in islice(cycle(looking), max(_LOOKS_AT_A_TIME, len(looking))):
            search = self._search_by_consumer.get(consumer)
            if search is None or consumer.is_waiting or not consumer.has_capacity or (seen := search.next()) is None:
                continue
            has_one = self._gets(consumer, seen)
            yield
            if has_one:
                return

    def _gets(self, consumer: "Consumer", seen: "QueuedMessage") -> bool:
        """Let a consumer have a message it looks at, if it wants it and it is still there."""
        queue = self._queue
        if queue.drops_if_due(seen) or not consumer.wants(seen):
            return False
        entry = queue.pick(seen)
        if entry is None:
            return False
        self._round.served(consumer)
        queue.hand_over(consumer, entry)
        return True
