"""The publish of a will that is due."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from gateway.kernel.events import Event, Events
from gateway.kernel.interception.interceptor import Refusal
from gateway.kernel.messages.origin import Origin

if TYPE_CHECKING:
    from gateway.kernel.interception.interception import Interception
    from gateway.kernel.messages.message import Message
    from gateway.kernel.routing.exchange import Exchange
    from gateway.kernel.sessions.retained import Retained


class WillPublisher:
    """Publishes the wills of one virtual host through its interceptors; their clients are not connected any more."""

    def __init__(
        self,
        vhost_name: str,
        exchange_by_name: "Mapping[str, Exchange]",
        interception: "Interception",
        retained: "Retained",
        events: Events,
        publish: "Callable[[Exchange, Message], object]",
    ) -> None:
        self._vhost_name = vhost_name
        self._exchange_by_name = exchange_by_name
        self._interception = interception
        self._retained = retained
        self._events = events
        self._publish = publish

    def publish(self, message: "Message", is_retained: bool, client_id: str) -> None:
        """Publish a client's will; drop it if its exchange does not exist, or an interceptor refuses it."""
        published: Message | Refusal = message
        chain = self._interception.publishing_to(message.exchange, message.routing_key)
        if chain is not None:
            published = chain.intercept(message, Origin("", 0, "", "mqtt", client_id))
        if isinstance(published, Refusal):
            details = {"client_id": client_id, "reason": published.reason}
            self._events.emit(Event("will.refused", self._vhost_name, message.exchange, details))
            return
        exchange = self._exchange_by_name.get(published.exchange)
        if exchange is not None:
            self._publish(exchange, published)
        if is_retained and published.exchange == message.exchange:
            self._retained.keep(published)
