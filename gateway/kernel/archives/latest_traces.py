"""The traces of one virtual host in the order of their numbers, of which the oldest is dropped first."""

from bisect import bisect_left
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from gateway.kernel.archives.message_trace import MessageTrace

if TYPE_CHECKING:
    from gateway.kernel.archives.message_trace import Publication

#: Places of dropped traces at the beginning of the list before it is shortened.
_MOST_VACANT: Final = 1024


class LatestTraces:
    """A queue of traces, of one message or several each. ``count`` is the number of messages.

    The list has vacant places at its beginning, because compiled code calls no method for a list. ``_latest`` is the
    trace of the latest message, ``_before`` the trace before it, which may have the same events. Then the
    later one is used again for the next message, and the other one counts both, unless they were shown meanwhile.
    """

    __slots__ = ("_before", "_first", "_latest", "_places", "count")

    def __init__(self) -> None:
        self.count = 0
        self._places: list[MessageTrace | None] = []
        self._first = 0
        self._before: MessageTrace | None = None
        self._latest: MessageTrace | None = None

    def begin(self, id: int, publication: "Publication") -> MessageTrace:
        """Add and return the trace of the latest message, whose number follows that of the one before."""
        self.count += 1
        latest, before = self._latest, self._before
        if (  # the latest two messages have the same events; a late event belongs to one alone
            before is not None
            and latest is not None
            and latest.deliver is before.deliver
            and latest.enqueue is before.enqueue
            and latest.publication is before.publication
            and latest.position is None
            and latest.rows is None
            and before.rows is None
        ):
            before.id = latest.id
            before.count += 1
            latest.id = id
            latest.publication = publication
            latest.enqueue = latest.deliver = None
            return latest
        # what was delivered at once without a position is not settled
        is_over = latest is not None and latest.deliver is not None and latest.position is None and latest.rows is None
        self._before = latest if is_over else None
        trace = self._latest = MessageTrace(id, publication)
        self._places.append(trace)
        return trace

    def skip(self) -> None:
        """Note that a number is left out: the messages around it share no trace."""
        self._before = self._latest = None

    def drop_oldest(self, most: int) -> MessageTrace:
        """Drop the oldest message, and up to ``most`` of its trace; there is one.

        Return the trace, which ``is_evicted`` if all its messages are dropped.
        """
        first, places = self._first, self._places
        trace = places[first]
        assert trace is not None
        if trace.count > most:
            self.count -= most
            trace.count -= most
            return trace
        self.count -= trace.count
        trace.is_evicted = True
        if trace is self._before:
            self._before = None
        places[first] = None
        self._first = first = first + 1
        if first == _MOST_VACANT:
            del places[:first]
            self._first = 0
        return trace

    def __iter__(self) -> Iterator[MessageTrace]:
        """Return the traces of the messages of now, the latest first."""
        self._before = self._latest = None
        found = [(trace, trace.id, trace.count) for trace in reversed(self._places) if trace is not None]
        return (trace.of_message(number) for trace, id, count in found for number in range(id, id - count, -1))

    def get(self, id: int) -> MessageTrace | None:
        """Return the trace of the message with this number."""
        self._before = self._latest = None
        index = self._index(id)
        return None if index is None else self._trace(index).of_message(id)

    def separated(self, id: int) -> MessageTrace | None:
        """Return a trace for this message alone, to which events may be added."""
        self._before = self._latest = None
        index = self._index(id)
        if index is None:
            return None
        trace = self._trace(index)
        if trace.count == 1:
            return trace
        own, after = trace.part(id, 1), trace.id - id
        parts = [trace.part(id - 1, trace.count - after - 1), own, trace.part(trace.id, after)]
        self._places[index : index + 1] = [part for part in parts if part.count]
        return own

    def clear(self) -> None:
        """Remove all traces."""
        for trace in self._places:
            if trace is not None:
                trace.is_evicted = True
        self._places = []
        self._first = self.count = 0
        self._before = self._latest = None

    def _index(self, id: int) -> int | None:
        """Return the place of a message; ``None`` if it is not there."""
        index = bisect_left(self._places, id, lo=self._first, key=_number)
        if index == len(self._places):
            return None
        trace = self._trace(index)
        return index if id > trace.id - trace.count else None

    def _trace(self, index: int) -> MessageTrace:
        trace = self._places[index]
        assert trace is not None
        return trace


def _number(trace: MessageTrace | None) -> int:
    return 0 if trace is None else trace.id
