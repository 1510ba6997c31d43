"""The consumers of one queue, and whose turn it is."""

from collections.abc import Iterator

from gateway.kernel.queueing.consumer import Consumer


class ConsumerScheduler:
    """The consumers of one queue, and the choice among them."""

    __slots__ = ()

    @property
    def permits_exclusive(self) -> bool:
        """Whether one may ask to be the only one."""
        return True

    def __len__(self) -> int:
        """Return how many there are."""
        raise NotImplementedError

    def __iter__(self) -> Iterator[Consumer]:
        """Iterate over all of them, in the order they came."""
        raise NotImplementedError

    def __contains__(self, consumer: Consumer) -> bool:
        """Return whether it is one of them."""
        raise NotImplementedError

    def is_active(self, consumer: Consumer) -> bool:
        """Return whether it gets messages while it has capacity."""
        raise NotImplementedError

    def add(self, consumer: Consumer) -> None:
        """Let a consumer take part."""
        raise NotImplementedError

    def remove(self, consumer: Consumer) -> None:
        """Take a consumer out for good."""
        raise NotImplementedError

    def resume(self, consumer: Consumer) -> None:
        """Let a consumer that waited take part again."""
        raise NotImplementedError

    def next(self) -> Consumer | None:
        """Return the consumer whose turn it is; ``None`` if nobody can take a message now."""
        raise NotImplementedError

    def able(self) -> list[Consumer]:
        """Return those who can take a message now, in the order of their turns. The others wait from now on."""
        raise NotImplementedError

    def served(self, consumer: Consumer) -> None:
        """Let the turn of a consumer that is able come last, because it is to have a message."""
        raise NotImplementedError


class ConsumerSet(ConsumerScheduler):
    """Who takes part in a round of consumers, in the order they came."""

    __slots__ = ("_members",)

    def __init__(self) -> None:
        self._members: dict[Consumer, None] = {}

    def __len__(self) -> int:
        return len(self._members)

    def __iter__(self) -> Iterator[Consumer]:
        return iter(tuple(self._members))

    def __contains__(self, consumer: Consumer) -> bool:
        return consumer in self._members


class RoundRobin:
    """Consumers of one priority, one after the other: a row and the place in it of whoever is next."""

    __slots__ = ("_next", "_row", "priority")

    def __init__(self, priority: int) -> None:
        self.priority = priority
        self._row: list[Consumer] = []
        self._next = 0

    def append(self, consumer: Consumer) -> None:
        """Add a consumer as the last: behind it comes whoever is next."""
        self._row.insert(self._next, consumer)
        self._next += 1

    def remove(self, consumer: Consumer) -> None:
        """Take a consumer out."""
        place = self._row.index(consumer)
        del self._row[place]
        if place < self._next:
            self._next -= 1

    def next(self) -> Consumer | None:
        """Return whoever is next and has capacity, who is the last then; those before it wait from now on."""
        row = self._row
        while row:
            if self._next >= len(row):
                self._next = 0
            consumer = row[self._next]
            if consumer.outlet.is_open and (consumer.is_unlimited or consumer.has_credit):
                self._next += 1
                return consumer
            del row[self._next]
            consumer.wait()
        return None

    def in_turn(self) -> list[Consumer]:
        """Return all of them, beginning with whoever is next."""
        return self._row[self._next :] + self._row[: self._next]


class Consumers(ConsumerSet):
    """The consumers of one queue, and whose turn it is: highest priority first, round-robin among equals (R82, R92).

    Those without capacity are out of the round until they are ``resumed``, so that finding the next one does not
    depend on how many wait. The ``_only`` one, as most queues have, is found without its ring: with thousands of queues
    each object on the way is far from the processor.
    """

    __slots__ = ("_only", "_rings")

    def __init__(self) -> None:
        super().__init__()
        self._only: Consumer | None = None
        self._rings: list[RoundRobin] = []

    def is_active(self, consumer: Consumer) -> bool:
        """Whether it gets messages while it has capacity: each of them does."""
        return consumer in self._members

    def add(self, consumer: Consumer) -> None:
        """Let a consumer take part."""
        self._only = None if self._members else consumer
        self._members[consumer] = None
        self._ring(consumer.priority).append(consumer)

    def remove(self, consumer: Consumer) -> None:
        """Take a consumer out for good."""
        del self._members[consumer]
        if not consumer.is_waiting:
            self._ring(consumer.priority).remove(consumer)
        if all(member.priority != consumer.priority for member in self._members):
            self._rings = [ring for ring in self._rings if ring.priority != consumer.priority]
        self._only = next(iter(self._members)) if len(self._members) == 1 else None

    def resume(self, consumer: Consumer) -> None:
        """Let a consumer that waited take part again."""
        consumer.is_waiting = False
        self._ring(consumer.priority).append(consumer)

    def next(self) -> Consumer | None:
        """Return the consumer whose turn it is, having moved it to the end of the round; ``None`` if all are busy."""
        only = self._only
        if only is not None and not only.is_waiting and only.outlet.is_open and (only.is_unlimited or only.has_credit):
            return only
        for ring in self._rings:
            consumer = ring.next()
            if consumer is not None:
                return consumer
        return None

    def able(self) -> list[Consumer]:
        """Return those who can take a message now, in the order of their turns. The others wait from now on."""
        able: list[Consumer] = []
        for ring in self._rings:
            for consumer in ring.in_turn():
                if consumer.has_capacity:
                    able.append(consumer)
                else:
                    ring.remove(consumer)
                    consumer.wait()
        return able

    def served(self, consumer: Consumer) -> None:
        """Let the turn of a consumer that is able come last among its equals."""
        ring = self._ring(consumer.priority)
        ring.remove(consumer)
        ring.append(consumer)

    def _ring(self, priority: int) -> RoundRobin:
        for ring in self._rings:
            if ring.priority == priority:
                return ring
        ring = RoundRobin(priority)
        self._rings = sorted([*self._rings, ring], key=lambda each: -each.priority)
        return ring
