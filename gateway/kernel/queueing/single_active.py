"""Single active consumer: a queue serves one consumer, and the others are standbys (R93-R96)."""

from heapq import heapify, heappop, heappush

from gateway.kernel.messages.message import Arguments
from gateway.kernel.queueing.consumer import Consumer
from gateway.kernel.queueing.scheduler import Consumers, ConsumerScheduler, ConsumerSet


def consumers_for(arguments: Arguments) -> ConsumerScheduler:
    """Return an empty scheduler for the queue's arguments."""
    if arguments.get("x-single-active-consumer") is not True:
        return Consumers()
    return QuorumSingleActive() if arguments.get("x-queue-type") == "quorum" else SingleActive()


class Ranking:
    """Some consumers by priority, the oldest first within one.

    The heap has numbers of removed ones, until they come to the top or are the most. It has no consumers, because a
    removed one would keep its connection in memory.
    """

    __slots__ = ("_consumer_by_number", "_heap", "_number", "_number_by_consumer")

    def __init__(self) -> None:
        self._number = 0
        self._heap: list[tuple[int, int]] = []
        self._consumer_by_number: dict[int, Consumer] = {}
        self._number_by_consumer: dict[Consumer, int] = {}

    def add(self, consumer: Consumer) -> None:
        """Add a consumer."""
        self._number += 1
        self._consumer_by_number[self._number] = consumer
        self._number_by_consumer[consumer] = self._number
        heappush(self._heap, (-consumer.priority, self._number))

    def remove(self, consumer: Consumer) -> None:
        """Remove a consumer."""
        del self._consumer_by_number[self._number_by_consumer.pop(consumer)]
        if len(self._heap) > 2 * len(self._consumer_by_number):
            self._heap = [(-each.priority, number) for number, each in self._consumer_by_number.items()]
            heapify(self._heap)

    @property
    def first(self) -> Consumer | None:
        """The consumer of the highest priority, the oldest of them."""
        heap = self._heap
        while heap:
            consumer = self._consumer_by_number.get(heap[0][1])
            if consumer is not None:
                return consumer
            heappop(heap)
        return None


class SingleActive(ConsumerSet):
    """The first consumer is active until it is removed; its successor has the highest priority, oldest first.

    A new consumer of higher priority waits like the others. All wait while the active one has no capacity. Exclusive
    consumers are refused, since they contradict standbys (R95).
    """

    __slots__ = ("_active", "_ranking")

    def __init__(self) -> None:
        super().__init__()
        self._active: Consumer | None = None
        self._ranking = Ranking()

    @property
    def permits_exclusive(self) -> bool:
        """Whether a consumer may be exclusive: never, since the active one already is."""
        return False

    def is_active(self, consumer: Consumer) -> bool:
        """Return whether the consumer is the active one."""
        return consumer is self._active

    def add(self, consumer: Consumer) -> None:
        """Add a consumer, active if it is the first."""
        self._members[consumer] = None
        self._ranking.add(consumer)
        if self._active is None:
            self._active = consumer

    def remove(self, consumer: Consumer) -> None:
        """Remove a consumer; if it was active, choose its successor."""
        del self._members[consumer]
        self._ranking.remove(consumer)
        if consumer is self._active:
            self._active = self._ranking.first

    def resume(self, consumer: Consumer) -> None:
        """Resume a waiting consumer."""
        consumer.is_waiting = False

    def next(self) -> Consumer | None:
        """Return the active consumer, or ``None`` while it has no capacity."""
        active = self._active
        if active is not None and not active.has_capacity:
            active.wait()
            return None
        return active

    def with_capacity(self) -> list[Consumer]:
        """Return the active consumer, or nothing while it has no capacity."""
        active = self.next()
        return [] if active is None else [active]

    def move_to_end(self, consumer: Consumer) -> None:
        """Do nothing: the active consumer is always next."""


class QuorumSingleActive(SingleActive):
    """Single active consumer of a quorum queue, where one of higher priority replaces the active one, as in RabbitMQ 4.

    Once a better consumer is added, the active one gets no more messages; when it has settled all it holds, the better
    one becomes active. If that one is removed before, the active one continues. ``_best`` is active or about to be.
    """

    __slots__ = ("_best",)

    def __init__(self) -> None:
        super().__init__()
        self._best: Consumer | None = None

    def add(self, consumer: Consumer) -> None:
        """Add a consumer; it becomes active if its priority is higher and the active one holds nothing."""
        consumer.count()
        super().add(consumer)
        if self._best is None or consumer.priority > self._best.priority:
            self._best = consumer
        self._succeed()

    def remove(self, consumer: Consumer) -> None:
        """Remove a consumer; if it was the successor, the active one continues."""
        super().remove(consumer)
        first, active = self._ranking.first, self._active
        is_better = first is not None and (active is None or first.priority > active.priority)
        self._best = first if is_better else active
        if self._active is not None:
            self._active.is_waiting = False

    def resume(self, consumer: Consumer) -> None:
        """Resume a waiting consumer; if it is the active one, its successor may replace it now."""
        consumer.is_waiting = False
        self._succeed()

    def next(self) -> Consumer | None:
        """Return the active consumer; ``None`` while it has no capacity or settles its last deliveries."""
        if self._best is not self._active:
            self._succeed()
            active = self._active
            if active is not None and self._best is not active:
                active.wait()
                return None
        return super().next()

    def _succeed(self) -> None:
        """Make the best consumer active if the active one holds nothing."""
        active = self._active
        if active is not None and self._best is not active and not active.credit.used:
            active.is_waiting = False
            self._active = self._best
