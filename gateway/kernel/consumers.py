"""Someone a queue delivers to, how much they may hold unsettled, and whose turn it is."""

from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Protocol

from gateway.kernel.counters import Counters
from gateway.kernel.message import Arguments, Message

if TYPE_CHECKING:
    from gateway.kernel.ports import Origin
    from gateway.kernel.queue import Queue
    from gateway.kernel.queued_message import QueuedMessage


class Outlet(Protocol):
    """The way to a peer. While it is closed, its buffer being full, the peer's consumers are passed over."""

    is_open: bool


class Subscriber(Protocol):
    """The adapter's side of a consumer: an AMQP channel, an MQTT session, a STOMP subscription."""

    @property
    def origin(self) -> "Origin":
        """Where it is: for listings."""
        ...

    def deliver(self, consumer: "Consumer", message: Message, redelivered: bool, entry: "QueuedMessage | None") -> None:
        """Hand a message over. ``entry`` is to be settled later; ``None`` means that handing over settled it."""
        ...

    def cancelled(self, consumer: "Consumer") -> None:
        """The queue is gone, and the consumer with it (R98)."""
        ...


class Credit:
    """How many unsettled deliveries are allowed; a limit of 0 means any number (R84)."""

    __slots__ = ("limit", "used")

    def __init__(self, limit: int = 0, used: int = 0) -> None:
        self.limit = limit
        self.used = used

    @property
    def is_spent(self) -> bool:
        """Whether the next delivery has to wait."""
        return 0 < self.limit <= self.used


class Consumer:
    """One subscription to one queue.

    ``credit`` is its own, ``shared_credit`` the channel's where one was asked for; both bind (R85). ``is_unlimited``
    says that neither does. ``is_waiting`` says that the queue does not consider it until ``reconsider``. ``counters``
    are its subscriber's, to count deliveries in.
    """

    __slots__ = (
        "arguments",
        "counters",
        "credit",
        "deliver",
        "is_exclusive",
        "is_unlimited",
        "is_waiting",
        "needs_settling",
        "outlet",
        "priority",
        "queue",
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
    ) -> None:
        self.queue = queue
        self.tag = tag
        self.subscriber = subscriber
        self.deliver: Callable[[Consumer, Message, bool, QueuedMessage | None], None] = subscriber.deliver
        self.outlet = outlet
        self.needs_settling = needs_settling
        self.is_exclusive = is_exclusive
        self.priority = priority
        self.credit = credit or Credit()
        self.arguments: Arguments = arguments or {}
        self.counters = Counters()
        self.is_waiting = False
        self.share(shared_credit)

    def share(self, credit: Credit | None) -> None:
        """Bind it, from now on, to a credit that it has in common with others."""
        self.shared_credit = credit
        # prefetch does not apply to automatic acknowledgement (R86)
        self.is_unlimited = not self.needs_settling or (credit is None and not self.credit.limit)

    @property
    def has_credit(self) -> bool:
        """Whether its limits allow another delivery."""
        if self.is_unlimited:
            return True
        return not self.credit.is_spent and (self.shared_credit is None or not self.shared_credit.is_spent)

    @property
    def has_capacity(self) -> bool:
        """Whether the next message may be handed to it now."""
        return self.outlet.is_open and self.has_credit

    def charge(self) -> None:
        """Count one more unsettled delivery."""
        self.credit.used += 1
        if self.shared_credit is not None:
            self.shared_credit.used += 1

    def settled(self) -> None:
        """One delivery was settled: give its credit back. Who shares credit serves the sharers in turn afterwards."""
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


class Round(Protocol):
    """The consumers of one queue, and the choice among them. ``permit_exclusive``: one may ask to be the only one."""

    permit_exclusive: bool

    def __len__(self) -> int:
        """Return how many there are."""
        ...

    def __iter__(self) -> Iterator[Consumer]:
        """Iterate over all of them, in the order they came."""
        ...

    def __contains__(self, consumer: Consumer) -> bool:
        """Return whether it is one of them."""
        ...

    def is_active(self, consumer: Consumer) -> bool:
        """Return whether it gets messages while it has capacity."""
        ...

    def add(self, consumer: Consumer) -> None:
        """Let a consumer take part."""
        ...

    def remove(self, consumer: Consumer) -> None:
        """Take a consumer out for good."""
        ...

    def resume(self, consumer: Consumer) -> None:
        """Let a consumer that waited take part again."""
        ...

    def next(self) -> Consumer | None:
        """Return the consumer whose turn it is; ``None`` if nobody can take a message now."""
        ...


class Members:
    """Who takes part in a round of consumers, in the order they came."""

    __slots__ = ("_members",)

    def __init__(self) -> None:
        self._members: dict[Consumer, None] = {}

    def __len__(self) -> int:
        return len(self._members)

    def __iter__(self) -> Iterator[Consumer]:
        return iter(tuple(self._members))

    def __contains__(self, consumer: Consumer) -> bool:
        return consumer in self._members


class Consumers(Members):
    """The consumers of one queue, and whose turn it is: highest priority first, round-robin among equals (R82, R92).

    Those without capacity are out of the round until they are ``resumed``, so that finding the next one does not
    depend on how many wait.
    """

    __slots__ = ("_levels",)

    permit_exclusive = True

    def __init__(self) -> None:
        super().__init__()
        self._levels: list[tuple[int, deque[Consumer]]] = []

    def is_active(self, consumer: Consumer) -> bool:
        """Whether it gets messages while it has capacity: each of them does."""
        return consumer in self._members

    def add(self, consumer: Consumer) -> None:
        """Let a consumer take part."""
        self._members[consumer] = None
        self._round(consumer.priority).append(consumer)

    def remove(self, consumer: Consumer) -> None:
        """Take a consumer out for good."""
        del self._members[consumer]
        if not consumer.is_waiting:
            self._round(consumer.priority).remove(consumer)
        if all(member.priority != consumer.priority for member in self._members):
            self._levels = [level for level in self._levels if level[0] != consumer.priority]

    def resume(self, consumer: Consumer) -> None:
        """Let a consumer that waited take part again."""
        consumer.is_waiting = False
        self._round(consumer.priority).append(consumer)

    def next(self) -> Consumer | None:
        """Return the consumer whose turn it is, having moved it to the end of the round; ``None`` if all are busy."""
        for _, ring in self._levels:
            while ring:
                consumer = ring[0]
                if consumer.outlet.is_open and (consumer.is_unlimited or consumer.has_credit):
                    ring.rotate(-1)
                    return consumer
                ring.popleft()
                consumer.is_waiting = True
        return None

    def _round(self, priority: int) -> deque[Consumer]:
        for level, ring in self._levels:
            if level == priority:
                return ring
        ring = deque[Consumer]()
        self._levels = sorted([*self._levels, (priority, ring)], key=lambda pair: -pair[0])
        return ring
