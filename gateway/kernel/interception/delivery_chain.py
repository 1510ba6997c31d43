"""Calls the interceptors of a virtual host for each delivery: they stand between a queue and a subscriber."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from gateway.kernel.faults import BadAnswer, shown
from gateway.kernel.interception.call_times import CallTimes
from gateway.kernel.interception.interceptor import Interceptor
from gateway.kernel.interception.publish_chain import InterceptionContext
from gateway.kernel.messages.message import Message
from gateway.kernel.queueing.consumer import Consumer, Subscriber
from gateway.kernel.streams.runs import RunSubscriber

if TYPE_CHECKING:
    from gateway.kernel.messages.origin import Origin
    from gateway.kernel.messages.queued_message import QueuedMessage

OnDeliver: TypeAlias = "Callable[[Message, str, Origin], Message]"


class DeliveryChain:
    """The interceptors of one virtual host that inspect deliveries, in order.

    A fault of an interceptor is contained, and the message goes on as it was.
    """

    __slots__ = ("_calls", "times")

    def __init__(self, interceptors: Sequence[Interceptor], context: InterceptionContext) -> None:
        self._calls: tuple[tuple[Interceptor, OnDeliver], ...] = tuple(
            [(interceptor, interceptor.on_deliver) for interceptor in interceptors]
        )
        self.times = CallTimes(
            context.budget, context.faults, context.vhost_name, interceptors, "delivery", "on_deliver"
        )

    def intercept(self, message: Message, queue: str, origin: "Origin") -> Message:
        """Return the message to deliver: the same object if nothing changed."""
        times = self.times
        if times.is_due():
            times.begin()
            message = self._delivered(message, queue, origin)
            times.end()
            return message
        return self._delivered(message, queue, origin)

    def _delivered(self, message: Message, queue: str, origin: "Origin") -> Message:
        times = self.times
        for interceptor, on_deliver in self._calls:
            try:
                delivered = on_deliver(message, queue, origin)
                if not isinstance(delivered, Message):
                    raise BadAnswer(f"on_deliver() returned {shown(delivered)}, which is not a Message")
            except BaseException as error:  # a plugin's exception must not reach the consumer
                times.contain(interceptor, error)
                continue
            if times.is_timing:
                times.called(interceptor)
            message = delivered
        return message

    def recipient_of(self, consumer: Consumer) -> Subscriber:
        """Return what a queue delivers to: the consumer's subscriber behind the interceptors."""
        if isinstance(consumer.subscriber, RunSubscriber):
            return InterceptedRunRecipient(self, consumer.subscriber)
        return InterceptedRecipient(self, consumer.subscriber)


class InterceptedRecipient(Subscriber):
    """A subscriber whose messages pass the interceptors first."""

    __slots__ = ("_chain", "_subscriber")

    def __init__(self, chain: DeliveryChain, subscriber: Subscriber) -> None:
        self._chain = chain
        self._subscriber = subscriber

    @property
    def origin(self) -> "Origin":
        """The connection, channel and user of the subscriber."""
        return self._subscriber.origin

    def deliver(self, consumer: Consumer, message: Message, redelivered: bool, entry: "QueuedMessage | None") -> None:
        """Deliver a message as the interceptors return it. The entry keeps the message of the queue."""
        message = self._chain.intercept(message, consumer.queue.name, self._subscriber.origin)
        self._subscriber.deliver(consumer, message, redelivered, entry)

    def cancelled(self, consumer: Consumer) -> None:
        """Tell the subscriber that the queue was deleted."""
        self._subscriber.cancelled(consumer)


class InterceptedRunRecipient(InterceptedRecipient):
    """The same for a subscriber that takes several messages of a stream at once."""

    __slots__ = ("_deliver_run",)

    def __init__(self, chain: DeliveryChain, subscriber: "Subscriber") -> None:
        super().__init__(chain, subscriber)
        assert isinstance(subscriber, RunSubscriber)
        self._deliver_run = subscriber.deliver_run

    def deliver_run(self, consumer: Consumer, run: "Sequence[QueuedMessage]") -> None:
        """Deliver messages of a stream as the interceptors return them."""
        queue, origin, intercept = consumer.queue.name, self._subscriber.origin, self._chain.intercept
        changed = []
        for entry in run:
            message = intercept(entry.message, queue, origin)
            changed.append(entry if message is entry.message else entry.with_message(message))
        self._deliver_run(consumer, changed)
