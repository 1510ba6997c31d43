"""A queue that serves one consumer at a time: the others are there to take its place (R93-R96)."""

from gateway.kernel.consumers import Consumer
from gateway.kernel.message import Arguments
from gateway.kernel.round import Consumers, Members, Round


def consumers_for(arguments: Arguments) -> Round:
    """Return an empty round of consumers, as the queue's arguments ask for it."""
    return SingleActive() if arguments.get("x-single-active-consumer") is True else Consumers()


class SingleActive(Members):
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
