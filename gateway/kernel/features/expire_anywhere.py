"""Expiry of messages anywhere in the queue, not only at its head (``x-expire-mode=anywhere``).

``message_ttl`` handles expiry at the head. This feature keeps a time index of the messages that have their own
expiration: one integer each, some 50 bytes. The queue's time to live needs no index, since the oldest message always
expires first; with priorities, each priority has its oldest message.
"""

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Final

from gateway.kernel.backlog.paging import Paging
from gateway.kernel.features.context import FeatureContext
from gateway.kernel.messages.death_records import DeathReason
from gateway.kernel.queueing.feature import QueueFeature

if TYPE_CHECKING:
    from gateway.kernel.clock import Timer
    from gateway.kernel.journal.changes import Enqueued
    from gateway.kernel.messages.queued_message import QueuedMessage
    from gateway.kernel.queueing.queue import Queue

#: Messages removed in one step.
_BATCH: Final = 100

#: The index is rebuilt when its stale keys outnumber the ready messages by this number.
_MOST_STALE: Final = 1000

_LONGEST_SLEEP_S: Final = 86_400.0
_POSITION_BITS: Final = 64
_POSITION_MASK: Final = (1 << _POSITION_BITS) - 1


def expire_anywhere(queue: "Queue", context: FeatureContext) -> "ExpireAnywhere | None":
    """Return the feature if the queue's settings require it."""
    if queue.settings.text("expire-mode") != "anywhere":
        return None
    return ExpireAnywhere(queue, queue.settings.number("message-ttl"), context)


class ExpireAnywhere(QueueFeature):
    """Owns the time index of one queue: expiry time and position in one integer, the earliest first.

    A consumed message leaves a stale key; the index is rebuilt when there are too many. When a policy adds the feature,
    the messages already waiting are indexed first, which reads the headers of paged messages.
    """

    def __init__(self, queue: "Queue", ttl_ms: int | None, context: FeatureContext) -> None:
        self._queue = queue
        self._ttl_ms = ttl_ms
        self._clock = context.clock
        self._paging = Paging(context.journal)
        self._journal = context.journal
        self._index: list[int] = []
        self._is_complete = False
        self._is_retired = False
        self._timer: tuple[float, Timer] | None = None

    def inherit(self, earlier: QueueFeature) -> None:
        """Take over the index of the feature that this one replaces: it does not depend on policies."""
        assert isinstance(earlier, ExpireAnywhere)
        self._index = earlier._index
        self._is_complete = earlier._is_complete

    def attached(self) -> None:
        """Index the messages that wait already."""
        if self._is_complete or not self._queue.has_expirations:
            self._is_complete = True
            self._expire()
        else:
            self._clock.background.add(self._complete())

    def detached(self) -> None:
        """Cancel the timer."""
        self._is_retired = True
        if self._timer is not None:
            self._timer[1].cancel()
            self._timer = None

    def enqueued(self, entry: "QueuedMessage") -> None:
        """Index a message by its expiry time."""
        own_ms = entry.message.header.expiration_ms
        if own_ms is not None:
            self._add_to_index(entry.enqueued_at_ms + own_ms, entry.position)
        elif self._ttl_ms is not None:
            self._set_timer_by(entry.enqueued_at_ms + self._ttl_ms)

    def restored(self, change: "Enqueued") -> None:
        """Index a recovered message by its expiry time."""
        if change.expires_at_ms:
            self._add_to_index(change.expires_at_ms, change.position)
        elif self._ttl_ms is not None:
            self._set_timer_by(change.enqueued_at_ms + self._ttl_ms)

    def _complete(self) -> Iterator[None]:
        """Index the messages that wait already, one segment per step; those in memory last."""
        for segment in list(self._queue.ready.paged()):
            if self._is_retired:
                return
            places = zip(segment.positions, segment.enqueued_at_ms, segment.content_ids, strict=True)
            contents = self._journal.contents(segment.content_ids.tolist())
            for (position, enqueued_at_ms, content_id), stored in zip(places, contents, strict=True):
                message = None if stored is None else self._paging.message(stored, content_id)
                own_ms = None if message is None else message.header.expiration_ms
                if own_ms is not None:
                    self._add_to_index(enqueued_at_ms + own_ms, position)
            yield
        for entry in self._queue.ready.resident():
            own_ms = entry.message.header.expiration_ms
            if own_ms is not None:
                self._add_to_index(entry.enqueued_at_ms + own_ms, entry.position)
        self._is_complete = True
        self._expire()

    def _add_to_index(self, at_ms: int, position: int) -> None:
        heappush(self._index, at_ms << _POSITION_BITS | position)
        if len(self._index) > 2 * self._queue.ready.length + _MOST_STALE:
            there = set(self._queue.ready.positions())
            self._index = list({key for key in self._index if key & _POSITION_MASK in there})
            heapify(self._index)
        self._set_timer_by(at_ms)

    def _set_timer_by(self, at_ms: float) -> None:
        """Set the timer to this time or earlier."""
        if self._timer is not None:
            if self._timer[0] <= at_ms:
                return
            self._timer[1].cancel()
        delay_s = max(0.0, at_ms - self._clock.wall_ms()) / 1000
        self._timer = at_ms, self._clock.call_later(min(delay_s, _LONGEST_SLEEP_S), self._timer_expired)

    def _timer_expired(self) -> None:
        self._timer = None
        self._clock.background.add_later(self._expiring())  # many timers may expire in one turn

    def _expiring(self) -> Iterator[None]:
        """Drop a batch of expired messages; the rest follow with the next timer."""
        if not self._is_retired:
            self._expire()
        yield

    def _expire(self) -> None:
        """Drop at most a batch of expired messages, and set the timer for the next one."""
        now_ms = self._clock.wall_ms()
        expired = set(self._take_expired(now_ms))
        if expired:
            self._discard(expired)
        if self._ttl_ms is not None:
            self._expire_heads(self._ttl_ms, now_ms)
        if self._index:
            self._set_timer_by(self._index[0] >> _POSITION_BITS)

    def _discard(self, expired: set[int]) -> None:
        """Discard the ready messages at these positions, except partly delivered ones, which must be completed."""
        for entry in self._queue.ready.remove(expired):
            if entry.never_expires:
                self._queue.ready.put_back(entry)
            else:
                self._queue.drops.discard(entry, DeathReason.EXPIRED)

    def _take_expired(self, now_ms: int) -> "list[int]":
        end = (now_ms + 1) << _POSITION_BITS
        taken: list[int] = []
        while self._index and self._index[0] < end and len(taken) < _BATCH:
            taken.append(heappop(self._index) & _POSITION_MASK)
        return taken

    def _expire_heads(self, ttl_ms: int, now_ms: int) -> None:
        """Drop the oldest messages of each priority that have reached the queue's time to live."""
        queue, count = self._queue, 0
        while expired := {head.position for head in queue.ready.heads() if head.enqueued_at_ms + ttl_ms <= now_ms}:
            for entry in queue.ready.remove(expired):
                queue.drops.discard(entry, DeathReason.EXPIRED)
            count += len(expired)
            if count >= _BATCH:
                self._set_timer_by(now_ms)
                return
        for head in queue.ready.heads():
            self._set_timer_by(head.enqueued_at_ms + ttl_ms)
