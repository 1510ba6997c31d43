"""The queue or exchange that gets the messages of a move or copy."""

from typing import TYPE_CHECKING, Final, Protocol

from gateway.kernel.messages.message import Message
from gateway.kernel.queueing.queue_like import QueueLike
from gateway.kernel.routing.exchange import MOST_QUEUES, Exchange, Route
from gateway.kernel.vhosts.verdict import Verdict
from gateway.kernel.vhosts.virtual_host import VirtualHost

if TYPE_CHECKING:
    from gateway.kernel.journal.journal import Journal


#: The header with the queue where a message was dead-lettered first.
_FIRST_QUEUE: Final = "x-first-death-queue"


def origin_of(message: Message) -> str:
    """Return the name of the queue where a message was dead-lettered first; empty if it never was."""
    name = message.headers.get(_FIRST_QUEUE)
    return name if isinstance(name, str) else ""


class Target(Protocol):
    """Takes messages. Interceptors and tracers are not called, as for dead letters."""

    @property
    def queue(self) -> QueueLike | None:
        """The queue, if there is only one: then an action can be undone."""
        ...

    def refusal(self, message: Message) -> str:
        """Return why the message cannot be put there; empty if it can."""
        ...

    def put(self, message: Message) -> int | None:
        """Put a message there; return its position, 0 if it is not known, or ``None`` if it was refused after all."""
        ...


class QueueTarget:
    """A queue or stream. With ``was_delayed`` it delays no message, as for messages that were delayed before."""

    def __init__(self, queue: QueueLike, journal: "Journal", *, was_delayed: bool = False) -> None:
        self.queue: QueueLike | None = queue
        self._queue = queue
        self._journal = journal
        self._was_delayed = was_delayed

    def refusal(self, message: Message) -> str:
        """Return why the queue does not take the message; empty if it does."""
        if self._queue.is_deleted:
            return f"queue '{self._queue.name}' was deleted"
        reason = self._queue.refusal_of(message)
        return "" if reason is None else f"queue '{self._queue.name}' refuses the message: {reason.value}"

    def put(self, message: Message) -> int | None:
        """Offer the message to the queue; a consumer may get it at once."""
        before = self._journal.position
        if self._queue.offer(message, was_delayed=self._was_delayed) is not None:
            return None
        return before + 1 if not self._queue.is_stream and self._journal.position > before else 0


class ExchangeTarget:
    """An exchange: messages are published to it, with a routing key or their own. What it does cannot be undone."""

    queue: QueueLike | None = None

    def __init__(self, vhost: VirtualHost, exchange: Exchange, routing_key: str | None) -> None:
        self._vhost = vhost
        self._exchange = exchange
        self._routing_key = routing_key

    def refusal(self, message: Message) -> str:
        """Return why the message would not reach all queues of its route; empty if it would."""
        exchange = self._exchange
        if self._vhost.exchange_by_name.get(exchange.name) is not exchange:
            return f"exchange '{exchange.name}' was deleted"
        if exchange.interceptor is not None:
            return f"exchange '{exchange.name}' delays, deduplicates or keeps messages"
        route = self._route(self._addressed(message))
        if route is None:
            return f"the message is routed to more than {MOST_QUEUES} queues"
        if not route.queues:
            return "the message is not routed to any queue"
        refusals = ((queue.name, queue.refusal_of(message)) for queue in route.queues)
        return next((f"queue '{name}' refuses the message: {why.value}" for name, why in refusals if why), "")

    def put(self, message: Message) -> int | None:
        """Publish the message."""
        addressed = self._addressed(message)
        route = self._route(addressed)
        if route is None or self._vhost.publish_to_route(route, addressed) is not Verdict.TAKEN:
            return None
        return 0

    def _addressed(self, message: Message) -> Message:
        key = message.routing_key if self._routing_key is None else self._routing_key
        return message.with_address(self._exchange.name, key, message.header)

    def _route(self, message: Message) -> Route | None:
        route = self._exchange.routes.get(message.routing_key)
        found = (
            self._vhost.find_route(self._exchange, message) if route is None or message.header.sender_keys else route
        )
        return found if isinstance(found, Route) and len(found.queues) <= MOST_QUEUES else None
