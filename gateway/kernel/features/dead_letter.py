"""Dead-lettering: what a queue drops is published to another exchange, with its death on record (R100-R114)."""

from typing import Final

from gateway.kernel.deaths import headers_after_death
from gateway.kernel.features.base import QueueFeature, Reason
from gateway.kernel.features.surroundings import Surroundings
from gateway.kernel.message import Header, Message, Value
from gateway.kernel.queue import Queue

#: Headers kept so that messages with equal ones die cheaply; when there are more, all are forgotten.
_MOST_HEADERS: Final = 256


def dead_letter(queue: Queue, surroundings: Surroundings) -> "DeadLetter | None":
    """Return the feature, if the queue's settings name an exchange."""
    exchange = queue.settings.text("dead-letter-exchange")
    if exchange is None:
        return None
    return DeadLetter(exchange, queue.settings.text("dead-letter-routing-key"), surroundings)


class DeadLetter(QueueFeature):
    """Sends dropped messages to ``exchange_name``, under ``routing_key`` or, without one, under their own keys (R105).

    Messages that share a header die with a shared header, as long as they die in the same second.
    """

    def __init__(self, exchange_name: str, routing_key: str | None, surroundings: Surroundings) -> None:
        self._exchange_name = exchange_name
        self._routing_key = routing_key
        self._letters = surroundings.dead_letters
        self._clock = surroundings.clock
        self._second = 0
        self._headers: dict[tuple[Header, str, str, Reason], Header] = {}

    def dropped(self, queue: Queue, message: Message, reason: Reason) -> None:
        """Publish the message again."""
        if not self._letters.is_deliverable(self._exchange_name):
            return
        key = message.routing_key if self._routing_key is None else self._routing_key
        header = self._header(queue, message, reason)
        self._letters.publish(message.restated(self._exchange_name, key, header), reason)

    def _header(self, queue: Queue, message: Message, reason: Reason) -> Header:
        second = self._clock.wall_ms() // 1000
        if second != self._second or len(self._headers) >= _MOST_HEADERS:
            self._headers.clear()
            self._second = second
        known = message.header, message.exchange, message.routing_key, reason
        header = self._headers.get(known)
        if header is None:
            changed = headers_after_death(message, queue.name, reason, second)
            header = self._headers[known] = self._rewritten(message.header, changed)
        return header

    def _rewritten(self, header: Header, changed: dict[str, Value]) -> Header:
        """Return the header with its death. A key of the queue's own takes the place of the sender's (R106)."""
        if self._routing_key is None:
            return header.edited(changed, drops_expiration=True)
        edited = header.edited(changed, without=("CC", "BCC"), drops_expiration=True)
        edited.sender_keys = ()
        return edited
