"""Single active consumer: a queue serves one consumer, and the others are standbys (R93-R96)."""

from gateway.kernel.messages.message import Arguments
from gateway.kernel.queueing.consumer import Consumer
from gateway.kernel.queueing.scheduler import Consumers, ConsumerScheduler, ConsumerSet


def consumers_for(arguments: Arguments) -> ConsumerScheduler:
    """Return an empty scheduler for the queue's arguments."""
    if arguments.get("x-single-active-consumer") is not True:
        return Consumers()
    return QuorumSingleActive() if arguments.get("x-queue-type") == "quorum" else SingleActive()


class SingleActive(ConsumerSet):
    """The first consumer is active until it is removed; its successor has the highest priority, oldest first.

    A new consumer of higher priority waits like the others. All wait while the active one has no capacity. Exclusive
    consumers are refused, since they contradict standbys (R95).
    """

    __slots__ = ("_active",)

    def __init__(self) -> None:
        super().__init__()
        self._active: Consumer | None = None

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
        if self._active is None:
            self._active = consumer

    def remove(self, consumer: Consumer) -> None:
        """Remove a consumer; if it was active, choose its successor."""
        del self._members[consumer]
        if consumer is self._active:
            self._active = max(self._members, key=lambda member: member.priority, default=None)

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
        self._best = self._active
        for member in self._members:
            if self._best is None or member.priority > self._best.priority:
                self._best = member
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
