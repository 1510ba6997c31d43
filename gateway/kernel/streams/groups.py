"""Groups of stream consumers: of the consumers of one name one reads a stream, and another one takes over from it.

The partitions of a super stream are handed out evenly: a consumer that joins takes over from one whose connection reads
two more partitions for the group than its own does.
"""

from itertools import islice
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from gateway.kernel.queueing.consumer import Consumer

#: The next reader is chosen among this many consumers that wait, those that joined first.
MOST_COMPARED: Final = 64

#: A consumer that joins takes over from one that reads this many partitions more.
_DIFFERENCE: Final = 2


class GroupLoads:
    """The number of streams that each connection reads for each group of one virtual host."""

    __slots__ = ("_count_by_place",)

    def __init__(self) -> None:
        self._count_by_place: dict[tuple[str, str], int] = {}

    def of(self, name: str, consumer: "Consumer") -> int:
        """Return the number of streams that a consumer's connection reads for a group."""
        return self._count_by_place.get((name, consumer.subscriber.origin.connection), 0)

    def change(self, name: str, consumer: "Consumer", difference: int) -> None:
        """Count a stream more, or one less."""
        place = name, consumer.subscriber.origin.connection
        count = self._count_by_place.get(place, 0) + difference
        if count:
            self._count_by_place[place] = count
        else:
            del self._count_by_place[place]


class ConsumerGroup:
    """The consumers of one name of one stream, in the order in which they joined.

    ``reader`` is the one that reads. ``successor`` takes over once nothing of the reader is unsettled. ``begin`` is
    where the first one began: what it got and did not settle is not lost for the others.
    """

    __slots__ = ("begin", "members", "name", "reader", "successor")

    def __init__(self, name: str, begin: int) -> None:
        self.name = name
        self.begin = begin
        self.members: dict[Consumer, None] = {}
        self.reader: Consumer | None = None
        self.successor: Consumer | None = None


class StreamGroups:
    """The groups of one stream. ``loads`` is shared by the streams of a virtual host."""

    __slots__ = ("_group_by_consumer", "_group_by_name", "_loads")

    def __init__(self, loads: GroupLoads) -> None:
        self._loads = loads
        self._group_by_name: dict[str, ConsumerGroup] = {}
        self._group_by_consumer: dict[Consumer, ConsumerGroup] = {}

    def of(self, consumer: "Consumer") -> ConsumerGroup | None:
        """Return the group of a consumer, if it has one."""
        return self._group_by_consumer.get(consumer)

    def begin_of(self, name: str | None) -> int | None:
        """Return where a group began, ``None`` if it has no consumers."""
        group = self._group_by_name.get(name) if name is not None else None
        return None if group is None else group.begin

    def is_held(self, consumer: "Consumer") -> bool:
        """Return whether a consumer gets no messages now, because another one of its group reads or is to read."""
        group = self._group_by_consumer.get(consumer)
        return group is not None and (group.reader is not consumer or group.successor is not None)

    def join(self, name: str, consumer: "Consumer", begin: int) -> None:
        """Add a consumer; ``begin`` is the offset at which it would begin alone.

        It reads if it is the first. Otherwise it succeeds the reader if that has more to read, or waits.
        """
        group = self._group_by_name.setdefault(name, ConsumerGroup(name, begin))
        group.members[consumer] = None
        self._group_by_consumer[consumer] = group
        if group.reader is None:
            group.reader = consumer
            self._loads.change(name, consumer, 1)
        elif group.successor is None and (
            self._loads.of(name, group.reader) >= self._loads.of(name, consumer) + _DIFFERENCE
        ):
            self._loads.change(name, group.reader, -1)
            self._loads.change(name, consumer, 1)
            group.successor = consumer

    def hand_over(self, consumer: "Consumer") -> "Consumer | None":
        """Let the successor of a reader read, if nothing of the reader is unsettled; return it."""
        group = self._group_by_consumer.get(consumer)
        if group is None or group.reader is not consumer or group.successor is None or consumer.credit.used:
            return None
        group.reader, group.successor = group.successor, None
        return group.reader

    def leave(self, consumer: "Consumer") -> "Consumer | None":
        """Remove a consumer; return the one that reads from now on, if that is another one."""
        group = self._group_by_consumer.pop(consumer, None)
        if group is None:
            return None
        del group.members[consumer]
        if not group.members:
            del self._group_by_name[group.name]
        counted = group.successor or group.reader
        if counted is consumer:
            self._loads.change(group.name, consumer, -1)
        if group.successor is consumer:
            return self._stays(group)
        if group.reader is not consumer:
            return None
        if group.successor is None:
            group.successor = self._next(group)
        group.reader, group.successor = group.successor, None
        return group.reader

    def _stays(self, group: ConsumerGroup) -> "Consumer | None":
        """Let the reader of a group read on: its successor has left before it took over."""
        assert group.reader is not None
        group.successor = None
        self._loads.change(group.name, group.reader, 1)
        return group.reader

    def _next(self, group: ConsumerGroup) -> "Consumer | None":
        """Return the consumer whose connection reads least for the group, the oldest of equals."""
        chosen = min(
            islice(group.members, MOST_COMPARED), key=lambda each: self._loads.of(group.name, each), default=None
        )
        if chosen is not None:
            self._loads.change(group.name, chosen, 1)
        return chosen
