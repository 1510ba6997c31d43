"""A search among the messages of a queue, in slices, limited in messages, bytes and time."""

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Final

from gateway.kernel.queueing.queue import Queue
from gateway.kernel.queueing.queue_like import QueueLike
from gateway.kernel.streams.stream import Stream
from gateway.kernel.workbench.filters import MessageFilter
from gateway.kernel.workbench.found import Found, Place
from gateway.kernel.workbench.scanning import scan, scan_stream
from gateway.management.http.call import Call
from gateway.management.http.routes import Fields
from gateway.management.workbench.filters import cursor_of
from gateway.management.workbench.views import found_view

#: Bytes of bodies in an answer, besides the last one.
MOST_BYTES: Final = 4 * 2**20

#: Messages that are examined in one step.
_STEP: Final = 64

#: Bytes of bodies that are examined in one step.
_STEP_BYTES: Final = 2**18


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """Found and examined messages, seconds, and bytes of each body that an answer shows."""

    found: int
    examined: int
    seconds: float
    truncate: int


def messages_of(
    call: Call, queue: QueueLike, wanted: MessageFilter, after: Place, until: int
) -> Iterator[Found | None]:
    """Return the messages of a queue or stream after a place, before the conditions of the filter."""
    if isinstance(queue, Stream):
        return scan_stream(queue, call.broker.journal, after.key + 1)
    assert isinstance(queue, Queue)
    return scan(queue, wanted.states, call.broker.connections, after, until)


def search(
    call: Call, queue: QueueLike, wanted: MessageFilter, after: Place, limits: SearchLimits
) -> Generator[None, None, Fields]:
    """Return the steps of a search; the result is its answer."""
    clock, journal = call.broker.clock, call.broker.journal
    ends_s = clock.monotonic_s() + limits.seconds
    views: list[Fields] = []
    examined = examined_bytes = size = step = step_bytes = 0
    last: Found | None = None
    stopped_by = None
    for found in messages_of(call, queue, wanted, after, journal.position):
        if found is not None:
            examined, step, last = examined + 1, step + 1, found
            examined_bytes += len(found.entry.message.body)
            step_bytes += len(found.entry.message.body)
            if wanted.takes(found.entry.message):
                views.append(found_view(found, limits.truncate))
                size += min(len(found.entry.message.body), limits.truncate) + len(found.entry.message.header.raw)
            stopped_by = _stop(len(views), examined, size, limits)
        if stopped_by is None and clock.monotonic_s() >= ends_s:
            stopped_by = "seconds"
        if stopped_by is not None:
            break
        if found is None or step >= _STEP or step_bytes >= _STEP_BYTES:
            step = step_bytes = 0
            yield
    return {
        "messages": views,
        "cursor": cursor_of(last) if stopped_by is not None and last is not None else None,
        "examined": examined,
        "examined_bytes": examined_bytes,
        "stopped_by": stopped_by,
    }


def _stop(found: int, examined: int, size: int, limits: SearchLimits) -> str | None:
    """Return the limit that ends the search, or ``None``."""
    if found >= limits.found:
        return "limit"
    if examined >= limits.examined:
        return "examined"
    return "bytes" if size >= MOST_BYTES else None
