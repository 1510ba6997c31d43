"""Someone a queue delivers to, and how much they may hold unsettled."""

from typing import TYPE_CHECKING, Final, Protocol

from gateway.kernel.compiling import mypyc_attr
from gateway.kernel.counters import Counters
from gateway.kernel.messages.message import Arguments, Message

if TYPE_CHECKING:
    from gateway.kernel.messages.origin import Origin
    from gateway.kernel.messages.queued_message import QueuedMessage
    from gateway.kernel.queueing.queue import Queue


class Outlet:
    """The way to a peer. While it is closed, its buffer being full, the peer's consumers are passed over."""

    __slots__ = ("is_open",)

    def __init__(self) -> None:
        self.is_open = True


@mypyc_attr(allow_interpreted_subclasses=True)
class Subscriber:
    """The adapter's side of a consumer: an AMQP channel, an MQTT session, a STOMP subscription."""

    __slots__ = ()

    @property
    def origin(self) -> "Origin":
        """Where it is: for listings."""
        raise NotImplementedError

    def deliver(self, consumer: "Consumer", message: Message, redelivered: bool, entry: "QueuedMessage | None") -> None:
        """Hand a message over. ``entry`` is to be settled later; ``None`` means that handing over settled it."""
        raise NotImplementedError

    def cancelled(self, consumer: "Consumer") -> None:
        """The queue is gone, and the consumer with it (R98)."""
        raise NotImplementedError


class Selection(Protocol):
    """Which messages of a queue a consumer wants."""

    def wants(self, message: Message, deliveries: int, is_redelivered: bool) -> bool:
        """Whether it wants this one, which was delivered so often before, and which somebody may have seen.

        Asked once for each time a message is there to be had; never raises.
        """
        ...


class Credit:
    """How many unsettled deliveries are allowed; a limit of 0 means any number (R84).

    ``is_awaited`` says that a consumer which shares it waits, for whatever reason; whoever serves those takes it back.
    """

    __slots__ = ("is_awaited", "limit", "used")

    def __init__(self, limit: int = 0, used: int = 0) -> None:
        self.limit = limit
        self.used = used
        self.is_awaited = False

    @property
    def is_spent(self) -> bool:
        """Whether the next delivery has to wait."""
        return 0 < self.limit <= self.used


#: The credit of those that have no limit of their own: nothing is counted in it.
_UNBOUNDED: Final = Credit()


class Consumer:
    """One subscription to one queue.

    ``credit`` is its own, counted only if it ``_is_bounded``, ``shared_credit`` the channel's where one was asked for;
    both bind (R85). ``is_unlimited`` says that neither does. ``is_waiting`` says that the queue does not consider it
    until ``reconsider``. ``selection`` tells what it wants, ``None`` everything. ``counters`` are its subscriber's, to
    count deliveries in.
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
        "selection",
        "shared_credit",
        "subscriber",
        "tag",
    )

    def __init__(
        self,
        queue: "Queue",
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
        self.outlet = outlet
        self.needs_settling = needs_settling
        self.is_exclusive = is_exclusive
        self.priority = priority
        self.credit = credit or _UNBOUNDED
        self._is_bounded = needs_settling and self.credit.limit > 0  # no limit of its own without settling (R86)
        self.arguments: Arguments = arguments or {}
        self.selection = selection
        self.counters = Counters()
        self.is_waiting = False
        self.share(shared_credit)

    def share(self, credit: Credit | None) -> None:
        """Bind it, from now on, to a credit that it has in common with others.

        A consumer that needs no settling uses none of it, but waits while the others have used it up, as in RabbitMQ.
        """
        self.shared_credit = credit
        self.is_unlimited = credit is None and not self._is_bounded

    def count(self) -> None:
        """Count what it holds unsettled in its credit from now on, even if that limits nothing."""
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
        """Whether the next message may be handed to it now."""
        return self.outlet.is_open and self.has_credit

    def wants(self, entry: "QueuedMessage") -> bool:
        """Whether it wants a message that waits."""
        selection = self.selection
        return selection is None or selection.wants(entry.message, entry.deliveries, entry.is_redelivered)

    def wait(self) -> None:
        """Take part no more until the queue reconsiders it."""
        self.is_waiting = True
        if self.shared_credit is not None:
            self.shared_credit.is_awaited = True

    def charge(self) -> None:
        """Count one more unsettled delivery."""
        if self._is_bounded:
            self.credit.used += 1
        if self.shared_credit is not None:
            self.shared_credit.used += 1

    def settled(self) -> None:
        """One delivery was settled: give its credit back. Who shares credit serves the sharers in turn afterwards."""
        if self._is_bounded:
            self.credit.used -= 1
        if self.shared_credit is not None:
            self.shared_credit.used -= 1
        elif self.is_waiting:
            self.queue.reconsider(self)


class Resumption:
    """Serves consumers that waited for something they have in common, another one first each time.

    Beginning with the same one would let it take all there is again and again.
    """

    __slots__ = ("_times",)

    def __init__(self) -> None:
        self._times = 0

    def serve(self, waiting: "list[Consumer]") -> None:
        """Let each of them take part again if it has capacity now."""
        if waiting:
            self._times += 1
            start = self._times % len(waiting)
            for consumer in waiting[start:] + waiting[:start]:
                consumer.queue.reconsider(consumer)
