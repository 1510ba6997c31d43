"""Message expiry: expired messages leave the head of their queue, with or without consumers (R51-R58).

The time to live is the queue's or the message's own, whichever is shorter, counted from the arrival in *this* queue.
Both are read when they are needed, so a policy applies to waiting messages too (R56).
"""

from math import inf
from typing import TYPE_CHECKING, Final

from gateway.kernel.features.context import FeatureContext
from gateway.kernel.features.dropping import Dropping
from gateway.kernel.messages.death_records import DeathReason

if TYPE_CHECKING:
    from gateway.kernel.journal.changes import Enqueued
    from gateway.kernel.messages.queued_message import QueuedMessage
    from gateway.kernel.queueing.queue import Queue

#: The maximum delay of a timer; longer times take several timers.
LONGEST_S: Final = 86_400.0


def message_ttl(queue: "Queue", context: FeatureContext) -> "MessageTtl | None":
    """Return the feature if the queue has a time to live or one of its messages has an expiration."""
    ttl_ms = queue.settings.number("message-ttl")
    if ttl_ms is None and not queue.has_expirations:
        return None
    return MessageTtl(queue, inf if ttl_ms is None else ttl_ms, context)


class MessageTtl(Dropping):
    """Drops messages ``ttl_ms`` after their arrival, or earlier by their own expiration.

    One timer is set for the head or earlier; messages behind the head are checked only when they become the head (R54).
    While all messages have the same time to live, consuming the head leaves the timer unchanged: it then expires early,
    and is set again.
    """

    def __init__(self, queue: "Queue", ttl_ms: float, context: FeatureContext) -> None:
        super().__init__(queue, context)
        self._ttl_ms = ttl_ms
        self._varies = queue.has_expirations
        self._timer_at_ms = inf

    def attached(self) -> None:
        """Check the messages that wait already."""
        self._check_head()

    def enqueued(self, entry: "QueuedMessage") -> None:
        """Set the timer for a message, if it may be the next to expire."""
        if self._varies or entry.enqueued_at_ms + self._ttl_ms < self._timer_at_ms:
            self._check_head()

    def restored(self, change: "Enqueued") -> None:
        """Set the timer for a recovered message, from its record: the body is not read."""
        expires_at_ms = min(change.enqueued_at_ms + self._ttl_ms, change.expires_at_ms or inf)
        if expires_at_ms < self._timer_at_ms:
            self._set_timer(expires_at_ms)

    def due(self, entry: "QueuedMessage") -> DeathReason | None:
        """Prevent the delivery of an expired message (R53)."""
        lives_ms = self._ttl_ms
        own_ms = entry.message.header.expiration_ms
        if own_ms is not None and own_ms < lives_ms:
            lives_ms = float(own_ms)
        return DeathReason.EXPIRED if entry.enqueued_at_ms + lives_ms <= self._journal.now_ms else None

    def taken(self) -> None:
        """Check the next head, which may expire before the timer does."""
        if self._varies:
            self._check_head()

    def _expires_at_ms(self, entry: "QueuedMessage") -> float:
        own_ms = entry.message.header.expiration_ms
        lives_ms = self._ttl_ms if own_ms is None else min(self._ttl_ms, own_ms)
        return entry.enqueued_at_ms + lives_ms

    def _check_head(self) -> None:
        """Drop a few expired messages at the head and set the timer for the next; the rest are dropped in slices."""
        if not self._is_dropping and self._drops_few():
            self._drop_in_slices(self._clock.background.add_later)

    def _drops_one(self) -> bool:
        """Drop the head if it has expired, and return whether it has; otherwise set the timer for it."""
        head = self._queue.ready.peek()
        if head is None:
            return False
        expires_at_ms = self._expires_at_ms(head)
        if expires_at_ms > self._clock.wall_ms():
            if expires_at_ms < self._timer_at_ms:
                self._set_timer(expires_at_ms)
            return False
        self._queue.drops.discard(self._queue.ready.popleft(), DeathReason.EXPIRED)
        return True

    def _set_timer(self, at_ms: float) -> None:
        self._cancel_timer()
        self._timer_at_ms = at_ms
        if at_ms < inf:
            delay_s = max(0.0, (at_ms - self._clock.wall_ms()) / 1000)
            self._timer = self._clock.call_later(min(delay_s, LONGEST_S), self._timer_expired)

    def _timer_expired(self) -> None:
        self._timer = None
        self._timer_at_ms = inf
        self._drop_in_slices(self._clock.background.add_later)  # many timers may expire in one turn
