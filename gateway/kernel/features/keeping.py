"""Exchanges that keep messages: each message is shown to the exchange type, and new destinations get those it chooses.

An exchange whose type is a ``KeepingType`` has an interceptor that does both. It may wrap the interceptor that delays
or deduplicates; the type sees a delayed message when it is due.
"""

from collections.abc import Callable, Iterator, Sequence
from math import inf
from typing import TYPE_CHECKING, Final, TypeGuard

from gateway.kernel.clock import drained
from gateway.kernel.events import Event
from gateway.kernel.faults import BadAnswer, shown
from gateway.kernel.features.stored_box import StoredBox
from gateway.kernel.journal.changes import Removed
from gateway.kernel.journal.records.kept import KeptRecord
from gateway.kernel.messages.message import Message
from gateway.kernel.queueing.queue_like import QueueLike
from gateway.kernel.routing.exchange import Exchange
from gateway.kernel.routing.kept_messages import KeptMessages, Room

if TYPE_CHECKING:
    from gateway.kernel.events import Events
    from gateway.kernel.faults import Faults
    from gateway.kernel.journal.journal import Journal
    from gateway.kernel.queueing.queue import Queue
    from gateway.kernel.routing.binding import Binding, Destination
    from gateway.kernel.routing.exchange_type import ExchangeType, KeepingType
    from gateway.kernel.routing.interceptor import ExchangeInterceptor

#: The methods of a ``KeepingType`` that others lack.
_METHODS: Final = ("attach", "published", "bound")

#: The largest number of messages that a destination gets in the turn in which it is bound.
MOST_AT_ONCE: Final = 256

#: Messages between two readings of the clock.
_STEP: Final = 16

#: Units of work charged for keeping a message.
_WORK: Final = 4

#: The minimum time between two reports that messages did not fit, in seconds.
_REPORT_S: Final = 60.0


def keeps(type: "ExchangeType") -> "TypeGuard[KeepingType]":
    """Return whether an exchange type keeps messages."""
    return all(callable(getattr(type, method, None)) for method in _METHODS)


class Keeping:
    """Owns the messages that the exchanges of one virtual host keep; ``room`` limits all of them together.

    ``publish`` publishes a message to an exchange.
    """

    def __init__(
        self,
        vhost_name: str,
        journal: "Journal",
        events: "Events",
        faults: "Faults",
        publish: Callable[[Exchange, Message], object],
    ) -> None:
        self.room = Room()
        self.refused = 0
        self._vhost_name = vhost_name
        self._journal = journal
        self._events = events
        self._faults = faults
        self._publish = publish
        self._boxes: dict[str, StoredBox] = {}
        self._recovered: dict[str, list[KeptRecord]] = {}
        self._reported_at_s = -inf

    def release(self) -> None:
        """Release the callback: the virtual host was deleted."""
        self._publish = lambda exchange, message: None

    def fit(self, exchange: Exchange) -> None:
        """Give an exchange its interceptor, if its type keeps messages and it has none yet."""
        if keeps(exchange.type) and not isinstance(exchange.interceptor, KeepingInterceptor):
            exchange.interceptor = KeepingInterceptor(exchange, self, exchange.interceptor)
            exchange.routes_by_key = exchange.routes_by_headers = False

    def box(self, exchange: Exchange) -> StoredBox:
        """Return the messages of an exchange."""
        box = self._boxes.get(exchange.name)
        if box is None:
            box = StoredBox(
                self._vhost_name,
                exchange.name,
                self._journal,
                self.room,
                lambda: self._not_kept(exchange),
                survives=exchange.is_durable,
            )
            self._boxes[exchange.name] = box
        return box

    def kept_by(self, exchange_name: str) -> KeptMessages:
        """Return the messages of an exchange, none if its type keeps none."""
        box = self._boxes.get(exchange_name)
        return KeptMessages() if box is None else box.kept

    def charge(self) -> None:
        """Charge the turn for keeping a message."""
        self._journal.budget.work += _WORK

    def close(self, exchange: Exchange) -> None:
        """Delete the messages of an exchange that was deleted."""
        box = self._boxes.pop(exchange.name, None)
        if box is not None:
            self._journal.clock.background.add(self._erasing(exchange.name, box))

    def _erasing(self, exchange_name: str, box: StoredBox) -> Iterator[None]:
        """Drop messages and records, except records that a new exchange of the same name has written since."""
        for number, name in enumerate(drained(box.kept.names)):
            successor = self._boxes.get(exchange_name)
            if successor is not None and name in successor.stored:
                box.stored.discard(name)
            box.kept.drop(name)
            if number % _STEP == 0:
                yield
        box.kept.release()  # cycles of objects would be garbage

    # Recovery

    def install(self, record: KeptRecord) -> None:
        """Collect a recovered message, in any order, until ``settle``."""
        self._recovered.setdefault(record.exchange, []).append(record)

    def settle(self, exchange_by_name: dict[str, Exchange]) -> None:
        """Restore the recovered messages; delete those of exchanges that no longer exist."""
        recovered, self._recovered = self._recovered, {}
        for name, records in recovered.items():
            exchange = exchange_by_name.get(name)
            if exchange is not None:
                self.box(exchange).restore(records)
            else:
                for record in records:
                    self._journal.record(Removed(record.kind, record.key))

    # New destinations

    def hand_over(self, exchange: Exchange, type: "KeepingType", binding: "Binding") -> None:
        """Give the destination of a new binding the messages that the exchange type chooses, in slices if many."""
        try:
            messages = list(type.bound(binding))
            wrong = [message for message in messages if not isinstance(message, Message)]
            if wrong:
                raise BadAnswer(f"bound() returned {shown(wrong[0])}, which is not a message")
        except BaseException as error:  # plugin code: only these messages are missing
            self.contain("bound", exchange, error)
            return
        if len(messages) > MOST_AT_ONCE:
            self._journal.clock.background.add(self._handing_over(binding.destination, messages))
        else:
            self._offer(binding.destination, messages)

    def _handing_over(self, destination: "Destination", messages: list[Message]) -> Iterator[None]:
        for first in range(0, len(messages), _STEP):
            self._offer(destination, messages[first : first + _STEP])
            yield

    def _offer(self, destination: "Destination", messages: Sequence[Message]) -> None:
        for message in messages:
            copy = message.with_routing_key(message.routing_key)  # queues count the places of a content by its object
            if isinstance(destination, Exchange):
                self._publish(destination, copy)
            elif isinstance(destination, QueueLike) and not destination.is_deleted:
                try:
                    destination.offer(copy)
                except Exception as error:  # the destination gets the other messages
                    self._faults.contain("offer", error, vhost=self._vhost_name, subject=destination.name)

    # Faults

    def contain(self, verb: str, exchange: Exchange, error: BaseException) -> None:
        """Count and report an exception of an exchange type."""
        function = getattr(type(exchange.type), verb, None)
        self._faults.contain_in_type(verb, error, self._vhost_name, exchange.name, exchange.type_name, function)

    def _not_kept(self, exchange: Exchange) -> None:
        """Count a message that did not fit, and report it."""
        self.refused += 1
        now_s = self._journal.clock.monotonic_s()
        if now_s >= self._reported_at_s + _REPORT_S:
            self._reported_at_s = now_s
            details = {"kept": self.room.count, "bytes": self.room.bytes, "refused": self.refused}
            self._events.emit(Event("kept.refused", self._vhost_name, exchange.name, details))


class KeepingInterceptor:
    """Shows each message to an exchange type that keeps some. ``inner`` is the interceptor that comes first.

    ``waiting`` is the unnamed queue of delayed messages, ``None`` if nothing is delayed.
    """

    __slots__ = ("_attached", "_exchange", "_inner", "_keeping", "waiting")

    def __init__(self, exchange: Exchange, keeping: Keeping, inner: "ExchangeInterceptor | None") -> None:
        self._exchange = exchange
        self._keeping = keeping
        self._inner = inner
        self.waiting = None if inner is None else inner.waiting
        self._attached: KeepingType | None = None
        self._type()

    def takes(self, message: Message) -> "Queue | None":
        """Return the queue that gets a message instead of its routes; ``None`` to route it, after it was kept."""
        taker = None if self._inner is None else self._inner.takes(message)
        if taker is None:
            self.keep(message)
        return taker

    def would_take(self, message: Message) -> "Queue | None":
        """Return the answer of ``takes`` without its effects, for an explanation."""
        return None if self._inner is None else self._inner.would_take(message)

    def keep(self, message: Message) -> None:
        """Let the exchange type keep a message."""
        type = self._type()
        if type is None:
            return
        self._keeping.charge()
        try:
            type.published(message)
        except BaseException as error:  # plugin code: only this message is not kept
            self._keeping.contain("published", self._exchange, error)

    def bound(self, binding: "Binding") -> None:
        """Give a new destination the messages that the exchange type chooses."""
        type = self._type()
        if type is not None:
            self._keeping.hand_over(self._exchange, type, binding)

    def close(self) -> None:
        """Delete all messages: the exchange is deleted."""
        if self._inner is not None:
            self._inner.close()
        self._keeping.close(self._exchange)
        self._exchange.interceptor = self._attached = None  # cycles of objects would be garbage

    def _type(self) -> "KeepingType | None":
        """Return the exchange's type, which may have been replaced, after it got its messages; ``None`` on a fault."""
        type = self._exchange.type
        if type is self._attached:
            return self._attached
        self._attached = None
        if keeps(type):
            try:
                type.attach(self._keeping.box(self._exchange).kept)
            except BaseException as error:  # plugin code: nothing is kept
                self._keeping.contain("attach", self._exchange, error)
            else:
                self._attached = type
        return self._attached
