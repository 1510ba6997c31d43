"""The consumers of one queue, and whose turn it is."""

from collections import deque
from collections.abc import Iterator
from typing import Protocol

from gateway.kernel.consumers import Consumer


class Round(Protocol):
    """The consumers of one queue, and the choice among them. ``permit_exclusive``: one may ask to be the only one."""

    permit_exclusive: bool

    def __len__(self) -> int:
        """Return how many there are."""
        ...

    def __iter__(self) -> Iterator[Consumer]:
        """Iterate over all of them, in the order they came."""
        ...

    def __contains__(self, consumer: Consumer) -> bool:
        """Return whether it is one of them."""
        ...

    def is_active(self, consumer: Consumer) -> bool:
        """Return whether it gets messages while it has capacity."""
        ...

    def add(self, consumer: Consumer) -> None:
        """Let a consumer take part."""
        ...

    def remove(self, consumer: Consumer) -> None:
        """Take a consumer out for good."""
        ...

    def resume(self, consumer: Consumer) -> None:
        """Let a consumer that waited take part again."""
        ...

    def next(self) -> Consumer | None:
        """Return the consumer whose turn it is; ``None`` if nobody can take a message now."""
        ...

    def able(self) -> list[Consumer]:
        """Return those who can take a message now, in the order of their turns. The others wait from now on."""
        ...

    def served(self, consumer: Consumer) -> None:
        """Let the turn of a consumer that is able come last, because it is to have a message."""
        ...


class Members:
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


class Consumers(Members):
    """The consumers of one queue, and whose turn it is: highest priority first, round-robin among equals (R82, R92).

    Those without capacity are out of the round until they are ``resumed``, so that finding the next one does not
    depend on how many wait.
    """

    __slots__ = ("_levels",)

    permit_exclusive = True

    def __init__(self) -> None:
        super().__init__()
        self._levels: list[tuple[int, deque[Consumer]]] = []

    def is_active(self, consumer: Consumer) -> bool:
        """Whether it gets messages while it has capacity: each of them does."""
        return consumer in self._members

    def add(self, consumer: Consumer) -> None:
        """Let a consumer take part."""
        self._members[consumer] = None
        self._round(consumer.priority).append(consumer)

    def remove(self, consumer: Consumer) -> None:
        """Take a consumer out for good."""
        del self._members[consumer]
        if not consumer.is_waiting:
            self._round(consumer.priority).remove(consumer)
        if all(member.priority != consumer.priority for member in self._members):
            self._levels = [level for level in self._levels if level[0] != consumer.priority]

    def resume(self, consumer: Consumer) -> None:
        """Let a consumer that waited take part again."""
        consumer.is_waiting = False
        self._round(consumer.priority).append(consumer)

    def next(self) -> Consumer | None:
        """Return the consumer whose turn it is, having moved it to the end of the round; ``None`` if all are busy."""
        for _, ring in self._levels:
            while ring:
                consumer = ring[0]
                if consumer.outlet.is_open and (consumer.is_unlimited or consumer.has_credit):
                    ring.rotate(-1)
                    return consumer
                ring.popleft()
                consumer.is_waiting = True
        return None

    def able(self) -> list[Consumer]:
        """Return those who can take a message now, in the order of their turns. The others wait from now on."""
        able: list[Consumer] = []
        for _, ring in self._levels:
            for consumer in tuple(ring):
                if consumer.has_capacity:
                    able.append(consumer)
                else:
                    ring.remove(consumer)
                    consumer.is_waiting = True
        return able

    def served(self, consumer: Consumer) -> None:
        """Let the turn of a consumer that is able come last among its equals."""
        ring = self._round(consumer.priority)
        ring.remove(consumer)
        ring.append(consumer)

    def _round(self, priority: int) -> deque[Consumer]:
        for level, ring in self._levels:
            if level == priority:
                return ring
        ring = deque[Consumer]()
        self._levels = sorted([*self._levels, (priority, ring)], key=lambda pair: -pair[0])
        return ring
