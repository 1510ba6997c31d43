"""Consumers of a queue, and the credit (prefetch) that limits their unsettled deliveries."""

from typing import TYPE_CHECKING, Final, Protocol

from gateway.kernel.compiling import mypyc_attr
from gateway.kernel.counters import Counters
from gateway.kernel.messages.message import Arguments, Message
from gateway.kernel.queueing.queue_identity import QueueIdentity
from gateway.kernel.settings.effective_settings import EffectiveSettings, effective

if TYPE_CHECKING:
    from gateway.kernel.budget import TurnBudget
    from gateway.kernel.clock import Clock
    from gateway.kernel.messages.origin import Origin
    from gateway.kernel.messages.queued_message import QueuedMessage
    from gateway.kernel.queueing.delivery_outcome import DeliveryOutcome


class Outlet:
    """The output to one peer. While it is closed, because its buffer is full, the peer's consumers get no messages."""

    __slots__ = ("is_open",)

    def __init__(self) -> None:
        self.is_open = True

    def pause(self) -> None:
        """Let the peer's consumers wait, because the turn has used up its time, and resume them in the next turn.

        One that does not end in turns stays open.
        """


@mypyc_attr(allow_interpreted_subclasses=True)
class Subscriber:
    """The adapter's side of a consumer: an AMQP channel, an MQTT session, a STOMP subscription."""

    __slots__ = ()

    @property
    def origin(self) -> "Origin":
        """The connection, channel and user of the subscriber, for listings."""
        raise NotImplementedError

    def deliver(self, consumer: "Consumer", message: Message, redelivered: bool, entry: "QueuedMessage | None") -> None:
        """Deliver a message. ``entry`` is to be settled later; ``None`` means that the delivery needs no settling."""
        raise NotImplementedError

    def cancelled(self, consumer: "Consumer") -> None:
        """Called when the queue was deleted, and the consumer with it (R98)."""
        raise NotImplementedError


class ConsumedQueue(QueueIdentity):
    """A queue or stream as its consumers and their channels see it.

    ``settings`` combines its arguments and policies; ``counters`` are its own.
    """

    __slots__ = ("counters", "is_deleted", "settings")

    def __init__(
        self,
        vhost_name: str,
        name: str,
        id: int,
        is_durable: bool,
        is_auto_delete: bool,
        owner: object | None,
        arguments: Arguments | None,
    ) -> None:
        super().__init__(vhost_name, name, id, is_durable, is_auto_delete, owner, arguments)
        self.counters = Counters()
        self.is_deleted = False
        self.settings: EffectiveSettings = effective(self.arguments)

    def __len__(self) -> int:
        """Return the number of messages that consumers may get, without the unsettled ones."""
        raise NotImplementedError

    @property
    def budget(self) -> "TurnBudget":
        """The budget of the turn."""
        raise NotImplementedError

    @property
    def clock(self) -> "Clock":
        """The clock for long work on the queue."""
        raise NotImplementedError

    @property
    def is_unused(self) -> bool:
        """Whether an auto-delete queue can be deleted: it had a consumer and the last one is gone (R32)."""
        raise NotImplementedError

    @property
    def consumer_count(self) -> int:
        """The number of consumers."""
        raise NotImplementedError

    def is_active(self, consumer: "Consumer") -> bool:
        """Return whether the consumer gets messages while it has capacity."""
        raise NotImplementedError

    def cancel(self, consumer: "Consumer") -> None:
        """Remove a consumer; its unsettled deliveries stay with it."""
        raise NotImplementedError

    def reconsider(self, consumer: "Consumer") -> None:
        """Resume a waiting consumer if it has capacity, and serve it."""
        raise NotImplementedError

    def dispatch(self) -> None:
        """Deliver messages while some consumer has capacity."""
        raise NotImplementedError

    def accept(self, entry: "QueuedMessage") -> None:
        """Settle a delivery: the message is consumed."""
        raise NotImplementedError

    def settle(self, entry: "QueuedMessage", outcome: "DeliveryOutcome") -> None:
        """Settle a delivery. A requeued message waits for the next ``dispatch``."""
        raise NotImplementedError

    def pause_dispatch(self) -> None:
        """Deliver nothing while messages are requeued in steps."""
        raise NotImplementedError

    def resume_dispatch(self) -> None:
        """Resume delivery: all messages are requeued."""
        raise NotImplementedError


class Selection(Protocol):
    """A filter on the messages that one consumer gets."""

    def wants(self, message: Message, deliveries: int, is_redelivered: bool) -> bool:
        """Return whether the consumer takes this message; ``deliveries`` counts earlier deliveries.

        Called once each time the message becomes available; never raises.
        """
        ...


class Credit:
    """The unsettled deliveries in use and their limit; a limit of 0 means unlimited (R84).

    ``is_awaited`` is set when a consumer that shares the credit waits, for any reason. The code that serves these
    consumers clears it.
    """

    __slots__ = ("is_awaited", "limit", "used")

    def __init__(self, limit: int = 0, used: int = 0) -> None:
        self.limit = limit
        self.used = used
        self.is_awaited = False

    @property
    def is_spent(self) -> bool:
        """Whether the limit is reached, so that the next delivery has to wait."""
        return 0 < self.limit <= self.used


#: The credit of all consumers without a limit of their own; nothing is counted in it.
_UNBOUNDED: Final = Credit()


class Consumer:
    """One subscription to one queue.

    ``credit`` is the consumer's own, counted only if it ``_is_bounded``; ``shared_credit`` is the channel's, if it has
    one; both limit deliveries (R85). ``is_unlimited`` means that neither does. While ``is_waiting``, the queue skips
    the consumer until ``reconsider``. ``selection`` filters messages; ``None`` takes all. ``counters`` belongs to the
    subscriber and counts deliveries. The queue delivers to ``recipient``: the subscriber, or the interceptors that
    stand before it.
    """

    __slots__ = (
        "_is_bounded",
        "arguments",
        "counters",
        "credit",
        "is_exclusive",
        "is_unlimited",
        "is_waiting",
        "needs_settling",
        "outlet",
        "priority",
        "queue",
        "recipient",
        "selection",
        "shared_credit",
        "subscriber",
        "tag",
    )

    def __init__(
        self,
        queue: ConsumedQueue,
        tag: str,
        subscriber: Subscriber,
        outlet: Outlet,
        *,
        needs_settling: bool,
        is_exclusive: bool = False,
        priority: int = 0,
        credit: Credit | None = None,
        shared_credit: Credit | None = None,
        arguments: Arguments | None = None,
        selection: Selection | None = None,
    ) -> None:
        self.queue = queue
        self.tag = tag
        self.subscriber = subscriber
        self.recipient = subscriber
        self.outlet = outlet
        self.needs_settling = needs_settling
        self.is_exclusive = is_exclusive
        self.priority = priority
        self.credit = credit or _UNBOUNDED
        self._is_bounded = needs_settling and self.credit.limit > 0  # without settling there is no own limit (R86)
        self.arguments: Arguments = arguments or {}
        self.selection = selection
        self.counters = Counters()
        self.is_waiting = False
        self.share(shared_credit)

    def share(self, credit: Credit | None) -> None:
        """Use a credit shared with other consumers from now on; ``None`` for none.

        A consumer that needs no settling uses none of it, but waits while it is spent, as in RabbitMQ.
        """
        self.shared_credit = credit
        self.is_unlimited = credit is None and not self._is_bounded

    def count(self) -> None:
        """Count this consumer's unsettled deliveries from now on, even without a limit."""
        if self.needs_settling and not self._is_bounded:
            self.credit = Credit(used=self.credit.used)
            self._is_bounded = True
            self.is_unlimited = False

    @property
    def has_credit(self) -> bool:
        """Whether its limits allow another delivery."""
        if self.is_unlimited:
            return True
        if self._is_bounded and self.credit.is_spent:
            return False
        return self.shared_credit is None or not self.shared_credit.is_spent

    @property
    def has_capacity(self) -> bool:
        """Whether the next message can be delivered now."""
        return self.outlet.is_open and self.has_credit

    def wants(self, entry: "QueuedMessage") -> bool:
        """Return whether the consumer takes a waiting message."""
        selection = self.selection
        return selection is None or selection.wants(entry.message, entry.deliveries, entry.is_redelivered)

    def wait(self) -> None:
        """Get no more messages until the queue reconsiders this consumer."""
        self.is_waiting = True
        if self.shared_credit is not None:
            self.shared_credit.is_awaited = True

    def charge(self) -> None:
        """Count one more unsettled delivery in the credit."""
        if self._is_bounded:
            self.credit.used += 1
        if self.shared_credit is not None:
            self.shared_credit.used += 1

    def settled(self) -> None:
        """Give back the credit of a settled delivery. The owner of a shared credit resumes waiting consumers later."""
        if self._is_bounded:
            self.credit.used -= 1
        if self.shared_credit is not None:
            self.shared_credit.used -= 1
        elif self.is_waiting:
            self.queue.reconsider(self)


class Resumption:
    """Resumes consumers that waited for a shared resource, starting with a different one each time.

    With a fixed start, the first consumer could use up the resource every time.
    """

    __slots__ = ("_times",)

    def __init__(self) -> None:
        self._times = 0

    def serve(self, waiting: "list[Consumer]") -> None:
        """Resume each of these consumers that has capacity now."""
        if waiting:
            self._times += 1
            start = self._times % len(waiting)
            for consumer in waiting[start:] + waiting[:start]:
                consumer.queue.reconsider(consumer)
