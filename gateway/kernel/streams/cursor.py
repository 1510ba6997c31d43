"""The read position of one consumer of a stream: reads in slices, and delivers as its credit allows."""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeAlias

from gateway.kernel.errors import StorageError
from gateway.kernel.messages.chunks import chunk_heads
from gateway.kernel.messages.message import Message
from gateway.kernel.messages.queued_message import QueuedMessage
from gateway.kernel.streams.reading import queued_messages
from gateway.kernel.streams.runs import RunSubscriber

if TYPE_CHECKING:
    from gateway.kernel.messages.contents import ContentReader
    from gateway.kernel.queueing.consumer import Consumer, Subscriber
    from gateway.kernel.streams.filters import Filter
    from gateway.kernel.streams.stream_log import StreamLog
    from gateway.kernel.streams.tail import Tail
    from gateway.kernel.streams.tracking import OffsetTracker

DeliverRun: TypeAlias = "Callable[[Consumer, Sequence[QueuedMessage]], None]"

#: The number of bytes read from the store at a time: as much as the output buffer of a fast peer takes.
READ_SIZE: Final = 256 * 1024

#: The number of bytes read that cost as much as one delivered message.
_BYTES_PER_COST: Final = 1024


class TrackedMessage(QueuedMessage):
    """An unsettled message of a consumer with offset tracking."""

    __slots__ = ("progress",)

    def __init__(self, entry: QueuedMessage, progress: "OffsetTracker") -> None:
        super().__init__(entry.message, entry.position, entry.enqueued_at_ms, True)
        self.progress = progress

    def with_message(self, message: Message) -> "TrackedMessage":
        """Return a copy with another message."""
        return TrackedMessage(super().with_message(message), self.progress)


class Cursor:
    """The read position of one consumer in a log.

    ``next_offset`` is the next message to deliver. ``wanted`` filters messages, ``progress`` tracks the consumer's
    offset; each is ``None`` if not requested. ``is_awake`` means that the cursor is scheduled already, ``is_over`` that
    the consumer was cancelled. ``unreadable`` is called for messages and chunks that are damaged; they are skipped.
    """

    __slots__ = (
        "_end",
        "_pending",
        "_read",
        "_recipient",
        "consumer",
        "deliver_run",
        "is_awake",
        "is_over",
        "log",
        "next_offset",
        "progress",
        "unreadable",
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
        unreadable: "Callable[[StorageError], None] | None" = None,
    ) -> None:
        self.consumer = consumer
        self.log = log
        self.next_offset = offset
        self.wanted = wanted
        self.progress = progress
        self.unreadable = unreadable
        self.is_awake = self.is_over = False
        self._recipient = consumer.recipient
        self.deliver_run = _run_of(consumer.recipient)
        self._read = reader
        self._pending: Iterator[QueuedMessage] = iter(())
        self._end = offset

    def deliver_next(self, budget: int) -> int:
        """Deliver messages within the consumer's credit and the budget; return the cost.

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
            if consumer.recipient is not self._recipient:
                self._recipient, self.deliver_run = consumer.recipient, _run_of(consumer.recipient)
            self.deliver_run(consumer, run)
        return cost

    @property
    def is_behind(self) -> bool:
        """Whether there are durable messages that the consumer has not been offered."""
        return self.next_offset < self.log.durable_end

    def _take(self, most: int) -> tuple[list[QueuedMessage], int]:
        """Return up to ``most`` messages and the cost. All messages read may be filtered out."""
        cost = 0
        run: list[QueuedMessage] = []
        try:
            if self.next_offset >= self._end:
                cost = self._read_on()
            run.extend(islice(self._pending, most))
        except StorageError as error:  # damaged chunks: the messages behind them, and other streams, must not wait
            if self.unreadable is None:
                raise
            self._pending, self._end = iter(()), max(self._end, self.next_offset + 1)
            self.unreadable(error)
        cost += len(run)
        self.next_offset = run[-1].position + 1 if len(run) == most else self._end
        if self.progress is not None:
            run = [TrackedMessage(entry, self.progress) for entry in run]
            for entry in run:
                self.progress.delivered(entry.position)
        return run, cost

    def _read_on(self) -> int:
        """Read the next slice of messages from ``next_offset``; return the cost."""
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
            self._pending = _from_tail(log.tail, offset, self._end, self.wanted)
            return 1
        data = log.read(offset, READ_SIZE)
        if data is None:  # another owner truncated it: nothing readable is skipped
            self._end = end
            return 1
        *_, last = chunk_heads(data)
        self._end = min(end, last.end)
        self._pending = queued_messages(data, offset, self._end, self._read, self.wanted, self.unreadable)
        return 1 + len(data) // _BYTES_PER_COST

    def _skipped(self, offset: int, wanted: "Filter") -> int:
        """Return the next offset in a segment that may hold a matching message."""
        while (segment := self.log.segment_of(offset)) is not None and not wanted.may_match(segment.bloom):
            offset = segment.end
        return offset


def _from_tail(tail: "Tail", offset: int, end: int, wanted: "Filter | None") -> Iterator[QueuedMessage]:
    """Yield messages of the tail. The iterator refers to no cursor: that would keep its connection in memory."""
    for value, entry in tail.messages(offset, end):
        if wanted is None or wanted.takes(value):
            yield entry


def _run_of(recipient: "Subscriber") -> "DeliverRun":
    """Return the function that delivers a run of messages to a recipient."""
    return recipient.deliver_run if isinstance(recipient, RunSubscriber) else _one_by_one


def _one_by_one(consumer: "Consumer", run: "Sequence[QueuedMessage]") -> None:
    """Deliver messages singly, to a subscriber that does not take runs."""
    for entry in run:
        consumer.recipient.deliver(consumer, entry.message, False, entry)
