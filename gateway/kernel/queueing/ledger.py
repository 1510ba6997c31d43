"""Deliveries that wait to be settled, by delivery tag."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final

from gateway.kernel.queueing.queue import DeliveryOutcome

if TYPE_CHECKING:
    from gateway.kernel.messages.queued_message import QueuedMessage
    from gateway.kernel.queueing.consumer import Consumer
    from gateway.kernel.queueing.queue import Queue

#: About what a delivery takes besides its body, in bytes.
_OVERHEAD: Final = 512

#: How many of the oldest and of the newest deliveries stand for all.
_SAMPLE: Final = 64

#: Deliveries that are settled in one turn; of more, some in each of several.
MOST_AT_ONCE: Final = 1024

#: Deliveries between two looks at the clock.
_STEP: Final = 64


class Delivery:
    """A message that was handed out under a tag; ``consumer`` is ``None`` where a single get fetched it."""

    __slots__ = ("consumer", "entry", "queue", "tag")

    def __init__(self, tag: int, queue: "Queue", entry: "QueuedMessage", consumer: "Consumer | None") -> None:
        self.tag = tag
        self.queue = queue
        self.entry = entry
        self.consumer = consumer


class Ledger:
    """The unsettled deliveries of one channel. Tags rise by one with each delivery, settled at once or not.

    They begin after ``last_tag``, for whoever counts on where another left off.
    """

    __slots__ = ("_deliveries", "_oldest", "last_tag")

    def __init__(self, last_tag: int = 0) -> None:
        self._deliveries: dict[int, Delivery] = {}
        self._oldest = last_tag + 1
        self.last_tag = last_tag

    def __len__(self) -> int:
        return len(self._deliveries)

    def __iter__(self) -> Iterator[Delivery]:
        return iter(self._deliveries.values())

    @property
    def size(self) -> int:
        """About how many bytes of memory the deliveries hold. Of many, some of the oldest and newest stand for all."""
        deliveries = self._deliveries
        count = len(deliveries)
        if count <= 2 * _SAMPLE:
            return sum(len(delivery.entry.message.body) + _OVERHEAD for delivery in deliveries.values())
        sample = [*islice(deliveries.values(), _SAMPLE), *islice(reversed(deliveries.values()), _SAMPLE)]
        return (sum(len(delivery.entry.message.body) for delivery in sample) // len(sample) + _OVERHEAD) * count

    def add(self, queue: "Queue", entry: "QueuedMessage", consumer: "Consumer | None") -> int:
        """Enter a delivery; return its tag."""
        self.last_tag = tag = self.last_tag + 1
        self._deliveries[tag] = Delivery(tag, queue, entry, consumer)
        return tag

    def add_run(self, queue: "Queue", run: "Sequence[QueuedMessage]", consumer: "Consumer") -> int:
        """Enter deliveries of a stream's messages; return the first of their tags, which follow each other."""
        first = self.last_tag + 1
        deliveries = self._deliveries
        for tag, entry in enumerate(run, first):
            deliveries[tag] = Delivery(tag, queue, entry, consumer)
        self.last_tag += len(run)
        return first

    def pass_by(self) -> int:
        """Return the tag of a delivery that needs no settling."""
        self.last_tag += 1
        return self.last_tag

    def take(self, tag: int) -> Delivery | None:
        """Take out the delivery of this tag, if there is one."""
        return self._deliveries.pop(tag, None)

    def remove(self, tag: int, is_multiple: bool) -> list[Delivery] | None:
        """Take out one delivery, or all up to a tag (0 means all); ``None`` when the tag is unknown (R87)."""
        if not is_multiple:
            delivery = self.take(tag)
            return None if delivery is None else [delivery]
        if tag in (0, self.last_tag):
            return self.clear() if not tag or tag in self._deliveries else None
        if tag not in self._deliveries:
            return None
        removed = []
        pop = self._deliveries.pop
        for candidate in range(self._oldest, tag + 1):
            delivery = pop(candidate, None)
            if delivery is not None:
                removed.append(delivery)
        self._oldest = tag + 1
        return removed

    def clear(self) -> list[Delivery]:
        """Take out everything, in order."""
        removed = list(self._deliveries.values())
        self._deliveries = {}
        self._oldest = self.last_tag + 1
        return removed

    def restore(self, deliveries: "Iterable[Delivery]") -> None:
        """Enter deliveries again under their tags, as a rolled back transaction does."""
        self._deliveries.update((delivery.tag, delivery) for delivery in deliveries)
        self._deliveries = dict(sorted(self._deliveries.items()))
        self._oldest = min(self._deliveries, default=self._oldest)


def settle_all(deliveries: "Sequence[Delivery]", outcome: DeliveryOutcome) -> None:
    """Settle deliveries alike, oldest first, and serve the queues that got messages back; many go in slices."""
    if len(deliveries) > MOST_AT_ONCE:
        deliveries[0].queue.clock.background.add(settling(deliveries, outcome))
    else:
        for _ in settling(deliveries, outcome):
            pass


def settling(deliveries: "Sequence[Delivery]", outcome: DeliveryOutcome) -> "Iterator[None]":
    """Return the steps in which deliveries are settled alike, oldest first.

    A queue that gets messages back hands none out before it has all of them: their order would be lost.
    """
    queues: dict[Queue, None] = {}
    if outcome is not DeliveryOutcome.ACCEPTED:
        queues = {delivery.queue: None for delivery in deliveries}
    for queue in queues:
        queue.hold_dispatch()
    return _settling(deliveries, outcome, queues)


def _settling(
    deliveries: "Sequence[Delivery]", outcome: DeliveryOutcome, queues: "Iterable[Queue]"
) -> "Iterator[None]":
    try:
        for start in range(0, len(deliveries), _STEP):
            step = deliveries[start : start + _STEP]
            if outcome is DeliveryOutcome.ACCEPTED:
                for delivery in step:
                    delivery.queue.accept(delivery.entry)
            else:
                for delivery in step:
                    delivery.queue.settle(delivery.entry, outcome)
            for delivery in step:
                if delivery.consumer is not None:
                    delivery.consumer.settled()
            yield
    finally:
        for queue in queues:
            queue.release_dispatch()
