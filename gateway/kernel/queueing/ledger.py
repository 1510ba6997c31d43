"""Unsettled deliveries of a channel, by delivery tag."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final, Protocol

from gateway.kernel.budget import PendingWork
from gateway.kernel.queueing.delivery_outcome import DeliveryOutcome
from gateway.kernel.untracked import untracked

if TYPE_CHECKING:
    from gateway.kernel.messages.queued_message import QueuedMessage
    from gateway.kernel.queueing.consumer import ConsumedQueue, Consumer

#: The approximate memory of a delivery besides its body, in bytes.
_OVERHEAD: Final = 512

#: The number of oldest and of newest deliveries from which the total size is estimated.
_SAMPLE: Final = 64

#: The largest number of deliveries settled in one turn; more are settled in slices.
MOST_AT_ONCE: Final = 1024

#: Deliveries between two checks of the clock.
_STEP: Final = 64


class Delivery:
    """A message delivered under a tag; ``consumer`` is ``None`` for a message from ``basic.get``."""

    __slots__ = ("consumer", "entry", "queue", "tag")

    def __init__(self, tag: int, queue: "ConsumedQueue", entry: "QueuedMessage", consumer: "Consumer | None") -> None:
        self.tag = tag
        self.queue = queue
        self.entry = entry
        self.consumer = consumer


class FromQueue(Protocol):
    """A delivery from a queue, in any protocol."""

    @property
    def queue(self) -> "ConsumedQueue":
        """The queue."""
        ...


class Ledger:
    """The unsettled deliveries of one channel. Tags rise by one with each delivery, also of one that needs no settling.

    The first tag is ``last_tag`` + 1, to continue an earlier sequence.
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
        """The approximate memory of the deliveries in bytes; estimated from the oldest and newest if there are many."""
        deliveries = self._deliveries
        count = len(deliveries)
        if count <= 2 * _SAMPLE:
            return sum(len(delivery.entry.message.body) + _OVERHEAD for delivery in deliveries.values())
        sample = [*islice(deliveries.values(), _SAMPLE), *islice(reversed(deliveries.values()), _SAMPLE)]
        return (sum(len(delivery.entry.message.body) for delivery in sample) // len(sample) + _OVERHEAD) * count

    def add(self, queue: "ConsumedQueue", entry: "QueuedMessage", consumer: "Consumer | None") -> int:
        """Add a delivery; return its tag."""
        self.last_tag = tag = self.last_tag + 1
        self._deliveries[tag] = Delivery(tag, queue, entry, consumer)
        return tag

    def deliver(self, consumer: "Consumer", entry: "QueuedMessage | None", redelivered: bool) -> int:
        """Record and count the delivery of a message to a consumer; return its tag.

        ``entry`` is to be settled later; ``None`` means that the delivery needs no settling.
        """
        self.last_tag = tag = self.last_tag + 1
        counters = consumer.counters
        if entry is None:
            counters.deliver_no_ack += 1
        else:
            self._deliveries[tag] = Delivery(tag, consumer.queue, entry, consumer)
            counters.deliver += 1
        if redelivered:
            counters.redeliver += 1
        return tag

    def deliver_run(self, consumer: "Consumer", run: "Sequence[QueuedMessage]") -> int:
        """Record and count the deliveries of a stream's messages; return the first of their consecutive tags."""
        first = self.last_tag + 1
        deliveries, queue = self._deliveries, consumer.queue
        for tag, entry in enumerate(run, first):
            deliveries[tag] = Delivery(tag, queue, entry, consumer)
        self.last_tag += len(run)
        consumer.counters.deliver += len(run)
        return first

    def skip_tag(self) -> int:
        """Return the tag of a delivery that needs no settling."""
        self.last_tag += 1
        return self.last_tag

    def take(self, tag: int) -> Delivery | None:
        """Remove and return the delivery of this tag, or ``None``."""
        return self._deliveries.pop(tag, None)

    def remove(self, tag: int, is_multiple: bool) -> list[Delivery] | None:
        """Remove one delivery, or all up to a tag (0 means all); return ``None`` if the tag is unknown (R87)."""
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
        """Remove and return all deliveries, in order."""
        removed = untracked(list(self._deliveries.values()))  # many go in slices, which empty the list
        self._deliveries = {}
        self._oldest = self.last_tag + 1
        return removed

    def in_parts(self) -> "Iterator[list[Delivery]]":
        """Remove all deliveries, and return them in order and in parts: one list of 300,000 takes 10 ms."""
        deliveries, self._deliveries = self._deliveries, {}
        self._oldest = self.last_tag + 1
        return _parts(deliveries)

    def restore(self, deliveries: "Iterable[Delivery]") -> None:
        """Add deliveries again under their tags, as for a transaction that is rolled back."""
        self._deliveries.update((delivery.tag, delivery) for delivery in deliveries)
        self._deliveries = dict(sorted(self._deliveries.items()))
        self._oldest = min(self._deliveries, default=self._oldest)


def _parts(deliveries: dict[int, Delivery]) -> "Iterator[list[Delivery]]":
    """Yield the deliveries, then free a large dictionary in steps, with empty parts: that takes as long again."""
    values = iter(deliveries.values())
    while part := list(islice(values, MOST_AT_ONCE)):
        yield part
    while len(deliveries) > MOST_AT_ONCE:
        for _ in range(MOST_AT_ONCE):
            deliveries.popitem()
        yield []


def settle_all(deliveries: list[Delivery], outcome: DeliveryOutcome) -> None:
    """Settle deliveries with one outcome, oldest first, and dispatch requeued messages; many go in slices.

    The list is emptied. The client that rejects many waits for that: each may become a dead letter for many queues.
    """
    if len(deliveries) > MOST_AT_ONCE:
        queue, work = deliveries[0].queue, PendingWork()
        steps = queue.budget.caused_by(work, settlement_steps(deliveries, outcome))
        queue.clock.background.add(_settling_many(work, steps))
        if outcome is DeliveryOutcome.REJECTED:
            queue.budget.leave_rest_pending(work)
    else:
        for _ in settlement_steps(deliveries, outcome):
            pass


def _settling_many(work: PendingWork, steps: "Iterator[None]") -> "Iterator[None]":
    try:
        yield from steps
    finally:
        work.finish()


def settlement_steps(deliveries: list[Delivery], outcome: DeliveryOutcome) -> "Iterator[None]":
    """Return the steps that settle deliveries with one outcome, oldest first, and empty their list.

    A queue dispatches nothing until all its messages are requeued; otherwise their order would be lost.
    """
    settling = _settling(deliveries, outcome)
    return settling if outcome is DeliveryOutcome.ACCEPTED else while_paused(in_slices(deliveries), settling)


def requeue_all(parts: "Iterator[list[Delivery]]") -> None:
    """Requeue deliveries that come in parts, oldest first; many go in slices, and their parts are read in slices."""
    deliveries: list[Delivery] = untracked([])
    for part in parts:
        deliveries += part
        if len(deliveries) > MOST_AT_ONCE:
            deliveries[0].queue.clock.background.add(requeuing_steps(parts, deliveries))
            return
    settle_all(deliveries, DeliveryOutcome.REQUEUED)


def requeuing_steps(parts: "Iterator[list[Delivery]]", first: "list[Delivery]") -> "Iterator[None]":
    """Return the steps that requeue the ``first`` deliveries and those that come in parts."""
    return while_paused(_joining(parts, first), _settling(first, DeliveryOutcome.REQUEUED))


def _joining(parts: "Iterator[list[Delivery]]", deliveries: "list[Delivery]") -> "Iterator[list[Delivery]]":
    """Yield the deliveries that are there, and each part once it is added to them."""
    yield deliveries[:]
    for part in parts:
        deliveries += part
        yield part


def in_slices(deliveries: "Sequence[FromQueue]") -> "Iterator[Sequence[FromQueue]]":
    """Yield parts of a list that are found in a moment."""
    for start in range(0, len(deliveries), MOST_AT_ONCE):
        yield deliveries[start : start + MOST_AT_ONCE]


def while_paused(parts: "Iterator[Sequence[FromQueue]]", requeuing: "Iterator[None]") -> "Iterator[None]":
    """Return the same steps that requeue deliveries, between those that pause their queues and the end of the pauses.

    To find the queues of 300,000 deliveries takes 30 ms. Nothing is requeued before all queues are paused.
    """
    paused: dict[ConsumedQueue, None] = {}
    is_first = True
    try:
        for part in parts:
            if not is_first:
                yield
            is_first = False
            for queue in {delivery.queue: None for delivery in part}:
                if queue not in paused:
                    paused[queue] = None
                    queue.pause_dispatch()
        yield from requeuing
    finally:
        for queue in paused:
            queue.resume_dispatch()


def _settling(deliveries: list[Delivery], outcome: DeliveryOutcome) -> "Iterator[None]":
    deliveries.reverse()
    while deliveries:
        step = deliveries[: -_STEP - 1 : -1]
        del deliveries[-_STEP:]
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
