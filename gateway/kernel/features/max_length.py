"""Length limits, in messages and in bytes of bodies, on the ready messages (R61-R68).

Above the limit the oldest messages are dropped, or the newest is rejected. Unacknowledged messages do not count; when
they are requeued they may exceed the limit, and the oldest messages are dropped.
"""

from sys import maxsize
from typing import TYPE_CHECKING

from gateway.kernel.features.context import FeatureContext
from gateway.kernel.features.dropping import Dropping
from gateway.kernel.messages.death_records import DeathReason
from gateway.kernel.queueing.feature import QueueFeature

if TYPE_CHECKING:
    from gateway.kernel.journal.changes import Enqueued
    from gateway.kernel.messages.message import Message
    from gateway.kernel.messages.queued_message import QueuedMessage
    from gateway.kernel.queueing.queue import Queue


def max_length(queue: "Queue", context: FeatureContext) -> QueueFeature | None:
    """Return the feature that ``overflow`` selects, if the queue has a limit (R43)."""
    length, size = queue.settings.number("max-length"), queue.settings.number("max-length-bytes")
    if length is None and size is None:
        return None
    limits = maxsize if length is None else length, maxsize if size is None else size
    match queue.settings.text("overflow"):
        case "reject-publish":
            return RejectPublish(queue, *limits)
        case "reject-publish-dlx" if not queue.stores_all:  # quorum queues drop their head instead (R75)
            return RejectPublishDeadLettering(queue, *limits)
        case _:
            return DropHead(queue, *limits, context)


class DropHead(Dropping):
    """Drops the oldest ready messages to make room (R65).

    An arriving message drops a few at once. Large numbers, as when a policy sets a limit, are dropped in slices.
    """

    def __init__(self, queue: "Queue", max_length: int, max_bytes: int, context: FeatureContext) -> None:
        super().__init__(queue, context)
        self._max_length = max_length
        self._max_bytes = max_bytes

    def attached(self) -> None:
        """Drop messages above the limit."""
        self._shrink()

    def enqueued(self, entry: "QueuedMessage") -> None:
        """Drop messages above the limit."""
        ready = self._queue.ready
        if ready.length > self._max_length or ready.bytes > self._max_bytes:
            self._shrink()

    def restored(self, change: "Enqueued") -> None:
        """Drop messages above the limit after recovery, when unacknowledged messages are ready again."""
        ready = self._queue.ready
        if (ready.length > self._max_length or ready.bytes > self._max_bytes) and self._timer is None:
            self._timer = self._clock.call_later(0, self._restored)

    def _restored(self) -> None:
        self._timer = None
        self._shrink()

    def _shrink(self) -> None:
        """Drop the oldest messages until the rest is within the limits; after a few at once, the others in slices."""
        if self._drops_few():
            self._drop_in_slices(self._clock.background.add)

    def _drops_one(self) -> bool:
        """Drop the oldest message if the queue is above a limit; return whether it was dropped."""
        ready = self._queue.ready
        if ready.length <= self._max_length and ready.bytes <= self._max_bytes:
            return False
        if ready.peek() is None:  # the content of the remaining messages is lost
            return False
        self._queue.drops.discard(ready.popleft(), DeathReason.MAXLEN)
        return True


class RejectPublish(QueueFeature):
    """Rejects messages above the limit; a publisher with confirms gets a nack (R66)."""

    def __init__(self, queue: "Queue", max_length: int, max_bytes: int) -> None:
        self._queue = queue
        self._max_length = max_length
        self._max_bytes = max_bytes

    def admit(self, message: "Message") -> DeathReason | None:
        """Reject a message that does not fit, even if a consumer waits for one, as RabbitMQ does.

        Pending dead letters count too.
        """
        ready = self._queue.ready
        if (
            ready.length + self._queue.pending_dead_letter_count >= self._max_length
            or ready.bytes + len(message.body) > self._max_bytes
        ):
            return DeathReason.MAXLEN
        return None


class RejectPublishDeadLettering(RejectPublish):
    """Rejects messages above the limit and dead-letters them (R68)."""

    def refused(self, message: "Message", reason: DeathReason) -> None:
        """Dead-letter the message."""
        self._queue.drops.drop_refused(message, reason)
