"""A message's place in one queue."""

from typing import Final

from gateway.kernel.compiling import mypyc_attr
from gateway.kernel.messages.message import Message

#: When a message came that does not expire: so late that it has always only just come, in milliseconds.
_NEVER_MS: Final = 1 << 62


@mypyc_attr(acyclic=True, free_list_len=1)
class QueuedMessage:
    """One message in one queue, waiting or unsettled.

    ``position`` orders it, ``deliveries`` counts how often it was handed out and came back, ``is_redelivered`` says
    that somebody may have seen it, ``is_durable`` that the store knows of it.
    """

    __slots__ = ("deliveries", "enqueued_at_ms", "is_durable", "is_redelivered", "message", "position")

    def __init__(self, message: Message, position: int, enqueued_at_ms: int, is_durable: bool) -> None:
        self.message = message
        self.position = position
        self.enqueued_at_ms = enqueued_at_ms
        self.is_durable = is_durable
        self.is_redelivered = False
        self.deliveries = 0

    def outlast(self) -> None:
        """Expire no more: somebody was sent it, and its exactly-once delivery is to be completed (MQTT-4.3.3-7)."""
        self.enqueued_at_ms = _NEVER_MS

    @property
    def outlasts(self) -> bool:
        """Whether it expires no more."""
        return self.enqueued_at_ms == _NEVER_MS
