"""One consumer's place in a stream: what it is to see next, read in slices, and handed over as its credit allows."""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final

from gateway.kernel.messages.chunks import chunk_heads
from gateway.kernel.messages.queued_message import QueuedMessage
from gateway.kernel.streams.reading import queued_messages
from gateway.kernel.streams.runs import RunSubscriber

if TYPE_CHECKING:
    from gateway.kernel.messages.contents import ContentReader
    from gateway.kernel.queueing.consumer import Consumer
    from gateway.kernel.streams.filters import Filter
    from gateway.kernel.streams.stream_log import StreamLog
    from gateway.kernel.streams.tracking import OffsetTracker

#: What is read from the store at a time, in bytes; as much as the outbox of a fast peer takes at once.
READ_SIZE: Final = 256 * 1024

#: How many bytes that are read cost as much as a message that is handed over.
_BYTES_PER_COST: Final = 1024


class Followed(QueuedMessage):
    """A message with a consumer whose progress is kept."""

    __slots__ = ("progress",)

    def __init__(self, entry: QueuedMessage, progress: "OffsetTracker") -> None:
        super().__init__(entry.message, entry.position, entry.enqueued_at_ms, True)
        self.progress = progress


class Cursor:
    """Where a consumer is in a log.

    ``next_offset`` is the message it is to see next. ``wanted`` says which it sees, ``progress`` follows what it deals
    with; ``None`` where nothing of the kind was asked for. ``is_awake`` says that it is in the round already,
    ``is_over`` that the consumer is gone.
    """

    __slots__ = (
        "_end",
        "_pending",
        "_read",
        "consumer",
        "deliver_run",
        "is_awake",
        "is_over",
        "log",
        "next_offset",
        "progress",
        "wanted",
    )

    def __init__(
        self,
        consumer: "Consumer",
        log: "StreamLog",
        reader: "ContentReader",
        offset: int,
        wanted: "Filter | None" = None,
        progress: "OffsetTracker | None" = None,
    ) -> None:
        self.consumer = consumer
        self.log = log
        self.next_offset = offset
        self.wanted = wanted
        self.progress = progress
        self.is_awake = self.is_over = False
        subscriber = consumer.subscriber
        self.deliver_run: Callable[[Consumer, Sequence[QueuedMessage]], None] = (
            subscriber.deliver_run if isinstance(subscriber, RunSubscriber) else _one_by_one
        )
        self._read = reader
        self._pending: Iterator[QueuedMessage] = iter(())
        self._end = offset

    def go_on(self, budget: int) -> int:
        """Hand over what there is, as far as the consumer and the budget allow; return what it cost.

        A consumer without capacity waits until its queue ``reconsider``s it.
        """
        consumer = self.consumer
        if not consumer.has_capacity:
            consumer.wait()
            return 1
        credits = [credit for credit in (consumer.credit, consumer.shared_credit) if credit is not None]
        run, cost = self._take(min((budget, *(credit.limit - credit.used for credit in credits if credit.limit))))
        if run:
            for credit in credits:
                credit.used += len(run)
            consumer.queue.counters.deliver += len(run)
            self.deliver_run(consumer, run)
        return cost

    @property
    def is_behind(self) -> bool:
        """Whether there is something it has not been offered."""
        return self.next_offset < self.log.durable_end

    def _take(self, most: int) -> tuple[list[QueuedMessage], int]:
        """Return the next messages, ``most`` at most, and what it cost. Of those read there may be none it wants."""
        cost = 0
        if self.next_offset >= self._end:
            cost = self._read_on()
        run = list(islice(self._pending, most))
        cost += len(run)
        self.next_offset = run[-1].position + 1 if len(run) == most else self._end
        if self.progress is not None:
            run = [Followed(entry, self.progress) for entry in run]
            for entry in run:
                self.progress.handed_out(entry.position)
        return run, cost

    def _read_on(self) -> int:
        """Make the messages from ``next_offset`` on pending, as many as one slice holds; return what that cost."""
        log = self.log
        offset = max(self.next_offset, log.first)
        if self.wanted is not None:
            offset = self._skipped(offset, self.wanted)
        end = log.durable_end
        self._pending, self._end = iter(()), max(offset, self.next_offset)
        if offset >= end:
            return 1
        if log.tail.holds(offset):
            self._end = log.tail.slice_end(offset, end, READ_SIZE)
            self._pending = self._from_tail(offset)
            return 1
        data = log.read(offset, READ_SIZE)
        if data is None:  # it was truncated, but not by this log: nothing is lost that could be had
            self._end = end
            return 1
        *_, last = chunk_heads(data)
        self._end = min(end, last.end)
        self._pending = queued_messages(data, offset, self._end, self._read, self.wanted)
        return 1 + len(data) // _BYTES_PER_COST

    def _from_tail(self, offset: int) -> Iterator[QueuedMessage]:
        wanted = self.wanted
        for value, entry in self.log.tail.messages(offset, self._end):
            if wanted is None or wanted.takes(value):
                yield entry

    def _skipped(self, offset: int, wanted: "Filter") -> int:
        """Return the next offset in a segment that may hold something wanted."""
        while (segment := self.log.segment_of(offset)) is not None and not wanted.may_find(segment.bloom):
            offset = segment.end
        return offset


def _one_by_one(consumer: "Consumer", run: "Sequence[QueuedMessage]") -> None:
    """Hand messages over to a subscriber that takes no runs."""
    for entry in run:
        consumer.subscriber.deliver(consumer, entry.message, False, entry)
