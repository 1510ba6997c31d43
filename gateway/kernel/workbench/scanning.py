"""Iteration over the messages of a queue or stream in slices, without changing or loading the queue.

Each function yields a message, or ``None`` at a point where other work may run. Messages that are added, taken or moved
meanwhile may be found or not; no message is found twice in one state.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, Protocol

from gateway.kernel.backlog.ordering import in_order
from gateway.kernel.messages.queued_message import QueuedMessage
from gateway.kernel.streams.reading import queued_messages
from gateway.kernel.streams.stream import Stream
from gateway.kernel.workbench.filters import DELAYED, READY, STATES, UNACKNOWLEDGED
from gateway.kernel.workbench.found import Found, Place

if TYPE_CHECKING:
    from gateway.kernel.backlog.delay_index import DelayIndex
    from gateway.kernel.backlog.waiting import WaitingRow
    from gateway.kernel.journal.journal import Journal
    from gateway.kernel.queueing.consumer import ConsumedQueue
    from gateway.kernel.queueing.queue import Queue

#: Keys of delayed messages that are compared in one step.
_KEYS_AT_ONCE: Final = 4096

#: Deliveries that are compared in one step.
_COMPARED_AT_ONCE: Final = 256

#: Bytes of a stream that are read in one step.
_STREAM_BYTES: Final = 256 * 1024


class DeliveryHolder(Protocol):
    """A connection whose client may hold deliveries."""

    name: str

    def unsettled(self) -> "Iterable[tuple[ConsumedQueue, QueuedMessage, int]]":
        """Return the deliveries that wait for an acknowledgement: queue, message and channel."""
        ...


def scan(
    queue: "Queue", states: Iterable[str], holders: Iterable[DeliveryHolder], after: Place, until: int
) -> Iterator[Found | None]:
    """Yield the messages of a queue in these states after a place, in the order of ``STATES``.

    Ready messages come in the order in which they are served, without those above the position ``until``.
    """
    wanted = set(states)
    for state in STATES[STATES.index(after.state) :]:
        place = after if state == after.state else Place(state)
        if state not in wanted:
            continue
        if state == READY:
            yield from _ready(queue, place, until)
        elif state == UNACKNOWLEDGED:
            yield from _unacknowledged(queue, holders, place.key)
        else:
            yield from _delayed(queue, place.key)


def scan_stream(stream: Stream, journal: "Journal", first: int) -> Iterator[Found | None]:
    """Yield the durable messages of a stream from an offset on, up to its end now."""
    log = stream.log
    end, offset = log.durable_end, max(first, log.first)
    while offset < end:
        chunks = log.read(offset, _STREAM_BYTES)
        if chunks is None:  # the retention has deleted the messages up to here
            if offset >= log.first:
                return
            offset = log.first
            continue
        for entry in queued_messages(chunks, offset, end, journal.reader, None):
            offset = entry.position + 1
            yield Found(READY, entry, entry.position)
        yield None


def look_up(queue: "Queue", positions: Iterable[int]) -> Iterator[Found | None]:
    """Yield the ready and delayed messages at these positions, as far as they are there."""
    wanted = set(positions)
    for number, row in list(queue.ready.numbered_rows()):
        for position in sorted(wanted):
            if (entry := row.look_at(position)) is not None:
                wanted.discard(position)
                yield Found(READY, entry, position, number)
            yield None
    if wanted and queue.delayed is not None:
        delays, keys = queue.delayed.delays, []
        for key in delays.keys_at(wanted):
            if key is None:
                yield None
            else:
                keys.append(key)
        yield from _delayed_of(delays, keys)


def _ready(queue: "Queue", after: Place, until: int) -> Iterator[Found | None]:
    for number, row in list(queue.ready.numbered_rows()):
        if number >= after.row:
            for entry in _row(row, after.key if number == after.row else 0, until):
                yield None if entry is None else Found(READY, entry, entry.position, number)


def _row(row: "WaitingRow", after: int, until: int) -> Iterator[QueuedMessage | None]:
    """Yield the messages of one row after a position, requeued ones in between."""
    returned = in_order([position for position in row.requeued_positions() if after < position <= until])
    next_returned = next(returned, _END)
    while next_returned is None:
        yield None
        next_returned = next(returned, _END)
    for entry in _not_requeued(row, after, until):
        while entry is not None and next_returned is not None and next_returned < entry.position:
            yield row.look_at(next_returned)
            next_returned = next(returned, _END)
        yield entry
    while next_returned is not None and next_returned < _END:
        yield row.look_at(next_returned)
        next_returned = next(returned, _END)


def _not_requeued(row: "WaitingRow", after: int, until: int) -> Iterator[QueuedMessage | None]:
    while run := row.after(after):
        for entry in run:
            if entry.position > until:
                return
            after = entry.position
            yield entry
        yield None


def _unacknowledged(queue: "Queue", holders: Iterable[DeliveryHolder], after: int) -> Iterator[Found | None]:
    """Yield the unacknowledged messages with positions above ``after``, in the order of their positions."""
    held: list[Found] = []
    for holder in holders:
        for number, (held_queue, entry, channel) in enumerate(list(holder.unsettled())):
            if held_queue is queue and entry.position > after:
                held.append(Found(UNACKNOWLEDGED, entry, entry.position, holder=holder.name, channel=channel))
            if number % _COMPARED_AT_ONCE == _COMPARED_AT_ONCE - 1:
                yield None
        yield None
    found_at = {found.key: found for found in held}
    for position in in_order(list(found_at)):
        yield None if position is None else found_at[position]


def _delayed(queue: "Queue", after: int) -> Iterator[Found | None]:
    """Yield the delayed messages with keys above ``after``, those due soonest first."""
    if queue.delayed is not None:
        delays = queue.delayed.delays
        keys, later = delays.keys(), list[int]()
        for start in range(0, len(keys), _KEYS_AT_ONCE):
            later += [key for key in keys[start : start + _KEYS_AT_ONCE] if key > after]
            yield None
        yield from _delayed_of(delays, later)


def _delayed_of(delays: "DelayIndex", keys: list[int]) -> Iterator[Found | None]:
    for key in in_order(keys):
        found = None if key is None else delays.look_at(key)
        if key is None or found is None:
            yield None
        else:
            yield Found(DELAYED, found[0], key, due_at_ms=found[1])


#: Greater than any position.
_END: Final = 1 << 64
