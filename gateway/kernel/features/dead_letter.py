"""Dead-lettering: dropped messages are published to another exchange, with the death in their headers (R100-R114)."""

from collections.abc import Callable, Collection
from functools import partial
from typing import Final

from gateway.kernel.features.context import FeatureContext
from gateway.kernel.messages.death_records import DeathReason, headers_after_death, last_reason
from gateway.kernel.messages.message import Header, Message, Value
from gateway.kernel.messages.queued_message import QueuedMessage
from gateway.kernel.queueing.consumer import ConsumedQueue
from gateway.kernel.queueing.feature import QueueFeature
from gateway.kernel.queueing.pending_dead_letters import PENDING_DEAD_LETTER
from gateway.kernel.queueing.queue import Queue
from gateway.kernel.routing.dead_letter_publisher import OnOffered

#: Cached headers of dead letters, so that messages with equal headers are cheap; when it is full, the cache is cleared.
_MOST_HEADERS: Final = 256


def dead_letter(queue: Queue, context: FeatureContext) -> "DeadLetter | None":
    """Return the feature if the queue's settings name an exchange."""
    exchange = queue.settings.text("dead-letter-exchange")
    if exchange is None:
        return None
    # classic queues do not support it (R112)
    is_at_least_once = queue.stores_all and queue.settings.text("dead-letter-strategy") == "at-least-once"
    return DeadLetter(
        queue, exchange, queue.settings.text("dead-letter-routing-key"), context, is_at_least_once=is_at_least_once
    )


class DeadLetter(QueueFeature):
    """Publishes dropped messages to ``exchange_name``, with ``routing_key`` or, without one, their own keys (R105).

    Messages with a common header that die in the same second share the new header. With the at-least-once strategy
    (``is_at_least_once``) a dead letter that a queue did not accept is kept and retried, unless the message was dropped
    because of a length limit.
    """

    def __init__(
        self,
        queue: Queue,
        exchange_name: str,
        routing_key: str | None,
        context: FeatureContext,
        *,
        is_at_least_once: bool = False,
    ) -> None:
        self._queue = queue
        self._is_at_least_once = is_at_least_once
        self._exchange_name = exchange_name
        self._routing_key = routing_key
        self._letters = context.dead_letters
        self._clock = context.clock
        self._second = 0
        self._headers: dict[tuple[Header, str, str, DeathReason], Header] = {}

    def attached(self) -> None:
        """Set how pending dead letters are sent, whichever strategy stored them."""
        if self._is_at_least_once or self._queue.delayed is not None:
            self._queue.ensure_delayed()
            self.holding()

    def holding(self) -> None:
        """Set how pending dead letters are sent. One that is sent at most once waits for no exchange."""
        held = self._queue.ensure_delayed().dead_letters
        held.send = self._send_again
        held.is_blocked = lambda: self._is_at_least_once and not self._letters.is_deliverable(self._exchange_name)

    def detached(self) -> None:
        """Stop dead-lettering."""
        if self._queue.delayed is not None:
            self._queue.delayed.dead_letters.send = None

    def postponer(self, message: Message) -> "Callable[[Callable[[], None]], None] | None":
        """Postpone a drop if the dead letter goes to very many queues, or this turn has published many."""
        key = message.routing_key if self._routing_key is None else self._routing_key
        return self._letters.postponer(self._exchange_name, key, message)

    def dropped(self, message: Message, reason: DeathReason) -> None:
        """Publish a dead letter for the message."""
        letter = self._letter(message, reason)
        if letter is not None:
            self._publish(letter, reason)

    def kept_out(self, message: Message, reason: DeathReason) -> None:
        """Publish a dead letter for a message that never was in the queue, in later turns if it is much work.

        It is then stored like a pending one, in the step of its message: a crash may not lose a letter whose publisher
        got a confirm.
        """
        letter = self._letter(message, reason)
        if letter is None:
            return
        if self._letters.postponer(letter.exchange, letter.routing_key, message) is None:
            self._publish(letter, reason)
        else:
            entry = self._queue.enter(letter, PENDING_DEAD_LETTER)
            self._letters.postpone_in_slices(partial(self._publish_entered, entry, reason))

    def _publish_entered(self, entry: QueuedMessage, reason: DeathReason) -> None:
        """Publish a letter that was stored with its queue meanwhile."""
        letter = entry.message
        self._queue.forget(entry)
        self._publish(letter, reason)

    def _letter(self, message: Message, reason: DeathReason) -> Message | None:
        """Return the dead letter of a message, and count it; ``None`` if its exchange does not exist."""
        if not self._holds(reason) and not self._letters.is_deliverable(self._exchange_name):
            return None
        strategy = "at_least_once" if self._is_at_least_once else "at_most_once"
        self._letters.count(self._queue.type_name, strategy, reason.value)
        key = message.routing_key if self._routing_key is None else self._routing_key
        return message.with_address(self._exchange_name, key, self._header(message, reason))

    def _holds(self, reason: DeathReason) -> bool:
        """Return whether a letter that a queue does not accept is kept."""
        return self._is_at_least_once and reason is not DeathReason.MAXLEN and not self._queue.is_deleted

    def _publish(self, letter: Message, reason: DeathReason) -> None:
        if not self._holds(reason):
            self._letters.publish(letter, reason)
            return
        held = self._queue.ensure_delayed().dead_letters
        self._letters.publish(letter, reason, (), lambda takers: None if takers is None else held.hold(letter, takers))

    def _send_again(self, letter: Message, takers: "Collection[ConsumedQueue]", on_offered: OnOffered) -> None:
        """Publish a pending dead letter with the current settings; with at-most-once this is the last attempt.

        A letter for very many queues is published in later turns.
        """
        key = letter.routing_key if self._routing_key is None else self._routing_key
        if (letter.exchange, letter.routing_key) != (self._exchange_name, key):
            letter = letter.with_address(self._exchange_name, key, letter.header)
        end = on_offered if self._is_at_least_once else lambda _: on_offered(None)
        publish = partial(self._letters.publish, letter, last_reason(letter.headers), takers, end)
        postpone = self._letters.postponer(letter.exchange, letter.routing_key, letter)
        if postpone is None:
            publish()
        else:
            postpone(partial(_ended, publish, partial(on_offered, takers)))

    def _header(self, message: Message, reason: DeathReason) -> Header:
        second = self._clock.wall_ms() // 1000
        if second != self._second or len(self._headers) >= _MOST_HEADERS:
            self._headers.clear()
            self._second = second
        known = message.header, message.exchange, message.routing_key, reason
        header = self._headers.get(known)
        if header is None:
            changed = headers_after_death(message, self._queue.name, reason, second)
            header = self._headers[known] = self._rewritten(message.header, changed)
        return header

    def _rewritten(self, header: Header, changed: dict[str, Value]) -> Header:
        """Return the header with the death added. The queue's routing key replaces CC and BCC (R106)."""
        if self._routing_key is None:
            return header.edited(changed, drops_expiration=True)
        edited = header.edited(changed, without=("CC", "BCC"), drops_expiration=True)
        edited.sender_keys = ()
        return edited


def _ended(publish: Callable[[], None], on_fault: Callable[[], None]) -> None:
    """Publish a postponed letter; call ``on_fault`` if an exception prevents that, so that the letter is kept."""
    try:
        publish()
    except Exception:
        on_fault()
        raise
