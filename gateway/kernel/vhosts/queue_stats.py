"""What a queue holds, counted when somebody asks: how much is in memory, how much survives a restart.

The kernel counts no more for each message than it needs itself. The rest is found by going through the messages in
memory, some tens of thousands at most (0.1 µs each), and the columns of those that are not, some two microseconds for
500 of them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, compress
from typing import TYPE_CHECKING

from gateway.kernel.counters import Weight
from gateway.kernel.messages.paged_segment import DURABLE, REDELIVERED
from gateway.kernel.streams.stream import Stream

if TYPE_CHECKING:
    from gateway.kernel.messages.paged_segment import PagedSegment
    from gateway.kernel.messages.queued_message import QueuedMessage
    from gateway.kernel.queueing.queue import Queue


@dataclass(frozen=True, slots=True)
class QueueStats:
    """The messages of one queue at one moment. Messages that are held back do not count.

    ``persistent`` are those the store keeps over a restart, ready and unsettled. What consumers hold is in memory.
    ``head_timestamp_s`` is what the publisher of the oldest ready message wrote into its ``timestamp``, in seconds of
    Unix time; ``None`` if that is nothing, or the message is not in memory.
    """

    ready: Weight
    ready_in_memory: Weight
    unsettled: Weight
    persistent: Weight
    head_timestamp_s: int | None

    @property
    def all(self) -> Weight:
        """Everything there is."""
        return self.ready + self.unsettled

    @property
    def in_memory(self) -> Weight:
        """What is in memory."""
        return self.ready_in_memory + self.unsettled

    @property
    def paged_out(self) -> Weight:
        """What waits outside of memory."""
        return Weight(self.ready.count - self.ready_in_memory.count, self.ready.bytes - self.ready_in_memory.bytes)


def census_of(queue: "Queue") -> QueueStats:
    """Count the messages of a queue. Those of a stream are all in the store, whoever reads them."""
    if isinstance(queue, Stream):
        kept = Weight(len(queue), queue.size_bytes)
        return QueueStats(kept, Weight(), Weight(), kept, head_timestamp_s=None)
    resident = list(queue.ready.resident())
    persistent = chain(
        (weight_of(entry for entry in resident if entry.is_durable), queue.unsettled_durable),
        map(durable_in, queue.ready.paged()),
    )
    return QueueStats(
        ready=Weight(queue.ready.length, queue.ready.bytes),
        ready_in_memory=weight_of(resident),
        unsettled=Weight(queue.unsettled, queue.unsettled_bytes),
        persistent=sum(persistent, Weight()),
        head_timestamp_s=_timestamp_s(resident, queue.ready.paged()),
    )


def weight_of(entries: "Iterator[QueuedMessage] | list[QueuedMessage]") -> Weight:
    """Weigh messages that are in memory."""
    sizes = [len(entry.message.body) for entry in entries]
    return Weight(len(sizes), sum(sizes))


def durable_in(segment: "PagedSegment") -> Weight:
    """Weigh what the store keeps of a segment over a restart: nearly always all of it, or nothing."""
    flags = segment.flags.tobytes()
    count = len(flags) - flags.count(0) - flags.count(REDELIVERED)
    if count in (0, len(flags)):
        return Weight(count, sum(segment.body_sizes) if count else 0)
    return Weight(count, sum(compress(segment.body_sizes, (flag & DURABLE for flag in flags))))


def _timestamp_s(resident: "list[QueuedMessage]", paged: "Iterator[PagedSegment]") -> int | None:
    oldest = min(resident, key=lambda entry: entry.position, default=None)
    if oldest is None or any(segment.positions[0] < oldest.position for segment in paged):
        return None
    timestamp = oldest.message.properties.timestamp
    return None if timestamp is None else int(timestamp.timestamp())
