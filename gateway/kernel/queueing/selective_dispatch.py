"""Dispatch in a queue with filtered consumers.

A message goes to the next consumer that takes it; the others keep their place. A message that no consumer takes waits
in its place, and later messages may overtake it. Each consumer examines a waiting message once: after a pause it
continues from its last position, and examines only requeued messages again. The search runs in slices.
"""

from collections.abc import Iterator
from itertools import cycle, islice
from typing import TYPE_CHECKING, Final, Protocol

from gateway.kernel.queueing.scheduler import ConsumerScheduler
from gateway.kernel.queueing.search import Search

if TYPE_CHECKING:
    from gateway.kernel.backlog.waiting import Waiting
    from gateway.kernel.journal.journal import Journal
    from gateway.kernel.messages.message import Message
    from gateway.kernel.messages.queued_message import QueuedMessage
    from gateway.kernel.queueing.consumer import Consumer
    from gateway.kernel.queueing.drops import Drops

#: The number of messages examined before the list of searching consumers is refreshed.
_LOOKS_AT_A_TIME: Final = 64


class SearchedQueue(Protocol):
    """A queue as the search for filtered consumers sees it."""

    @property
    def ready(self) -> "Waiting":
        """The waiting messages."""
        ...

    @property
    def drops(self) -> "Drops":
        """The removal of messages that no consumer gets."""
        ...

    def pick(self, seen: "QueuedMessage") -> "QueuedMessage | None":
        """Remove and return a message from any place in the queue, if it still waits."""
        ...

    def deliver_to(self, consumer: "Consumer", entry: "QueuedMessage") -> None:
        """Deliver a message that was taken."""
        ...


class SelectiveDispatch(ConsumerScheduler):
    """Wraps the queue's ``ConsumerScheduler``. Owns the search of each consumer."""

    __slots__ = ("_is_searching", "_journal", "_queue", "_scheduler", "_search_by_consumer")

    def __init__(self, queue: "SearchedQueue", scheduler: ConsumerScheduler, journal: "Journal") -> None:
        self._queue = queue
        self._scheduler = scheduler
        self._journal = journal
        self._search_by_consumer = {consumer: Search(queue.ready) for consumer in scheduler}
        self._is_searching = False

    def __len__(self) -> int:
        return len(self._scheduler)

    def __iter__(self) -> "Iterator[Consumer]":
        return iter(self._scheduler)

    def __contains__(self, consumer: "Consumer") -> bool:
        return consumer in self._scheduler

    @property
    def is_needed(self) -> bool:
        """Whether some consumer has a filter."""
        return any(consumer.selection is not None for consumer in self._scheduler)

    def end(self) -> ConsumerScheduler:
        """Return the wrapped scheduler, to replace this one."""
        self._search_by_consumer.clear()
        return self._scheduler

    # Methods of the scheduler

    @property
    def permits_exclusive(self) -> bool:
        """Whether a consumer may be exclusive."""
        return self._scheduler.permits_exclusive

    def is_active(self, consumer: "Consumer") -> bool:
        """Return whether the consumer gets messages while it has capacity."""
        return self._scheduler.is_active(consumer)

    def add(self, consumer: "Consumer") -> None:
        """Add a consumer, which has not examined any message yet."""
        self._search_by_consumer[consumer] = Search(self._queue.ready)
        self._scheduler.add(consumer)

    def remove(self, consumer: "Consumer") -> None:
        """Remove a consumer."""
        del self._search_by_consumer[consumer]
        self._scheduler.remove(consumer)

    def resume(self, consumer: "Consumer") -> None:
        """Resume a waiting consumer."""
        self._scheduler.resume(consumer)

    def with_capacity(self) -> "list[Consumer]":
        """Return the consumers with capacity, next one first. The others wait from now on."""
        return self._scheduler.with_capacity()

    def move_to_end(self, consumer: "Consumer") -> None:
        """Move a consumer that has capacity to the end."""
        self._scheduler.move_to_end(consumer)

    def next(self) -> None:
        """Return ``None``: the next consumer depends on the message."""

    # Choice by message

    def consumer_for(self, message: "Message") -> "Consumer | None":
        """Return the consumer for a message that just arrived; ``None`` if the message is to wait.

        A consumer that has not examined all older messages is not considered.
        """
        if self._looking():
            self.search()
        examined = []
        for consumer in self._scheduler.with_capacity():
            search = self._search_by_consumer[consumer]
            if search.is_over:
                if consumer.selection is None or consumer.selection.wants(message, 0, False):
                    self._scheduler.move_to_end(consumer)
                    return consumer
                examined.append(search)
        for search in examined:
            search.seen = self._journal.position + 1  # the position the message will get
        return None

    def search(self) -> None:
        """Search the waiting messages for filtered consumers, the first slice now."""
        if not self._is_searching:
            self._is_searching = True
            self._journal.clock.background.add(self._looks())

    def _looks(self) -> Iterator[None]:
        """Search until each consumer with capacity has examined all waiting messages."""
        try:
            while looking := self._looking():
                yield from self._turns(looking)
        finally:
            self._is_searching = False

    def _looking(self) -> "list[Consumer]":
        searches = self._search_by_consumer
        if not searches:
            return []
        return [consumer for consumer in self._scheduler.with_capacity() if not searches[consumer].is_over]

    def _turns(self, looking: "list[Consumer]") -> Iterator[None]:
        """Let these consumers examine one message each, in turn; stop when one gets a message, as others are next."""
        for consumer in islice(cycle(looking), max(_LOOKS_AT_A_TIME, len(looking))):
            search = self._search_by_consumer.get(consumer)
            if search is None or consumer.is_waiting or not consumer.has_capacity or (seen := search.next()) is None:
                continue
            has_one = self._gets(consumer, seen)
            yield
            if has_one:
                return

    def _gets(self, consumer: "Consumer", seen: "QueuedMessage") -> bool:
        """Deliver an examined message if the consumer takes it and it still waits; return whether it was delivered."""
        queue = self._queue
        if queue.drops.discard_if_expired(seen) or not consumer.wants(seen):
            return False
        entry = queue.pick(seen)
        if entry is None:
            return False
        self._scheduler.move_to_end(consumer)
        queue.deliver_to(consumer, entry)
        return True
