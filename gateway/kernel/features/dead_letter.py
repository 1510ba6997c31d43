"""Dead-lettering: dropped messages are published to another exchange, with the death in their headers (R100-R114)."""

from collections.abc import Callable, Collection
from functools import partial
from typing import Final

from gateway.kernel.caches import remember
from gateway.kernel.features.context import FeatureContext
from gateway.kernel.messages.death_records import (
    MAXLEN,
    DeathReason,
    deaths_of,
    headers_after_death,
    last_reason,
    shows_no_death,
)
from gateway.kernel.messages.message import Header, HeaderEdit, Message, Value
from gateway.kernel.messages.queued_message import QueuedMessage
from gateway.kernel.queueing.consumer import ConsumedQueue
from gateway.kernel.queueing.feature import QueueFeature
from gateway.kernel.queueing.pending_dead_letters import PENDING_DEAD_LETTER
from gateway.kernel.queueing.queue import Queue
from gateway.kernel.routing.dead_letter_publisher import OnOffered

#: Cached headers of dead letters, and edits of headers; a cache that is full is cleared.
_MOST_KEPT: Final = 256

#: Longer headers, in bytes, are not cached: they seldom repeat.
_LONGEST_KEPT: Final = 512


class Death:
    """The header of a dead letter, and the deaths that it shows."""

    __slots__ = ("deaths", "header")

    def __init__(self, header: Header, deaths: list[Value]) -> None:
        self.header = header
        self.deaths = deaths


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

    What repeats is kept for a second, which is the precision of the time of a death: the new header of messages with a
    common one, and the edit that makes it, for messages with headers of their own and a common address.

    With the at-least-once strategy (``is_at_least_once``) a dead letter that a queue did not accept is kept and
    retried, unless the message was dropped because of a length limit.
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
        self._journal = context.journal
        self._strategy = "at_least_once" if is_at_least_once else "at_most_once"
        self._second = 0
        self._deaths: dict[tuple[Header, str, str, str], Death] = {}
        self._first_edits: dict[tuple[str, str, str], HeaderEdit] = {}

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
        if self._is_sent(reason):
            death = self._death(message, reason)
            self._publish(self._letter(message, death), reason, death.deaths)

    def kept_out(self, message: Message, reason: DeathReason) -> None:
        """Publish a dead letter for a message that never was in the queue, in later turns if it is much work.

        It is then stored like a pending one, in the step of its message: a crash may not lose a letter whose publisher
        got a confirm.
        """
        if not self._is_sent(reason):
            return
        death = self._death(message, reason)
        letter = self._letter(message, death)
        if self._letters.postponer(letter.exchange, letter.routing_key, message) is None:
            self._publish(letter, reason, death.deaths)
        else:
            entry = self._queue.enter(letter, PENDING_DEAD_LETTER)
            self._letters.postpone_in_slices(partial(self._publish_entered, entry, reason))

    def _publish_entered(self, entry: QueuedMessage, reason: DeathReason) -> None:
        """Publish a letter that was stored with its queue meanwhile."""
        letter = entry.message
        self._queue.forget(entry)
        self._publish(letter, reason, deaths_of(letter.headers))

    def _is_sent(self, reason: DeathReason) -> bool:
        """Return whether a dead letter is published, and count it; it is not if its exchange does not exist."""
        if not self._holds(reason) and not self._letters.is_deliverable(self._exchange_name):
            return False
        self._letters.count(self._queue.type_name, self._strategy, reason.wire_name)
        return True

    def _letter(self, message: Message, death: Death) -> Message:
        """Return the dead letter of a message."""
        key = message.routing_key if self._routing_key is None else self._routing_key
        return message.with_address(self._exchange_name, key, death.header)

    def _holds(self, reason: DeathReason) -> bool:
        """Return whether a letter that a queue does not accept is kept."""
        return self._is_at_least_once and reason is not MAXLEN and not self._queue.is_deleted

    def _publish(self, letter: Message, reason: DeathReason, deaths: list[Value]) -> None:
        if self._holds(reason):
            self._publish_safely(letter, reason, deaths)
        else:
            self._letters.publish(letter, reason, deaths)

    def _publish_safely(self, letter: Message, reason: DeathReason, deaths: list[Value]) -> None:
        """Publish a letter that is kept if a queue does not accept it."""
        held = self._queue.ensure_delayed().dead_letters
        hold: OnOffered = lambda takers: None if takers is None else held.hold(letter, takers)  # noqa: E731
        self._letters.publish(letter, reason, deaths, (), hold)

    def _send_again(self, letter: Message, takers: "Collection[ConsumedQueue]", on_offered: OnOffered) -> None:
        """Publish a pending dead letter with the current settings; with at-most-once this is the last attempt.

        A letter for very many queues is published in later turns.
        """
        key = letter.routing_key if self._routing_key is None else self._routing_key
        if (letter.exchange, letter.routing_key) != (self._exchange_name, key):
            letter = letter.with_address(self._exchange_name, key, letter.header)
        end = on_offered if self._is_at_least_once else lambda _: on_offered(None)
        headers = letter.headers
        publish = partial(self._letters.publish, letter, last_reason(headers), deaths_of(headers), takers, end)
        postpone = self._letters.postponer(letter.exchange, letter.routing_key, letter)
        if postpone is None:
            publish()
        else:
            postpone(partial(_ended, publish, partial(on_offered, takers)))

    def _death(self, message: Message, reason: DeathReason) -> Death:
        """Return the header of a message's dead letter, with its deaths."""
        second = self._journal.now_ms // 1000
        if second != self._second:
            self._deaths.clear()
            self._first_edits.clear()
            self._second = second
        known = message.header, message.exchange, message.routing_key, reason.wire_name
        death = self._deaths.get(known)
        if death is None:
            edit = self._edit(message, reason)
            header = message.header.after(edit)
            if self._routing_key is not None:
                header.sender_keys = ()
            death = Death(header, deaths_of(edit.headers))
            if len(message.header.raw) <= _LONGEST_KEPT:
                remember(self._deaths, known, death, _MOST_KEPT)
        return death

    def _edit(self, message: Message, reason: DeathReason) -> HeaderEdit:
        """Return the edit of a message's header. The queue's routing key replaces CC and BCC (R106)."""
        is_first = shows_no_death(message.header)
        known = message.exchange, message.routing_key, reason.wire_name
        edit = self._first_edits.get(known) if is_first else None
        if edit is None:
            changed = headers_after_death(message, self._queue.name, reason, self._second)
            without = () if self._routing_key is None else ("CC", "BCC")
            edit = HeaderEdit(changed, without, drops_expiration=True)
            if is_first:
                remember(self._first_edits, known, edit, _MOST_KEPT)
        return edit


def _ended(publish: Callable[[], None], on_fault: Callable[[], None]) -> None:
    """Publish a postponed letter; call ``on_fault`` if an exception prevents that, so that the letter is kept."""
    try:
        publish()
    except Exception:
        on_fault()
        raise
