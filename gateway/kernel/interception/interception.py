"""The interceptors of one virtual host, between its publishers, its queues and its consumers."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from gateway.kernel.clock import drained
from gateway.kernel.interception.delivery_chain import DeliveryChain
from gateway.kernel.interception.interceptor import Interceptor, Refusal
from gateway.kernel.interception.publish_chain import InterceptionContext, PublishChain, publish_chain

if TYPE_CHECKING:
    from gateway.kernel.clock import Clock
    from gateway.kernel.messages.message import Message
    from gateway.kernel.messages.origin import Origin
    from gateway.kernel.queueing.queue_like import QueueLike


class Interception:
    """Owns the chains of interceptors: ``publishing`` and ``delivering`` are ``None`` while none inspects these.

    Adapters ask ``publishing_to`` when they resolve a target again, which ``changed`` makes all of them do. Queues
    deliver to a ``recipient`` of each consumer. So neither costs anything per message while there is no interceptor.
    """

    def __init__(
        self,
        context: InterceptionContext,
        clock: "Clock",
        has_exchange: Callable[[str], bool],
        queues: "Sequence[Mapping[str, QueueLike]]",
        changed: Callable[[], None],
    ) -> None:
        self.publishing: PublishChain | None = None
        self.delivering: DeliveryChain | None = None
        self._context = context
        self._clock = clock
        self._has_exchange = has_exchange
        self._queues = queues
        self._changed = changed

    def release(self) -> None:
        """Release the callback: the virtual host was deleted."""
        self._changed = lambda: None

    def apply(self, interceptors: Sequence[Interceptor]) -> None:
        """Use these interceptors for all later publishes, and for the deliveries of each queue from now on.

        If there are very many queues, some of them follow in later turns.
        """
        publishing = _overriding(interceptors, "on_publish")
        delivering = _overriding(interceptors, "on_deliver")
        self.publishing = publish_chain(publishing, self._context, self._has_exchange) if publishing else None
        if delivering or self.delivering is not None:
            self.delivering = DeliveryChain(delivering, self._context) if delivering else None
            self._clock.background.add(self._watching_all())
        self._changed()

    def watch(self, queue: "QueueLike") -> None:
        """Put the interceptors before the present and later consumers of a queue."""
        delivering = self.delivering
        queue.recipient_of = None if delivering is None else delivering.recipient_of
        for consumer in queue.consumers:
            consumer.recipient = consumer.subscriber if delivering is None else delivering.recipient_of(consumer)

    def publishing_to(self, exchange: str, routing_key: str) -> PublishChain | None:
        """Return the interceptors that inspect publishes to an exchange with a routing key; ``None`` without one."""
        chain = self.publishing_to_exchange(exchange)
        return None if chain is None else chain.for_key(routing_key)

    def publishing_to_exchange(self, exchange: str) -> PublishChain | None:
        """Return the interceptors that inspect publishes to an exchange, with some routing keys at least."""
        return None if self.publishing is None else self.publishing.for_exchange(exchange)

    def published(self, message: "Message", origin: "Origin") -> "Message":
        """Return the message to publish, whose exchange exists. :raises Refused: if an interceptor refuses it."""
        chain = self.publishing_to(message.exchange, message.routing_key)
        published = message if chain is None else chain.intercept(message, origin)
        if isinstance(published, Refusal):
            raise published.error()
        return published

    def delivered(self, message: "Message", queue: str, origin: "Origin") -> "Message":
        """Return the message as a client gets it that fetches it without a consumer."""
        return message if self.delivering is None else self.delivering.intercept(message, queue, origin)

    def _watching_all(self) -> Iterator[None]:
        for queue in drained(list(chain.from_iterable(queues.values() for queues in self._queues))):
            self.watch(queue)
            yield


def _overriding(interceptors: Sequence[Interceptor], method: str) -> list[Interceptor]:
    """Return the interceptors that override a method of ``Interceptor``."""
    default = getattr(Interceptor, method)
    return [each for each in interceptors if getattr(type(each), method, None) is not default]
