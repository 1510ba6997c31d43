"""A stream keeps its messages; each consumer reads from its own offset, and reading removes nothing.

For exchanges, listings and policies a stream is like a queue. Its messages are in a ``StreamLog``. Each consumer has a
``Cursor``, and one ``ReadScheduler`` runs the cursors of a virtual host.
"""

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from gateway.kernel.errors import NotImplementedHere, PreconditionFailed, StorageError
from gateway.kernel.messages.death_records import DeathReason
from gateway.kernel.messages.message import Arguments, Message
from gateway.kernel.messages.queued_message import QueuedMessage
from gateway.kernel.queueing.consumer import Consumer
from gateway.kernel.queueing.delivery_outcome import DeliveryOutcome
from gateway.kernel.queueing.feature import QueueFeature
from gateway.kernel.queueing.queue_like import QueueLike
from gateway.kernel.queueing.scheduler import ConsumerSet
from gateway.kernel.settings.max_age import age_ms
from gateway.kernel.streams.cursor import Cursor, TrackedMessage
from gateway.kernel.streams.filters import DEFAULT_BLOOM_SIZE
from gateway.kernel.streams.groups import GroupLoads, StreamGroups
from gateway.kernel.streams.read_scheduler import ReadScheduler
from gateway.kernel.streams.requests import ReadRequest, parse_request
from gateway.kernel.streams.stream_log import SEGMENT_SIZE, StreamLog
from gateway.kernel.streams.tracking import OffsetTracker, StoredOffsets

if TYPE_CHECKING:
    from pathlib import Path

    from gateway.kernel.journal.changes import StreamSegment
    from gateway.kernel.journal.journal import Journal
    from gateway.kernel.streams.append_run import AppendRun


class StreamConsumers(ConsumerSet):
    """The consumers of one stream, which read independently of each other."""

    __slots__ = ()

    def is_active(self, consumer: Consumer) -> bool:
        """Return whether the consumer gets messages while it has capacity; each one does."""
        return consumer in self._members

    def add(self, consumer: Consumer) -> None:
        """Add a consumer."""
        self._members[consumer] = None

    def remove(self, consumer: Consumer) -> None:
        """Remove a consumer."""
        del self._members[consumer]

    def resume(self, consumer: Consumer) -> None:
        """Resume a waiting consumer."""
        consumer.is_waiting = False

    def next(self) -> Consumer | None:
        """Return ``None``: each consumer reads for itself."""
        return None

    def with_capacity(self) -> list[Consumer]:
        """Return no consumer, for the same reason."""
        return []

    def move_to_end(self, consumer: Consumer) -> None:
        """Do nothing: consumers have no order."""


class Stream(QueueLike):
    """One stream of one virtual host. Owns its log, its consumers' cursors and the stored offsets.

    ``incarnation`` tells it from an earlier or later stream of the same name; ``since_ms`` is when it was declared,
    wall time. ``segment_size`` is the node's default in bytes. The callbacks in ``on_durable`` are called when there is
    more to read. No message is ever counted as unsettled: the messages that consumers hold are still in the stream.
    """

    __slots__ = ("_cursor_by_consumer", "_groups", "_read_scheduler", "_segment_size", "incarnation", "log", "tracking")

    def __init__(
        self,
        vhost_name: str,
        name: str,
        journal: "Journal",
        *,
        id: int,
        since_ms: int = 0,
        arguments: Arguments | None = None,
        segment_size: int = SEGMENT_SIZE,
        read_scheduler: ReadScheduler | None = None,
        group_loads: GroupLoads | None = None,
    ) -> None:
        given = arguments or {}
        bloom_size = given.get("x-stream-filter-size-bytes", DEFAULT_BLOOM_SIZE)
        assert isinstance(bloom_size, int)  # the declaration checks it
        self._segment_size = segment_size
        self.incarnation = f"{since_ms}-{id}"
        self.log = StreamLog(id, journal, segment_size, bloom_size)
        self._read_scheduler = read_scheduler or ReadScheduler(journal.clock)
        self._cursor_by_consumer: dict[Consumer, Cursor] = {}
        self._groups = StreamGroups(group_loads or GroupLoads())
        self.tracking = StoredOffsets(vhost_name, name, journal)
        super().__init__(vhost_name, name, journal, StreamConsumers(), id, True, False, None, given)
        self.apply(())
        self.log.on_durable.append(self.dispatch)
        self.log.on_run.append(self._appended)

    @property
    def is_stream(self) -> bool:
        """Whether it keeps the messages that are consumed: it does."""
        return True

    # Content

    def __len__(self) -> int:
        """Return the number of messages."""
        return len(self.log)

    @property
    def first_offset(self) -> int:
        """The offset of the first message."""
        return self.log.first

    @property
    def durable_end(self) -> int:
        """The end of the durable messages, which can be read (exclusive)."""
        return self.log.durable_end

    @property
    def next_offset(self) -> int:
        """The offset of the next message."""
        return self.log.end

    @property
    def segments(self) -> "list[StreamSegment]":
        """The segments in order; the last one is being written and may be empty."""
        return self.log.segments

    @property
    def size_bytes(self) -> int:
        """The approximate size of the messages in the store."""
        return self.log.size_bytes

    @property
    def on_durable(self) -> list[Callable[[], None]]:
        """Callbacks for new durable messages."""
        return self.log.on_durable

    @property
    def disk_writes(self) -> int:
        """The number of messages written to the store: all of them."""
        return self.counters.publish

    @property
    def lacks_capacity(self) -> bool:
        """Whether all consumers have messages to read but no capacity; those of a group that wait do not count."""
        is_held = self._groups.is_held
        cursors = [cursor for consumer, cursor in self._cursor_by_consumer.items() if not is_held(consumer)]
        return bool(cursors) and all(cursor.consumer.is_waiting and cursor.is_behind for cursor in cursors)

    def read(self, offset: int, most_bytes: int) -> bytes | None:
        """Return durable chunks, beginning with the message at ``offset``, as ``StreamLog.read`` does."""
        return self.log.read(offset, most_bytes)

    def offset_at(self, timestamp_ms: int) -> int:
        """Return the offset of the first durable message at or after this time; ``durable_end`` if there is none."""
        return self.log.offset_at(timestamp_ms)

    def segment_of(self, offset: int) -> "StreamSegment | None":
        """Return the segment that holds an offset; ``None`` if the offset does not exist."""
        return self.log.segment_of(offset)

    def segment_path(self, first: int) -> "Path | None":
        """Return the file of the sealed segment that begins with ``first``; ``None`` if there is none."""
        return self.log.segment_path(first)

    def seal(self) -> None:
        """Complete the segment that is being written, unless it is empty."""
        self.log.seal()

    def truncate(self, first: int) -> None:
        """Delete every sealed segment whose offsets are all below ``first``."""
        self.log.truncate(first)

    def apply(self, features: tuple[QueueFeature, ...]) -> None:
        """Replace the features and the segment size, as on a change of policy."""
        size = self.settings.number("stream-max-segment-size-bytes")
        self.log.segment_size = self._segment_size if size is None else size
        super().apply(features)

    # Messages in

    def offer(self, message: Message, *, was_delayed: bool = False) -> DeathReason | None:
        """Append the message. A stream never refuses one.

        A message of an open step has its offset when it is appended, so the features that need it are told then.
        """
        self.counters.publish += 1
        if self._feature_dispatch.accepting:
            if self._journal.entered_step is None:
                self._feature_dispatch.accepted(message, self.log.end)
            else:
                self._feature_dispatch.accepted_early(message)
        self.log.append(message)
        return None

    def offer_run(self, messages: list[Message]) -> bool:
        """Append messages, unless a feature has to see each, or a segment ends among them."""
        if self._feature_dispatch.accepting or not self.log.append_whole(messages):
            return False
        self.counters.publish += len(messages)
        return True

    def _appended(self, run: "AppendRun") -> None:
        """Tell the features the offsets of the messages of a step."""
        if any(feature.needs_position for feature in self._feature_dispatch.accepting):
            for change in run.changes:
                self._feature_dispatch.placed(change.message, change.offset)

    def offer_due(self, message: Message) -> None:
        """Append a message that an exchange delayed."""
        self.offer(message)

    # Consumers

    def consume(self, consumer: Consumer) -> None:
        """Add a consumer created for this stream; deliveries start with the next ``dispatch``.

        It cannot be exclusive.

        :raises PreconditionFailed: without a prefetch limit, or for an invalid argument.
        :raises NotImplementedHere: for automatic acknowledgement, a shared limit or a selector: streams have filters.
        """
        if not consumer.credit.limit:
            raise PreconditionFailed(f"consumer prefetch count is not set for '{self.entity}'")
        if not consumer.needs_settling:
            raise NotImplementedHere(f"automatic acknowledgement not supported by stream queues {self.entity}")
        if consumer.shared_credit is not None:
            raise NotImplementedHere(f"{self.entity} does not support global qos")
        if consumer.selection is not None:
            raise NotImplementedHere(f"selectors are not supported by stream queues, x-stream-filter is: {self.entity}")
        request = parse_request(self.entity, consumer.arguments)
        self.consumers.add(consumer)
        cursor = self._cursor_by_consumer[consumer] = self._cursor(consumer, request)
        if request.is_grouped and request.name is not None:
            self._join(request.name, consumer, cursor.next_offset)
        self.log.tail.keep(True)
        self._consumed_from(consumer)

    def is_active(self, consumer: Consumer) -> bool:
        """Return whether the consumer gets messages while it has capacity: each but those of a group that wait."""
        return consumer in self.consumers and not self._groups.is_held(consumer)

    def _join(self, name: str, consumer: Consumer, begin: int) -> None:
        """Add a consumer to its group, in which it may have to wait."""
        self._groups.join(name, consumer, begin)
        group = self._groups.of(consumer)
        assert group is not None
        assert group.reader is not None
        if group.reader is not consumer:
            consumer.wait()
        if group.successor is consumer:
            group.reader.wait()
            self._read_next(self._groups.hand_over(group.reader))

    def _read_next(self, consumer: Consumer | None) -> None:
        """Let a consumer of a group read, after the stored offset of the group."""
        if consumer is None:
            return
        cursor = self._cursor_by_consumer[consumer]
        if not consumer.credit.used:  # a reader whose successor has left goes on
            cursor.is_over = True
            cursor = self._cursor_by_consumer[consumer] = self._cursor(
                consumer, parse_request(self.entity, consumer.arguments)
            )
        consumer.is_waiting = False
        self._read_scheduler.wake(cursor)

    def _cursor(self, consumer: Consumer, request: ReadRequest) -> Cursor:
        progress = None if request.name is None else OffsetTracker(self.tracking, request.name)
        return Cursor(
            consumer, self.log, self._journal.reader, self._offset(request), request.wanted, progress, self._unreadable
        )

    def _unreadable(self, error: StorageError) -> None:
        """Report a damaged message, which consumers skip."""
        if self._journal.on_fault is None:
            raise error
        self._journal.on_fault(error)

    def _offset(self, request: ReadRequest) -> int:
        """Return the start offset of a consumer; an offset out of range is moved to the nearer end."""
        log, start = self.log, request.start
        if (start is None or request.is_grouped) and request.name in self.tracking.offsets:
            start = self.tracking.offsets[request.name] + 1
        elif request.is_grouped and (begin := self._groups.begin_of(request.name)) is not None:
            start = begin
        if isinstance(start, datetime):
            return log.offset_at(int(start.timestamp() * 1000))
        if isinstance(start, int):
            return min(max(start, log.first), log.end)
        if start in (None, "next"):
            return log.end
        if start == "first":
            return log.first
        if start == "last":
            return max(log.first, log.durable_end - 1)
        return log.offset_at(self._journal.clock.wall_ms() - (age_ms(start) or 0))

    def cancel(self, consumer: Consumer) -> None:
        """Remove a consumer and store its offset."""
        cursor = self._cursor_by_consumer.pop(consumer, None)
        if cursor is None:
            return
        cursor.is_over = True
        self.consumers.remove(consumer)
        if self._groups.of(consumer) is not None:
            if cursor.progress is not None:
                cursor.progress.end()
            self._read_next(self._groups.leave(consumer))
        self._consumed_less(consumer)
        self.tracking.flush()
        if not self._cursor_by_consumer:
            self.log.tail.keep(False)
        self.use()

    def dispatch(self) -> None:
        """Schedule the cursor of each consumer that does not wait."""
        wake = self._read_scheduler.wake
        for consumer, cursor in self._cursor_by_consumer.items():
            if not (cursor.is_awake or consumer.is_waiting):
                wake(cursor)

    def reconsider(self, consumer: Consumer) -> None:
        """Resume a waiting consumer if it has capacity. One of a group may be replaced instead."""
        if self._groups.is_held(consumer):
            self._read_next(self._groups.hand_over(consumer))
            return
        if consumer.is_waiting and consumer in self.consumers and consumer.has_capacity:
            consumer.is_waiting = False
            self._read_scheduler.wake(self._cursor_by_consumer[consumer])

    # Messages settled

    def accept(self, entry: QueuedMessage) -> None:
        """Settle a delivery: the message stays in the stream."""
        self.counters.ack += 1
        self._conclude(entry, DeliveryOutcome.ACCEPTED)

    def settle(self, entry: QueuedMessage, outcome: DeliveryOutcome) -> None:
        """Settle a delivery. Nothing is requeued; a returned message is sent again only to a later consumer."""
        if outcome is DeliveryOutcome.ACCEPTED:
            self.accept(entry)
        else:
            self._conclude(entry, outcome)

    def _conclude(self, entry: QueuedMessage, outcome: DeliveryOutcome) -> None:
        if self._feature_dispatch.settling:
            self._feature_dispatch.settled(entry, outcome)
        if type(entry) is TrackedMessage:
            if outcome is DeliveryOutcome.REQUEUED:
                entry.progress.returned(entry.position)
            else:
                entry.progress.processed(entry.position)

    # Stored offsets

    @property
    def offsets(self) -> dict[str, int]:
        """Consumer name to the last message that it processed."""
        return dict(self.tracking.offsets)

    def store_offset(self, name: str, offset: int) -> None:
        """Store the offset of the last message that a consumer processed."""
        self.tracking.store(name, offset)

    def forget_offset(self, name: str) -> bool:
        """Delete a consumer's offset; return whether there was one."""
        return self.tracking.forget(name)

    @property
    def lag(self) -> dict[str, int]:
        """Consumer name to the number of messages that it has not processed."""
        log = self.log
        return {
            name: max(0, log.durable_end - max(offset + 1, log.first)) for name, offset in self.tracking.offsets.items()
        }

    def cursor_of(self, consumer: Consumer) -> Cursor:
        """Return the cursor of a consumer. :raises KeyError: if it is not one of this stream."""
        return self._cursor_by_consumer[consumer]

    # Deletion

    def erase(self) -> int:
        """Delete all messages and offsets of a deleted stream; return the number of messages."""
        self.tracking.erase()
        return self.log.erase()

    def flush(self) -> None:
        """Write the stored offsets: the node stops."""
        self.tracking.flush()
