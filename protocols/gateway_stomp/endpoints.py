"""The queues behind destinations: lookup, declaration, bindings and the permissions required."""

from base64 import urlsafe_b64encode
from collections.abc import Collection, Mapping
from hashlib import md5
from typing import Final

from gateway.access import Operation
from gateway.access.indirect_publishing import require_dead_letters
from gateway.kernel.names import require_free
from gateway.kernel.queueing.queue_like import QueueLike
from gateway.kernel.routing.binding import Binding
from gateway_stomp.destinations import Destination, DestinationKind
from gateway_stomp.errors import StompError
from gateway_stomp.queue_headers import QueueHeaders, queue_headers
from gateway_stomp.scope import Scope
from gateway_stomp.translate import truth_of

_SUBSCRIPTION_NAME: Final = "stomp-subscription-"

#: Queues remembered as declared, per connection.
_NAMES_KEPT: Final = 10_000


class Endpoints:
    """Declares queues for one connection, each queue of ``/queue`` once.

    ``_generated`` is the generated name of a queue whose declaration waits for a permission, otherwise empty.
    """

    __slots__ = ("_declared", "_generated", "_scope")

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._declared: set[str] = set()
        self._generated = ""

    def queue_to_send_to(self, destination: Destination, headers: Mapping[str, str]) -> None:
        """Declare the queue of a SEND, if its destination is of a kind that is created."""
        if destination.kind is DestinationKind.QUEUE and destination.name not in self._declared:
            self._declare_named(destination.name, queue_headers(headers, self._offered, of_send=True))

    def queue_to_consume(self, destination: Destination, headers: Mapping[str, str], durable_name: str) -> QueueLike:
        """Return the queue of a subscription, bound to its source.

        ``durable_name`` is the queue name of a durable subscription, empty for one that ends with its connection.

        :raises StompError: for a destination that cannot be subscribed to.
        """
        scope = self._scope
        if destination.kind is DestinationKind.TEMP_QUEUE:
            detail = f"'{destination.written}' is not a valid destination for 'SUBSCRIBE'\n"
            raise StompError("Invalid destination", detail)
        requested = queue_headers(headers, self._offered, of_send=False)
        if not destination.is_queue:
            return self._subscription_queue(destination, requested, durable_name)
        scope.require(Operation.READ, "queue", destination.name)
        if destination.kind is DestinationKind.QUEUE and destination.name not in self._declared:
            self._declare_named(destination.name, requested)
        queue = scope.vhost.queue(destination.name)
        queue.require_owner(scope.host)
        return queue

    def reply_queue(self) -> QueueLike:
        """Declare an exclusive queue for replies to this connection."""
        name = self._generate("stomp.gen-")
        self._scope.require(Operation.CONFIGURE, "queue", name)
        self._scope.require(Operation.READ, "queue", name)
        self._generated = ""
        owner = self._scope.host
        user = self._scope.origin.user
        return self._scope.vhost.declare_queue(name, owner=owner, is_auto_delete=True, is_server_named=True, user=user)

    def durable_name(self, destination: Destination, headers: Mapping[str, str]) -> str:
        """Return the queue name of a durable subscription; empty if the subscription is not durable.

        A client of ActiveMQ names its subscription in a header other than the id, and itself in CONNECT.

        :raises StompError: when there is no id by which the subscription can be found again.
        """
        scope = self._scope
        is_durable = bool(truth_of(headers, "durable") or truth_of(headers, "persistent"))
        name = headers.get("id")
        if is_durable and name is None:
            raise StompError("Missing Header", "Header 'id' is required for durable subscriptions")
        if destination.kind not in (DestinationKind.TOPIC, DestinationKind.EXCHANGE):
            return ""
        is_topic = destination.kind is DestinationKind.TOPIC
        if is_topic and scope.settings.activemq and "activemq.subscriptionName" in headers and scope.client_id:
            identity = f"{scope.client_id}\0{headers['activemq.subscriptionName']}".encode()
            return _SUBSCRIPTION_NAME + _short_hash(identity)
        if not is_durable:
            return ""
        assert name is not None
        return headers.get("x-queue-name") or self._kept_name(destination, name)

    def _kept_name(self, destination: Destination, id: str) -> str:
        """Return the queue name of a durable subscription with this id.

        RabbitMQ derives it from the routing key and the id alone, so that subscriptions to two exchanges would share a
        queue. Here the name of the exchange is part of it, too; a queue that RabbitMQ created is found.
        """
        name = _SUBSCRIPTION_NAME + _short_hash(_erlang_pair(destination.name, id))
        if destination.kind is DestinationKind.TOPIC or self._is_bound(name, destination):
            return name
        return _SUBSCRIPTION_NAME + _short_hash(_erlang_pair(f"{destination.exchange}\0{destination.name}", id))

    def _is_bound(self, queue_name: str, destination: Destination) -> bool:
        """Return whether a queue of this name is bound to the destination's exchange by its key."""
        vhost = self._scope.vhost
        queue = vhost.queue_by_name.get(queue_name)
        return queue is not None and any(
            (binding.source.name, binding.routing_key) == (destination.exchange, destination.name)
            for binding in vhost.bindings.to(queue)
        )

    def forget(self, queue: QueueLike) -> None:
        """Delete the queue of a durable subscription on the client's request."""
        self.require_deletable(queue)
        if not queue.is_deleted:
            self._scope.vhost.delete_queue(queue)

    def require_deletable(self, queue: QueueLike) -> None:
        """Require permission to delete a queue. :raises AccessRefused: if it is missing."""
        self._scope.require(Operation.CONFIGURE, "queue", queue.name)

    @property
    def _offered(self) -> Collection[str]:
        """The queue arguments that plugins offer."""
        return self._scope.vhost.queue_features.settings.arguments

    def _declare_named(self, name: str, requested: QueueHeaders) -> None:
        scope = self._scope
        if name not in scope.vhost.queue_by_name:
            require_free("queue", name)
        scope.require(Operation.CONFIGURE, "queue", name)
        self._require_dead_letter_exchange(name, requested)
        is_durable = requested.is_durable is not False
        scope.vhost.declare_queue(
            name,
            is_durable=is_durable,
            owner=scope.host if _value_or(requested.is_exclusive, not is_durable) else None,
            is_auto_delete=_value_or(requested.is_auto_delete, not is_durable),
            arguments=requested.arguments,
            claimant=scope.host,
            user=scope.origin.user,
        )
        if len(self._declared) >= _NAMES_KEPT:
            self._declared.clear()  # declaring again does no harm
        self._declared.add(name)

    def _subscription_queue(self, destination: Destination, requested: QueueHeaders, durable_name: str) -> QueueLike:
        """Declare the queue of a subscription to an exchange or topic, and bind it."""
        scope = self._scope
        name = durable_name or requested.name or self._generate(_SUBSCRIPTION_NAME)
        is_exclusive = not durable_name and _value_or(
            requested.is_exclusive, destination.kind is DestinationKind.EXCHANGE
        )
        exchange = scope.vhost.exchange(destination.exchange)
        scope.require(Operation.CONFIGURE, "queue", name)
        scope.require(Operation.WRITE, "queue", name)
        scope.require(Operation.READ, "queue", name)
        scope.require(Operation.READ, "exchange", exchange.name)
        scope.require_topic(Operation.READ, exchange, destination.name)
        self._require_dead_letter_exchange(name, requested)
        self._generated = ""
        there = scope.vhost.queue_by_name.get(name)  # a queue created by RabbitMQ may be auto-delete
        queue = scope.vhost.declare_queue(
            name,
            is_durable=bool(durable_name),
            owner=scope.host if is_exclusive else None,
            is_auto_delete=_value_or(
                requested.is_auto_delete, not durable_name if there is None else there.is_auto_delete
            ),
            arguments=requested.arguments,
            claimant=scope.host,
            user=scope.origin.user,
        )
        wanted = scope.vhost.bind(exchange, queue, destination.name, user=scope.origin.user)
        if durable_name and scope.settings.activemq:
            self._unbind_others(queue, wanted)
        return queue

    def _generate(self, prefix: str) -> str:
        """Return a new name; the same one again until its queue is declared."""
        if not self._generated.startswith(prefix):
            self._generated = f"{prefix}{self._scope.settings.token()}"
        return self._generated

    def _unbind_others(self, queue: QueueLike, wanted: Binding) -> None:
        """Remove the bindings to other topics when a subscription is renewed for a new one, as with ActiveMQ."""
        for binding in list(self._scope.vhost.bindings.to(queue)):
            if binding is not wanted:
                self._scope.vhost.bindings.remove(binding)

    def _require_dead_letter_exchange(self, name: str, requested: QueueHeaders) -> None:
        """Require read on the queue and write on its dead letter exchange (R104)."""
        exchange = requested.arguments.get("x-dead-letter-exchange")
        there = self._scope.vhost.exchange_by_name.get(exchange) if isinstance(exchange, str) else None
        require_dead_letters(self._scope.host.permissions, name, requested.arguments, there)


def _value_or(identity: bool | None, otherwise: bool) -> bool:
    return otherwise if identity is None else identity


def _short_hash(identity: bytes) -> str:
    """Return a name of bounded length; a collision is no security problem."""
    return urlsafe_b64encode(md5(identity, usedforsecurity=False).digest()).rstrip(b"=").decode()


def _erlang_pair(first: str, second: str) -> bytes:
    """Format two texts as a pair in Erlang, because RabbitMQ derives names of durable subscriptions from it."""
    return b"\x83h\x02" + _erlang_string(first) + _erlang_string(second)


def _erlang_string(text: str) -> bytes:
    encoded = text.encode()
    return b"k" + len(encoded).to_bytes(2, "big") + encoded if 0 < len(encoded) < 2**16 else b"j"
