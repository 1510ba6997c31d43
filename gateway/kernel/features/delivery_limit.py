"""The delivery limit: a message that is returned too often is dropped, since it may crash its consumers (R113)."""

from typing import TYPE_CHECKING

from gateway.kernel.features.context import FeatureContext
from gateway.kernel.messages.death_records import DeathReason
from gateway.kernel.messages.long import Long
from gateway.kernel.messages.message import Message
from gateway.kernel.queueing.feature import QueueFeature

if TYPE_CHECKING:
    from gateway.kernel.messages.queued_message import QueuedMessage
    from gateway.kernel.queueing.queue import Queue


def delivery_limit(queue: "Queue", context: FeatureContext) -> "DeliveryLimit | None":
    """Return the feature if delivery attempts are counted for consumers; a negative limit only counts them."""
    limit = queue.settings.number("delivery-limit")
    return None if limit is None else DeliveryLimit(limit)


class DeliveryLimit(QueueFeature):
    """Drops a message that was returned more than ``limit`` times, and shows consumers the count."""

    def __init__(self, limit: int) -> None:
        self._limit = limit

    def returning(self, entry: "QueuedMessage") -> DeathReason | None:
        """Drop the message if it exceeds the limit."""
        return DeathReason.DELIVERY_LIMIT if 0 <= self._limit < entry.deliveries else None

    def shown(self, entry: "QueuedMessage", message: Message) -> Message:
        """Add the number of earlier delivery attempts to the headers."""
        header = message.header.edited({"x-delivery-count": Long(entry.deliveries)})
        return message.with_address(message.exchange, message.routing_key, header)
