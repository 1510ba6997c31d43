"""Length limits, by number and by bytes of bodies, over the messages that wait (R61-R68).

What is over the limit: the oldest messages go, or the newest is kept out. Messages that consumers hold do not count;
when they come back they may push a queue over its limit, and then the oldest go.
"""

from sys import maxsize
from typing import TYPE_CHECKING

from gateway.kernel.features.context import FeatureContext
from gateway.kernel.features.dropping import Dropping
from gateway.kernel.messages.death_records import DeathReason
from gateway.kernel.queueing.feature import QueueFeature

if TYPE_CHECKING:
    from gateway.kernel.clock import Clock
    from gateway.kernel.journal.changes import Enqueued
    from gateway.kernel.messages.message import Message
    from gateway.kernel.messages.queued_message import QueuedMessage
    from gateway.kernel.queueing.queue import Queue


def max_length(queue: "Queue", context: FeatureContext) -> QueueFeature | None:
    """Return the feature, if the queue has a limit; of its kinds the one that ``overflow`` names (R43)."""
    length, size = queue.settings.number("max-length"), queue.settings.number("max-length-bytes")
    if length is None and size is None:
        return None
    limits = maxsize if length is None else length, maxsize if size is None else size
    match queue.settings.text("overflow"):
        case "reject-publish":
            return RejectPublish(*limits)
        case "reject-publish-dlx" if not queue.stores_all:  # quorum queues do not have it: they drop their head (R75)
            return RejectPublishDeadLettering(*limits)
        case _:
            return DropHead(*limits, context.clock)


class DropHead(Dropping):
    """Makes room by dropping the oldest waiting messages (R65).

    One that comes pushes a few out at once. Of very many, as when a policy sets a limit, the rest goes in slices.
    """

    def __init__(self, max_length: int, max_bytes: int, clock: "Clock") -> None:
        super().__init__(clock)
        self._max_length = max_length
        self._max_bytes = max_bytes

    def fitted(self, queue: "Queue") -> None:
        """Drop what is too much already."""
        self._shrink(queue)

    def enqueued(self, queue: "Queue", entry: "QueuedMessage") -> None:
        """Drop what is too much now."""
        ready = queue.ready
        if ready.length > self._max_length or ready.bytes > self._max_bytes:
            self._shrink(queue)

    def restored(self, queue: "Queue", change: "Enqueued") -> None:
        """Drop what is too much once all is there: what consumers held at the end counts again."""
        ready = queue.ready
        if (ready.length > self._max_length or ready.bytes > self._max_bytes) and self._timer is None:
            self._timer = self._clock.call_later(0, lambda: self._restored(queue))

    def _restored(self, queue: "Queue") -> None:
        self._timer = None
        self._shrink(queue)

    def _shrink(self, queue: "Queue") -> None:
        """Drop the oldest until the rest is within the limits; of very many, all but a few go in slices."""
        if self._drops_few(queue):
            self._drop_in_slices(queue, self._clock.background.add)

    def _drops_one(self, queue: "Queue") -> bool:
        """Drop the oldest message if there are too many; return whether it was."""
        ready = queue.ready
        if ready.length <= self._max_length and ready.bytes <= self._max_bytes:
            return False
        if ready.peek() is None:  # what was left had lost its content
            return False
        queue.discard_head(DeathReason.MAXLEN)
        return True


class RejectPublish(QueueFeature):
    """Keeps out what would be too much; a publisher who asked for confirms hears of it (R66)."""

    def __init__(self, max_length: int, max_bytes: int) -> None:
        self._max_length = max_length
        self._max_bytes = max_bytes

    def admit(self, queue: "Queue", message: "Message") -> DeathReason | None:
        """Refuse a message that does not fit, though somebody may be waiting for it: RabbitMQ does not ask either.

        Dead letters that nobody could take yet take room too.
        """
        ready = queue.ready
        if ready.length + queue.letters_held >= self._max_length or ready.bytes + len(message.body) > self._max_bytes:
            return DeathReason.MAXLEN
        return None


class RejectPublishDeadLettering(RejectPublish):
    """Keeps out what would be too much, and dead-letters it (R68)."""

    def refused(self, queue: "Queue", message: "Message", reason: DeathReason) -> None:
        """Have the message dead-lettered."""
        queue.drop(message, reason)
