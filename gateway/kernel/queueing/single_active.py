"""A queue that serves one consumer at a time: the others are there to take its place (R93-R96)."""

from gateway.kernel.messages.message import Arguments
from gateway.kernel.queueing.consumer import Consumer
from gateway.kernel.queueing.scheduler import Consumers, ConsumerScheduler, ConsumerSet


def consumers_for(arguments: Arguments) -> ConsumerScheduler:
    """Return an empty round of consumers, as the queue's arguments ask for it."""
    if arguments.get("x-single-active-consumer") is not True:
        return Consumers()
    return SuccessiveActive() if arguments.get("x-queue-type") == "quorum" else SingleActive()


class SingleActive(ConsumerSet):
    """The first consumer is active until it goes; then the one of the highest priority, the first among equals.

    One of a higher priority that comes later waits like the others, and so does everybody while the active one has no
    capacity. An exclusive consumer would contradict the others, so there is none (R95).
    """

    __slots__ = ("_active",)

    def __init__(self) -> None:
        super().__init__()
        self._active: Consumer | None = None

    @property
    def permits_exclusive(self) -> bool:
        """Whether one may ask to be the only one: the active one is that already."""
        return False

    def is_active(self, consumer: Consumer) -> bool:
        """Whether it is the one that gets messages."""
        return consumer is self._active

    def add(self, consumer: Consumer) -> None:
        """Let a consumer take part: as the active one if it is the first."""
        self._members[consumer] = None
        if self._active is None:
            self._active = consumer

    def remove(self, consumer: Consumer) -> None:
        """Take a consumer out for good; if it was active another one is from now on."""
        del self._members[consumer]
        if consumer is self._active:
            self._active = max(self._members, key=lambda member: member.priority, default=None)

    def resume(self, consumer: Consumer) -> None:
        """Let a consumer that waited take part again."""
        consumer.is_waiting = False

    def next(self) -> Consumer | None:
        """Return the active consumer, or ``None`` while it has no capacity."""
        active = self._active
        if active is not None and not active.has_capacity:
            active.wait()
            return None
        return active

    def able(self) -> list[Consumer]:
        """Return the active consumer alone, or nobody while it has no capacity."""
        active = self.next()
        return [] if active is None else [active]

    def served(self, consumer: Consumer) -> None:
        """Do nothing: whoever is active has every turn."""


class SuccessiveActive(SingleActive):
    """The same for a quorum queue, where one of a higher priority takes over from the active one, as in RabbitMQ 4.

    From the moment a better one is there the active one gets nothing more; once it has settled what it holds the better
    one is active. If that goes before, the active one goes on. ``_best`` is who is active or about to be.
    """

    __slots__ = ("_best",)

    def __init__(self) -> None:
        super().__init__()
        self._best: Consumer | None = None

    def add(self, consumer: Consumer) -> None:
        """Let a consumer take part; it takes over if its priority is higher and the active one holds nothing."""
        consumer.count()
        super().add(consumer)
        if self._best is None or consumer.priority > self._best.priority:
            self._best = consumer
        self._succeed()

    def remove(self, consumer: Consumer) -> None:
        """Take a consumer out for good; if it was to take over, the active one may go on."""
        super().remove(consumer)
        self._best = self._active
        for member in self._members:
            if self._best is None or member.priority > self._best.priority:
                self._best = member
        if self._active is not None:
            self._active.is_waiting = False

    def resume(self, consumer: Consumer) -> None:
        """Let a consumer that waited take part again; if it is the active one, it may be time for its successor."""
        consumer.is_waiting = False
        self._succeed()

    def next(self) -> Consumer | None:
        """Return the active consumer; ``None`` while it has no capacity, or settles what it holds to be succeeded."""
        if self._best is not self._active:
            self._succeed()
            active = self._active
            if active is not None and self._best is not active:
                active.wait()
                return None
        return super().next()

    def _succeed(self) -> None:
        """Make the best one active if the active one holds nothing any more."""
        active = self._active
        if active is not None and self._best is not active and not active.credit.used:
            active.is_waiting = False
            self._active = self._best
