"""Scheduling of the consumers of one queue."""

from bisect import bisect_left, insort
from collections.abc import Iterator
from typing import Final

from gateway.kernel.queueing.consumer import Consumer

#: Of more consumers than this in a ring, removed ones are skipped first: finding one of 100,000 takes 0.5 ms.
_FEW: Final = 64

#: They are taken out once they are this part of the ring, because each keeps its connection in memory.
_GONE_PART: Final = 16


class ConsumerScheduler:
    """The consumers of one queue, and the choice of the next one."""

    __slots__ = ()

    @property
    def permits_exclusive(self) -> bool:
        """Whether a consumer may be exclusive."""
        return True

    @property
    def lack_capacity(self) -> bool:
        """Whether there are consumers, and no active one of them has capacity."""
        return len(self) > 0 and not any(each.has_capacity for each in self if self.is_active(each))

    def permit(self, consumer: Consumer) -> bool:
        """Return whether a consumer may be added: an exclusive one is the only one (R95, R97)."""
        is_shared = len(self) > 0 or not self.permits_exclusive
        has_exclusive = len(self) == 1 and any(each.is_exclusive for each in self)  # it is the only one
        return not (has_exclusive or (consumer.is_exclusive and is_shared))

    def __len__(self) -> int:
        """Return the number of consumers."""
        raise NotImplementedError

    def __iter__(self) -> Iterator[Consumer]:
        """Iterate over all consumers, in the order they were added."""
        raise NotImplementedError

    def __contains__(self, consumer: Consumer) -> bool:
        """Return whether the consumer was added and not removed."""
        raise NotImplementedError

    def is_active(self, consumer: Consumer) -> bool:
        """Return whether the consumer gets messages while it has capacity."""
        raise NotImplementedError

    def add(self, consumer: Consumer) -> None:
        """Add a consumer."""
        raise NotImplementedError

    def remove(self, consumer: Consumer) -> None:
        """Remove a consumer."""
        raise NotImplementedError

    def resume(self, consumer: Consumer) -> None:
        """Resume a waiting consumer."""
        raise NotImplementedError

    def next(self) -> Consumer | None:
        """Return the next consumer; ``None`` if none has capacity."""
        raise NotImplementedError

    def with_capacity(self) -> list[Consumer]:
        """Return the consumers with capacity, next one first. The others wait from now on."""
        raise NotImplementedError

    def move_to_end(self, consumer: Consumer) -> None:
        """Move a consumer that has capacity to the end, because it gets a message."""
        raise NotImplementedError


class ConsumerSet(ConsumerScheduler):
    """Base class that owns the consumers, in the order they were added."""

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
    """Round-robin of the consumers of one priority: a list, and the index of the next one.

    ``members`` counts them with those that wait. Of many in the list, removed ones are ``_gone`` before they are taken
    out together.
    """

    __slots__ = ("_gone", "_next", "_row", "members", "priority")

    def __init__(self, priority: int) -> None:
        self.priority = priority
        self.members = 0
        self._row: list[Consumer] = []
        self._gone: set[Consumer] = set()
        self._next = 0

    @property
    def is_empty(self) -> bool:
        """Whether no consumer is in the list: all wait."""
        return len(self._row) == len(self._gone)

    def append(self, consumer: Consumer) -> None:
        """Add a consumer as the last one, just before the next one."""
        if consumer in self._gone:
            self._tidy()
        self._row.insert(self._next, consumer)
        self._next += 1

    def remove(self, consumer: Consumer) -> None:
        """Remove a consumer."""
        row = self._row
        if len(row) > _FEW:
            self._gone.add(consumer)
            if len(self._gone) > len(row) // _GONE_PART or len(row) - len(self._gone) <= _FEW:
                self._tidy()
            return
        index = row.index(consumer)
        del row[index]
        self._gone.discard(consumer)
        if index < self._next:
            self._next -= 1

    def _tidy(self) -> None:
        """Take out the consumers that are gone."""
        row, gone = self._row, self._gone
        self._next -= sum(each in gone for each in row[: self._next])
        self._row = [each for each in row if each not in gone]
        gone.clear()

    def move_to_end(self, consumer: Consumer) -> None:
        """Move a consumer just before the next one."""
        index = self._row.index(consumer)
        del self._row[index]
        if index < self._next:
            self._next -= 1
        self.append(consumer)

    def next(self) -> Consumer | None:
        """Return the next consumer with capacity and move it to the end; those without capacity wait from now on."""
        row = self._row
        while row:
            if self._next >= len(row):
                self._next = 0
            consumer = row[self._next]
            if self._gone and consumer in self._gone:
                self._gone.remove(consumer)
                del row[self._next]
                continue
            if consumer.outlet.is_open and (consumer.is_unlimited or consumer.has_credit):
                self._next += 1
                return consumer
            del row[self._next]
            consumer.wait()
        return None

    def in_turn(self) -> list[Consumer]:
        """Return all consumers, next one first."""
        if self._gone:
            self._tidy()
        return self._row[self._next :] + self._row[: self._next]


class Consumers(ConsumerSet):
    """The consumers of one queue: highest priority first, round-robin within a priority (R82, R92).

    A consumer without capacity is removed from its ring until ``resume``, and an empty ring from ``_rings``, which are
    in the order of their priorities: finding the next one does not depend on the number of waiting consumers, or of
    priorities. ``_only`` is a shortcut for a single consumer, the most common case: with thousands of queues, each
    object visited costs a cache miss.
    """

    __slots__ = ("_only", "_ring_by_priority", "_rings")

    def __init__(self) -> None:
        super().__init__()
        self._only: Consumer | None = None
        self._rings: list[RoundRobin] = []
        self._ring_by_priority: dict[int, RoundRobin] = {}

    def is_active(self, consumer: Consumer) -> bool:
        """Return whether the consumer gets messages while it has capacity; each one does."""
        return consumer in self._members

    def add(self, consumer: Consumer) -> None:
        """Add a consumer."""
        self._only = None if self._members else consumer
        self._members[consumer] = None
        ring = self._ring_by_priority.get(consumer.priority)
        if ring is None:
            ring = self._ring_by_priority[consumer.priority] = RoundRobin(consumer.priority)
        ring.members += 1
        self._append(consumer)

    def remove(self, consumer: Consumer) -> None:
        """Remove a consumer."""
        del self._members[consumer]
        ring = self._ring_by_priority[consumer.priority]
        ring.members -= 1
        if not consumer.is_waiting:
            ring.remove(consumer)
            if ring.is_empty:
                del self._rings[bisect_left(self._rings, ring.priority, key=_priority_of)]
        if not ring.members:
            del self._ring_by_priority[consumer.priority]
        self._only = next(iter(self._members)) if len(self._members) == 1 else None

    def resume(self, consumer: Consumer) -> None:
        """Resume a waiting consumer."""
        consumer.is_waiting = False
        self._append(consumer)

    def _append(self, consumer: Consumer) -> None:
        ring = self._ring_by_priority[consumer.priority]
        if ring.is_empty:
            insort(self._rings, ring, key=_priority_of)
        ring.append(consumer)

    def next(self) -> Consumer | None:
        """Return the next consumer, moved to the end of the round; ``None`` if none has capacity."""
        only = self._only
        if only is not None and not only.is_waiting and only.outlet.is_open and (only.is_unlimited or only.has_credit):
            return only
        rings = self._rings
        while rings:
            consumer = rings[-1].next()
            if consumer is not None:
                return consumer
            rings.pop()
        return None

    def with_capacity(self) -> list[Consumer]:
        """Return the consumers with capacity, next one first. The others wait from now on."""
        with_capacity: list[Consumer] = []
        for ring in reversed(self._rings):
            for consumer in ring.in_turn():
                if consumer.has_capacity:
                    with_capacity.append(consumer)
                else:
                    ring.remove(consumer)
                    consumer.wait()
        self._rings = [ring for ring in self._rings if not ring.is_empty]
        return with_capacity

    def move_to_end(self, consumer: Consumer) -> None:
        """Move a consumer that has capacity to the end of its priority."""
        self._ring_by_priority[consumer.priority].move_to_end(consumer)


def _priority_of(ring: RoundRobin) -> int:
    return ring.priority
