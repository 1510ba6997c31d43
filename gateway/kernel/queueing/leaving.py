"""The end of a client's consumers: they are cancelled, and what they hold is requeued; in slices if they are many."""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Final

from gateway.kernel.clock import drained
from gateway.kernel.queueing.consumer import Consumer, Outlet, Subscriber
from gateway.kernel.queueing.ledger import requeue_all, requeuing_steps
from gateway.kernel.untracked import untracked

if TYPE_CHECKING:
    from gateway.kernel.messages.message import Message
    from gateway.kernel.messages.origin import Origin
    from gateway.kernel.messages.queued_message import QueuedMessage
    from gateway.kernel.queueing.ledger import Delivery

#: The largest number of consumers that are cancelled at once: each takes about ten microseconds.
MOST_CANCELLED: Final = 128

#: Consumers between two readings of the clock.
_STEP: Final = 16

_CLOSED: Final = Outlet()
_CLOSED.is_open = False


class DepartedSubscriber(Subscriber):
    """Stands for a client that is gone, or whose channel is closed, until its consumers are cancelled."""

    __slots__ = ("_origin",)

    def __init__(self, origin: "Origin") -> None:
        self._origin = origin

    @property
    def origin(self) -> "Origin":
        """The client's connection, channel and user."""
        return self._origin

    def deliver(self, consumer: Consumer, message: "Message", redelivered: bool, entry: "QueuedMessage | None") -> None:
        """Raise an error: a consumer whose outlet is closed gets no messages."""
        raise NotImplementedError

    def cancelled(self, consumer: Consumer) -> None:
        """Do nothing: the client is gone."""


def leave(consumers: list[Consumer], deliveries: "Iterator[list[Delivery]]", end: Callable[[Consumer], None]) -> None:
    """Cancel all consumers of a channel, requeue their deliveries at their old positions, then ``end`` each consumer.

    Many are cancelled in later turns. Until then they get no messages, though their queues still count them. The
    ``deliveries`` come in parts; if they are many, they too are read in later turns.
    """
    if not consumers or (len(consumers) <= MOST_CANCELLED and not consumers[0].queue.budget.is_spent()):
        for consumer in consumers:
            consumer.queue.cancel(consumer)
        requeue_all(deliveries)
        for consumer in consumers:
            end(consumer)
        return
    subscriber = DepartedSubscriber(consumers[0].subscriber.origin)
    for consumer in consumers:
        consumer.outlet, consumer.subscriber, consumer.recipient = _CLOSED, subscriber, subscriber
    consumers[0].queue.clock.background.add_later(_leaving(consumers, deliveries, end))


def _leaving(
    consumers: list[Consumer], deliveries: "Iterator[list[Delivery]]", end: Callable[[Consumer], None]
) -> Iterator[None]:
    for first in range(0, len(consumers), _STEP):
        for consumer in islice(consumers, first, first + _STEP):
            consumer.queue.cancel(consumer)
        yield
    yield from requeuing_steps(deliveries, untracked([]))
    for consumer in drained(consumers):
        end(consumer)
        yield
