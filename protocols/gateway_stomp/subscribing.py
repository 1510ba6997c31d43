"""SUBSCRIBE and UNSUBSCRIBE: the subscriptions of one connection (1.2)."""

from collections.abc import Iterator, Mapping
from typing import Final

from gateway.kernel.clock import drained
from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.messages.message import Arguments
from gateway.kernel.messages.queued_message import QueuedMessage
from gateway.kernel.queueing.consumer import ConsumedQueue, Consumer, Credit, Resumption, Selection
from gateway.kernel.queueing.consumer_arguments import priority_of
from gateway.kernel.queueing.leaving import leave
from gateway.kernel.queueing.ledger import Delivery, Ledger
from gateway.kernel.queueing.queue_like import QueueLike
from gateway_stomp.endpoints import Endpoints
from gateway_stomp.errors import StompError
from gateway_stomp.replies import PREFIX as REPLY_PREFIX
from gateway_stomp.scope import Scope
from gateway_stomp.selecting import selection_for
from gateway_stomp.stream_headers import stream_arguments
from gateway_stomp.subscription import AckMode, Subscription
from gateway_stomp.translate import whole_number
from gateway_stomp.versions import Version

_LARGEST_PREFETCH: Final = 65_535

#: The longest id of a subscription in bytes: with its prefix it is a consumer tag, a short string of AMQP.
_LONGEST_ID: Final = 253

#: The largest number of subscriptions whose acknowledgement timeouts are checked in one turn.
_CHECKED_AT_ONCE: Final = 512


class Subscribing:
    """Owns the subscriptions of one connection, by tag, and those that ended with unsettled deliveries.

    The consumers of open subscriptions are here, by tag too. A tag is ``T_`` and the id, or ``Q_`` and the destination
    if a client of 1.0 gives no id. ``_unchecked`` are those whose acknowledgement timeouts are checked next.
    """

    __slots__ = (
        "_consumer_by_tag",
        "_endpoints",
        "_last_tag",
        "_left",
        "_resumption",
        "_scope",
        "_subscription_by_tag",
        "_unchecked",
    )

    def __init__(self, scope: Scope, endpoints: Endpoints) -> None:
        self._scope = scope
        self._endpoints = endpoints
        self._subscription_by_tag: dict[str, Subscription] = {}
        self._consumer_by_tag: dict[str, Consumer] = {}
        self._left: dict[str, Subscription] = {}
        self._unchecked: list[Subscription] = []
        self._last_tag = 0
        self._resumption = Resumption()

    def __len__(self) -> int:
        return len(self._subscription_by_tag)

    @property
    def consumers(self) -> tuple[Consumer, ...]:
        """The consumers of the connection."""
        return tuple(self._consumer_by_tag.values())

    @property
    def unsettled(self) -> int:
        """The number of unsettled deliveries."""
        ledgers = (subscription.ledger for subscription in self._all())
        return sum(map(len, ledgers))

    def held(self) -> list[tuple[ConsumedQueue, QueuedMessage, int]]:
        """Return the unsettled deliveries: queue, message and channel, which is always 1."""
        return [(each.queue, each.entry, 1) for subscription in self._all() for each in subscription.ledger]

    # Start and end of subscriptions

    def subscribe(self, headers: Mapping[str, str]) -> QueueLike:
        """Start a subscription; return its queue. Deliveries begin with the queue's next ``dispatch``.

        :raises StompError: when its id is missing, in use or reserved, or a header is invalid.
        """
        written = headers.get("destination")
        if written is None:
            raise StompError("Missing destination", "\"SUBSCRIBE\" must include a 'destination' header\n")
        id, tag = self._named("SUBSCRIBE", headers)
        if tag in self._subscription_by_tag:
            detail = f"A subscription identified by '{tag}' already exists."
            raise StompError("Duplicated subscription identifier", detail)
        destination = self._scope.destination(written)
        mode = _ack_mode(headers.get("ack", "auto"))
        credit = Credit(_prefetch(headers, self._scope.settings.activemq))
        selection = selection_for(headers, self._scope.settings)
        name = self._endpoints.durable_name(destination, headers)
        queue = self._endpoints.queue_to_consume(destination, headers, name)
        # A selector on a shared queue leaves other messages to other consumers. On a topic's own queue they would never
        # be consumed; in a stream they stay for every consumer anyway.
        own, shared = (None, selection) if destination.is_queue and not queue.is_stream else (selection, None)
        subscription = Subscription(self._scope, id, tag, destination, mode, self._ledger(tag), own)
        self._consume(subscription, queue, credit, _arguments(headers, queue), shared)
        return queue

    def receive_replies(self, id: str, queue: QueueLike) -> None:
        """Consume replies under this id, without acknowledgements."""
        tag = f"T_{id}"
        self._consume(Subscription(self._scope, id, tag, None, AckMode.AUTO, self._ledger(tag)), queue, Credit(), {})
        queue.dispatch()

    def unsubscribe(self, headers: Mapping[str, str]) -> None:
        """End a subscription; its deliveries may still be acknowledged. :raises StompError: when there is none."""
        _, tag = self._named("UNSUBSCRIBE", headers)
        subscription = self._subscription_by_tag.get(tag)
        if subscription is None:
            self._forget_absent(headers, tag)
            return
        queue, destination = subscription.queue, subscription.destination
        is_durable = destination is not None and bool(self._endpoints.durable_name(destination, headers))
        if is_durable:
            self._endpoints.require_deletable(queue)
        del self._subscription_by_tag[tag]
        if is_durable:
            self._end(subscription)
            self._endpoints.forget(queue)
        else:
            self._end(subscription)

    def remove_cancelled(self, tag: str) -> str | None:
        """Remove a subscription whose queue was deleted; return its id, ``None`` if it had ended already."""
        subscription = self._subscription_by_tag.pop(tag, None)
        if subscription is None:
            return None
        del self._consumer_by_tag[tag]
        self._left[tag] = subscription  # its deliveries still have to be settled
        return subscription.id

    def close(self) -> None:
        """Cancel all consumers, and requeue unsettled deliveries at their old positions."""
        consumers, subscriptions = list(self.consumers), self._all()
        self._subscription_by_tag.clear()
        self._consumer_by_tag.clear()
        self._left.clear()
        self._unchecked.clear()
        leave(consumers, _unsettled(subscriptions), lambda consumer: self._leave(consumer.queue))

    def resume(self) -> None:
        """Resume the subscriptions that waited while the outbox was full."""
        self._resumption.serve([consumer for consumer in self.consumers if consumer.is_waiting])

    def exceeded_timeout_ms(self, now_s: float, default_ms: int) -> int | None:
        """Return the acknowledgement timeout that a delivery has exceeded; ``None`` if none has.

        Of very many subscriptions each call checks some, in rotation: all take 5 microseconds each.
        """
        if not self._unchecked:
            self._unchecked = self._all()
        checked = self._unchecked[-_CHECKED_AT_ONCE:]
        del self._unchecked[-_CHECKED_AT_ONCE:]
        limits = (each.ack_timeout.exhausted(each.ledger, now_s, default_ms) for each in checked)
        return next((limit_ms for limit_ms in limits if limit_ms is not None), None)

    def _consume(
        self,
        subscription: Subscription,
        queue: QueueLike,
        credit: Credit,
        arguments: Arguments,
        selection: Selection | None = None,
    ) -> None:
        consumer = Consumer(
            queue,
            subscription.tag,
            subscription,
            self._scope.outbox,
            needs_settling=subscription.mode is not AckMode.AUTO,
            priority=priority_of(queue, arguments),
            credit=credit,
            arguments=arguments,
            selection=selection,
        )
        self._scope.vhost.queues.require_room_for_consumer(len(self._subscription_by_tag), self._scope.origin.user)
        queue.consume(consumer)
        consumer.counters = self._scope.channel_counters.for_queue(queue)
        subscription.queue = queue
        subscription.counters = consumer.counters
        subscription.is_of_stream = queue.is_stream
        subscription.ack_timeout.watch(queue)
        self._left.pop(subscription.tag, None)
        self._subscription_by_tag[subscription.tag] = subscription
        self._consumer_by_tag[subscription.tag] = consumer

    def _end(self, subscription: Subscription) -> None:
        """Cancel a consumer; keep the subscription while it has unsettled deliveries."""
        self._last_tag = max(self._last_tag, subscription.ledger.last_tag)
        subscription.queue.cancel(self._consumer_by_tag.pop(subscription.tag))
        if len(subscription.ledger):
            self._left[subscription.tag] = subscription
        self._leave(subscription.queue)

    def _leave(self, queue: ConsumedQueue) -> None:
        self._scope.vhost.delete_queue_if_done(queue)
        queue.dispatch()  # another consumer may be active now

    def _ledger(self, tag: str) -> Ledger:
        """Return the ledger of a tag. Numbers continue, so that message-ids are unique."""
        left = self._left.get(tag)
        return left.ledger if left is not None else Ledger(self._last_tag)

    def _forget_absent(self, headers: Mapping[str, str], tag: str) -> None:
        """Delete a durable subscription of ActiveMQ without a consumer, which UNSUBSCRIBE may name.

        :raises StompError: when there is no such subscription.
        """
        written = headers.get("destination")
        if written is not None and self._scope.settings.activemq:
            name = self._endpoints.durable_name(self._scope.destination(written), headers)
            queue = self._scope.vhost.queue_by_name.get(name)
            if queue is not None:
                self._endpoints.forget(queue)
                return
        what = f"{'id' if tag.startswith('T_') else 'destination'}='{tag[2:202]}'"
        detail = f'UNSUBSCRIBE must refer to an existing subscription.\nSubscription to "{what}" not found.\n'
        raise StompError("No subscription found", detail)

    def _named(self, verb: str, headers: Mapping[str, str]) -> tuple[str, str]:
        """Return the id given by the client, empty for none, and the tag."""
        id = headers.get("id")
        if id is not None:
            if id.startswith(REPLY_PREFIX):
                raise StompError("Invalid id", f"{verb} 'id' may not start with {REPLY_PREFIX}\n")
            if len(id.encode()) > _LONGEST_ID:
                raise StompError("Invalid id", f"{verb} 'id' may have {_LONGEST_ID} bytes, not {len(id.encode())}")
            return id, f"T_{id}"
        if self._scope.version is not Version.V10:
            raise StompError("Missing Header", f"{verb} must include an 'id' header")
        destination = headers.get("destination")
        if destination is None:
            raise StompError("Missing destination or id", f"{verb} must include a 'destination' or 'id' header")
        return "", f"Q_{destination}"

    def _all(self) -> list[Subscription]:
        return [*self._subscription_by_tag.values(), *self._left.values()]

    # Used by settlements

    def named(self, tag: str) -> Subscription | None:
        """Return the subscription of this tag, or the ended one that has unsettled deliveries."""
        return self._subscription_by_tag.get(tag) or self._left.get(tag)

    def remove_if_settled(self, subscription: Subscription) -> None:
        """Remove an ended subscription without unsettled deliveries."""
        if not len(subscription.ledger) and self._left.get(subscription.tag) is subscription:
            del self._left[subscription.tag]

    def restore(self, subscription: Subscription, deliveries: list[Delivery]) -> None:
        """Restore deliveries that were removed; the subscription may have ended, or another may have its tag."""
        current = self._subscription_by_tag.get(subscription.tag)
        if current is None:
            current = self._left.setdefault(subscription.tag, subscription)
        current.ledger.restore(deliveries)


def _unsettled(subscriptions: list[Subscription]) -> Iterator[list[Delivery]]:
    """Yield the deliveries of all subscriptions in parts, and remove them."""
    for subscription in drained(subscriptions):
        yield from subscription.ledger.in_parts()


def _ack_mode(mode: str) -> AckMode:
    try:
        return AckMode(mode)
    except ValueError:
        modes = ", ".join(each.value for each in AckMode)
        raise StompError("Invalid header", f"'ack' must be one of {modes}, not '{mode[:80]}'") from None


def _prefetch(headers: Mapping[str, str], is_activemq: bool) -> int:
    """Return the number of deliveries that may be unacknowledged; 0 is unlimited."""
    name = "prefetch-count"
    if name not in headers and is_activemq:
        name = "activemq.prefetchSize"
    if name not in headers:
        return 0
    count = whole_number(name, headers[name].strip())
    if not 0 <= count <= _LARGEST_PREFETCH:
        raise PreconditionFailed(f"header '{name}' must be from 0 to {_LARGEST_PREFETCH}, not {count}")
    return count


def _arguments(headers: Mapping[str, str], queue: QueueLike) -> Arguments:
    """Return the consumer arguments for the kernel; streams have no consumer priorities."""
    arguments = stream_arguments(headers)
    if "x-priority" not in headers or queue.is_stream:
        return arguments
    return {**arguments, "x-priority": whole_number("x-priority", headers["x-priority"].strip())}
