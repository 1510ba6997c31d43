"""A queue that keeps its messages: each consumer reads from an offset of its own, and reading removes nothing.

To exchanges, listings and policies a stream is a queue like any other. Its messages are in a ``StreamLog``. A consumer
has a ``Cursor``, and the cursors of a virtual host read on in one ``ReadScheduler``.
"""

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from gateway.kernel.errors import NotImplementedHere, PreconditionFailed
from gateway.kernel.messages.death_records import DeathReason
from gateway.kernel.messages.message import Arguments, Message
from gateway.kernel.messages.queued_message import QueuedMessage
from gateway.kernel.queueing.consumer import Consumer
from gateway.kernel.queueing.feature import QueueFeature
from gateway.kernel.queueing.queue import DeliveryOutcome, Queue
from gateway.kernel.queueing.scheduler import ConsumerSet
from gateway.kernel.settings.max_age import age_ms
from gateway.kernel.streams.cursor import Cursor, Followed
from gateway.kernel.streams.filters import DEFAULT_BLOOM_SIZE
from gateway.kernel.streams.read_scheduler import ReadScheduler
from gateway.kernel.streams.requests import ReadRequest, request_of
from gateway.kernel.streams.stream_log import SEGMENT_SIZE, StreamLog
from gateway.kernel.streams.tracking import OffsetTracker, Tracking

if TYPE_CHECKING:
    from pathlib import Path

    from gateway.kernel.journal.changes import StreamSegment
    from gateway.kernel.journal.journal import Journal


class StreamConsumers(ConsumerSet):
    """The consumers of one stream. Nobody has to wait for another."""

    __slots__ = ()

    def is_active(self, consumer: Consumer) -> bool:
        """Whether it gets messages while it has capacity: each of them does."""
        return consumer in self._members

    def add(self, consumer: Consumer) -> None:
        """Let a consumer take part."""
        self._members[consumer] = None

    def remove(self, consumer: Consumer) -> None:
        """Take a consumer out for good."""
        del self._members[consumer]

    def resume(self, consumer: Consumer) -> None:
        """Let a consumer that waited take part again."""
        consumer.is_waiting = False

    def next(self) -> Consumer | None:
        """Return nobody: consumers are not chosen, each reads on by itself."""
        return None

    def able(self) -> list[Consumer]:
        """Return nobody, for the same reason."""
        return []

    def served(self, consumer: Consumer) -> None:
        """Do nothing: nobody's turn depends on another's."""


class Stream(Queue):
    """One stream of one virtual host. Owns its log, its consumers' cursors and the offsets stored for them.

    ``segment_size`` is what the node says of segments where neither an argument nor a policy does. Everybody in
    ``on_durable`` is called when there is more to read. Nothing in it is ever unsettled: what consumers hold is still
    among the messages that are there.
    """

    __slots__ = ("_cursor_by_consumer", "_round", "_segment_size", "log", "tracking")

    def __init__(
        self,
        vhost_name: str,
        name: str,
        journal: "Journal",
        *,
        id: int,
        arguments: Arguments | None = None,
        segment_size: int = SEGMENT_SIZE,
        reading_round: ReadScheduler | None = None,
        reapply: Callable[[Queue], None] = lambda queue: None,
    ) -> None:
        asked = arguments or {}
        bloom_size = asked.get("x-stream-filter-size-bytes", DEFAULT_BLOOM_SIZE)
        assert isinstance(bloom_size, int)  # a declaration is refused otherwise
        self._segment_size = segment_size
        self.log = StreamLog(id, journal, segment_size, bloom_size)
        self._round = reading_round or ReadScheduler(journal.clock)
        self._cursor_by_consumer: dict[Consumer, Cursor] = {}
        self.tracking = Tracking(vhost_name, name, journal)
        super().__init__(vhost_name, name, journal, id=id, is_durable=True, arguments=asked, reapply=reapply)
        self.consumers = StreamConsumers()
        self.log.on_durable.append(self.dispatch)

    # What it holds

    def __len__(self) -> int:
        """How many messages there are."""
        return len(self.log)

    @property
    def first_offset(self) -> int:
        """The offset of the first message that is still there."""
        return self.log.first

    @property
    def durable_end(self) -> int:
        """The offset below which messages are there to be read."""
        return self.log.durable_end

    @property
    def next_offset(self) -> int:
        """The offset the next message will have."""
        return self.log.end

    @property
    def segments(self) -> "list[StreamSegment]":
        """The segments in order; the last one is being written, and may be empty."""
        return self.log.segments

    @property
    def size_bytes(self) -> int:
        """About what the messages take in the store."""
        return self.log.size_bytes

    @property
    def on_durable(self) -> list[Callable[[], None]]:
        """Who is called when there is more to read."""
        return self.log.on_durable

    @property
    def disk_writes(self) -> int:
        """How many messages were written to the store: all of them."""
        return self.counters.publish

    @property
    def is_held_up(self) -> bool:
        """Whether there is more to read though somebody consumes: nobody may have another message now."""
        cursors = self._cursor_by_consumer.values()
        return bool(cursors) and all(cursor.consumer.is_waiting and cursor.is_behind for cursor in cursors)

    def read(self, offset: int, most_bytes: int) -> bytes | None:
        """Return durable chunks, the first of them with the message at ``offset``, as ``StreamLog.read`` does."""
        return self.log.read(offset, most_bytes)

    def offset_at(self, timestamp_ms: int) -> int:
        """Return the offset of the first durable message at or after this moment; ``durable_end`` if there is none."""
        return self.log.offset_at(timestamp_ms)

    def segment_path(self, first: int) -> "Path | None":
        """Return the file of the sealed segment that begins with ``first``; ``None`` while there is none."""
        return self.log.segment_path(first)

    def seal(self) -> None:
        """Complete the segment that is being written, if anything is in it."""
        self.log.seal()

    def truncate(self, first: int) -> None:
        """Let go of every sealed segment that lies whole below the offset ``first``."""
        self.log.truncate(first)

    def apply(self, features: tuple[QueueFeature, ...]) -> None:
        """Replace the features and the size of segments, as a change of policy does."""
        size = self.settings.number("stream-max-segment-size-bytes")
        self.log.segment_size = self._segment_size if size is None else size
        super().apply(features)

    # Messages in

    def offer(self, message: Message, *, has_waited: bool = False) -> DeathReason | None:
        """Take the message in. A stream refuses nobody."""
        self.counters.publish += 1
        if self._feature_dispatch.accepting:
            self._feature_dispatch.accepted(self, message, self.log.end)
        self.log.append(message)
        return None

    # Consumers

    def consume(self, consumer: Consumer) -> None:
        """Add a consumer that was made for this stream; deliveries start with the next ``dispatch``.

        It is never the only one it can be.

        :raises PreconditionFailed: without a limit of unsettled deliveries, or when an argument makes no sense.
        :raises NotImplementedHere: when it will not settle, is to share a limit, or selects: streams have filters.
        """
        if not consumer.credit.limit:
            raise PreconditionFailed(f"consumer prefetch count is not set for '{self.entity}'")
        if not consumer.needs_settling:
            raise NotImplementedHere(f"automatic acknowledgement not supported by stream queues {self.entity}")
        if consumer.shared_credit is not None:
            raise NotImplementedHere(f"{self.entity} does not support global qos")
        if consumer.selection is not None:
            raise NotImplementedHere(f"selectors are not supported by stream queues, x-stream-filter is: {self.entity}")
        request = request_of(self.entity, consumer.arguments)
        self.consumers.add(consumer)
        self._cursor_by_consumer[consumer] = self._cursor(consumer, request)
        self.log.tail.keep(True)
        self._consumed_from(consumer)

    def _cursor(self, consumer: Consumer, request: ReadRequest) -> Cursor:
        progress = None if request.name is None else OffsetTracker(self.tracking, request.name)
        return Cursor(consumer, self.log, self._journal.reader, self._offset(request), request.wanted, progress)

    def _offset(self, request: ReadRequest) -> int:
        """Return where a consumer begins; an offset that is not there stands for the end that is nearer to it."""
        log, start = self.log, request.start
        if start is None and request.name in self.tracking.offsets:
            start = self.tracking.offsets[request.name] + 1
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
        """Take a consumer away; how far it got is put down."""
        cursor = self._cursor_by_consumer.pop(consumer, None)
        if cursor is None:
            return
        cursor.is_over = True
        self.consumers.remove(consumer)
        self._consumed_less(consumer)
        self.tracking.flush()
        if not self._cursor_by_consumer:
            self.log.tail.keep(False)
        self.use()

    def dispatch(self) -> None:
        """Let everybody read on who can, in turns to come."""
        wake = self._round.wake
        for consumer, cursor in self._cursor_by_consumer.items():
            if not (cursor.is_awake or consumer.is_waiting):
                wake(cursor)

    def reconsider(self, consumer: Consumer) -> None:
        """Let a consumer that waited read on, if it has capacity."""
        if consumer.is_waiting and consumer in self.consumers and consumer.has_capacity:
            consumer.is_waiting = False
            self._round.wake(self._cursor_by_consumer[consumer])

    # Messages settled

    def accept(self, entry: QueuedMessage) -> None:
        """Conclude a delivery: the message stays, its consumer is done with it."""
        self.counters.ack += 1
        self._conclude(entry, DeliveryOutcome.ACCEPTED)

    def settle(self, entry: QueuedMessage, outcome: DeliveryOutcome) -> None:
        """Conclude a delivery. Nothing comes back: what was put back is seen again by who begins there again."""
        if outcome is DeliveryOutcome.ACCEPTED:
            self.accept(entry)
        else:
            self._conclude(entry, outcome)

    def _conclude(self, entry: QueuedMessage, outcome: DeliveryOutcome) -> None:
        if self._feature_dispatch.settling:
            self._feature_dispatch.settled(self, entry, outcome)
        if type(entry) is Followed:
            if outcome is DeliveryOutcome.REQUEUED:
                entry.progress.put_back(entry.position)
            else:
                entry.progress.dealt_with(entry.position)

    # Stored offsets

    @property
    def offsets(self) -> dict[str, int]:
        """The last message each named consumer dealt with."""
        return dict(self.tracking.offsets)

    def store_offset(self, name: str, offset: int) -> None:
        """Keep how far a consumer got: the offset of the last message it dealt with."""
        self.tracking.store(name, offset)

    def forget_offset(self, name: str) -> bool:
        """Forget a consumer; return whether its offset was kept."""
        return self.tracking.forget(name)

    @property
    def lag(self) -> dict[str, int]:
        """How many messages each named consumer has not dealt with."""
        log = self.log
        return {
            name: max(0, log.durable_end - max(offset + 1, log.first)) for name, offset in self.tracking.offsets.items()
        }

    def cursor_of(self, consumer: Consumer) -> Cursor:
        """Return the place of one of its consumers. :raises KeyError: when it is none."""
        return self._cursor_by_consumer[consumer]

    # What streams do not do

    def get(self) -> QueuedMessage | None:
        """Refuse to hand out a single message. :raises NotImplementedHere: always."""
        raise NotImplementedHere(f"basic.get not supported by stream queues {self.entity}")

    def take(self) -> QueuedMessage | None:
        """Remove nothing."""
        return None

    def emptying(self) -> Iterator[None]:
        """Refuse to let go of what is kept. :raises NotImplementedHere: always."""
        raise NotImplementedHere(f"queue.purge not supported by stream queues {self.entity}")

    def purge(self) -> int:
        """Let go of everything, once the stream is deleted.

        :raises NotImplementedHere: while it is there.
        """
        if not self.is_deleted:
            raise NotImplementedHere(f"queue.purge not supported by stream queues {self.entity}")
        self.tracking.erase()
        return self.log.erase()
