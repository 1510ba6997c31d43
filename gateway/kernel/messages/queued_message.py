"""A message in one queue."""

from typing import Final

from gateway.kernel.compiling import mypyc_attr
from gateway.kernel.messages.message import Message

#: The enqueue time of a message that must not expire, in milliseconds: so late that no TTL ever ends.
_NEVER_MS: Final = 1 << 62


@mypyc_attr(acyclic=True, free_list_len=1)
class QueuedMessage:
    """One message in one queue, ready or unsettled.

    ``position`` orders it, ``deliveries`` counts how often it was requeued. ``is_redelivered`` means that a consumer
    may have seen it, ``is_durable`` that it is in the store as a durable message.
    """

    __slots__ = ("deliveries", "enqueued_at_ms", "is_durable", "is_redelivered", "message", "position")

    def __init__(self, message: Message, position: int, enqueued_at_ms: int, is_durable: bool) -> None:
        self.message = message
        self.position = position
        self.enqueued_at_ms = enqueued_at_ms
        self.is_durable = is_durable
        self.is_redelivered = False
        self.deliveries = 0

    def with_message(self, message: Message) -> "QueuedMessage":
        """Return a copy with another message, for a delivery that shows a changed one."""
        copy = QueuedMessage(message, self.position, self.enqueued_at_ms, self.is_durable)
        copy.is_redelivered, copy.deliveries = self.is_redelivered, self.deliveries
        return copy

    def never_expire(self) -> None:
        """Never expire: the message was sent, and its QoS 2 delivery has to be completed (MQTT-4.3.3-7)."""
        self.enqueued_at_ms = _NEVER_MS

    @property
    def never_expires(self) -> bool:
        """Whether it never expires."""
        return self.enqueued_at_ms == _NEVER_MS
