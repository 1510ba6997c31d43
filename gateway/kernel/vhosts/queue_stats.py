"""Statistics of a queue, computed on request: messages and bytes in memory and on disk.

The kernel maintains few counters per message. The rest is computed from the messages in memory, some tens of thousands
at most (0.1 µs each), and the columns of paged segments, some two microseconds for 500 messages.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, compress
from typing import TYPE_CHECKING

from gateway.kernel.counters import Weight
from gateway.kernel.messages.paged_segment import DURABLE, REDELIVERED
from gateway.kernel.queueing.queue import Queue
from gateway.kernel.streams.stream import Stream

if TYPE_CHECKING:
    from gateway.kernel.messages.paged_segment import PagedSegment
    from gateway.kernel.messages.queued_message import QueuedMessage
    from gateway.kernel.queueing.queue_like import QueueLike


@dataclass(frozen=True, slots=True)
class QueueStats:
    """The messages of one queue at one moment, without delayed ones.

    ``persistent`` are those that survive a restart, ready and unacknowledged. Unacknowledged messages are in memory.
    ``head_timestamp_s`` is the ``timestamp`` property of the oldest ready message, in seconds of Unix time; ``None`` if
    it has none or is not in memory.
    """

    ready: Weight
    ready_in_memory: Weight
    unsettled: Weight
    persistent: Weight
    head_timestamp_s: int | None

    @property
    def all(self) -> Weight:
        """All messages."""
        return self.ready + self.unsettled

    @property
    def in_memory(self) -> Weight:
        """The messages in memory."""
        return self.ready_in_memory + self.unsettled

    @property
    def paged_out(self) -> Weight:
        """The messages that are only on disk."""
        return Weight(self.ready.count - self.ready_in_memory.count, self.ready.bytes - self.ready_in_memory.bytes)


def stats_of(queue: "QueueLike") -> QueueStats:
    """Compute the statistics of a queue. All messages of a stream are in the store."""
    if not isinstance(queue, Queue):
        kept = Weight(len(queue), queue.size_bytes if isinstance(queue, Stream) else 0)
        return QueueStats(kept, Weight(), Weight(), kept, head_timestamp_s=None)
    resident = list(queue.ready.resident())
    persistent = chain(
        (weight_of(entry for entry in resident if entry.is_durable), queue.held.durable),
        map(durable_in, queue.ready.paged()),
    )
    return QueueStats(
        ready=Weight(queue.ready.length, queue.ready.bytes),
        ready_in_memory=weight_of(resident),
        unsettled=queue.held.all,
        persistent=sum(persistent, Weight()),
        head_timestamp_s=_timestamp_s(resident, queue.ready.paged()),
    )


def weight_of(entries: "Iterator[QueuedMessage] | list[QueuedMessage]") -> Weight:
    """Return number and size of messages in memory."""
    sizes = [len(entry.message.body) for entry in entries]
    return Weight(len(sizes), sum(sizes))


def durable_in(segment: "PagedSegment") -> Weight:
    """Return number and size of the persistent messages of a segment: nearly always all of them, or none."""
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
