"""Delivery of retained messages to new subscriptions, with bounded memory.

Copies go into the subscription's queue, which keeps their order and applies its terms. If that queue is on disk for a
persistent session, all copies go there, as fast as the disk accepts them.
"""

from collections import deque
from collections.abc import Iterator
from typing import Final

from gateway.kernel.journal.records.sessions import SubscriptionRecord
from gateway.kernel.messages.message import Message
from gateway.kernel.queueing.queue import Queue
from gateway.kernel.queueing.queue_like import QueueLike
from gateway_mqtt.scope import Scope
from gateway_mqtt.translation.header import retained_header

#: Limits of the copies that may wait in memory for a client.
_WAITING_COPIES: Final = 64
_WAITING_BYTES: Final = 256 * 1024

#: The limit of bytes that one feed may leave unwritten. Publishers are blocked above 32 MiB of all clients together.
_UNWRITTEN_BYTES: Final = 1024 * 1024

#: The size of a stored copy besides its body, in bytes.
_OVERHEAD: Final = 512

#: The interval of checks for free room, in seconds, where no event reports it.
_POLL_S: Final = 0.1


class _PendingSubscription:
    """A subscription, and the iterator over its remaining retained messages."""

    __slots__ = ("found", "subscription")

    def __init__(self, subscription: SubscriptionRecord, found: Iterator[Message | None]) -> None:
        self.subscription = subscription
        self.found = found


class RetainedFeed:
    """Owns the subscriptions of one connection that receive retained messages, in order.

    ``is_waiting`` is true while the client or the disk has no room; ``resume`` continues then.
    """

    __slots__ = ("_is_over", "_is_polling", "_is_working", "_pending", "_scope", "_unwritten", "is_waiting")

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._pending: deque[_PendingSubscription] | None = None  # an empty one takes 0.7 KiB of an idle connection
        self._is_working = False
        self._is_polling = False
        self._is_over = False
        self._unwritten = 0
        self.is_waiting = False

    def serve(self, subscription: SubscriptionRecord) -> None:
        """Queue a subscription for its retained messages; ``resume`` starts the delivery."""
        found = self._scope.vhost.retained.walk(subscription.binding_key)
        if self._pending is None:
            self._pending = deque()
        self._pending.append(_PendingSubscription(subscription, found))

    def resume(self) -> None:
        """Continue the delivery in the background, in slices."""
        self.is_waiting = False
        if self._pending and not self._is_working:
            self._is_working = True
            self._scope.settings.broker.clock.background.add(self._work())

    def close(self) -> None:
        """Stop the delivery, except to the queue on disk of a persistent session."""
        self._is_over = True
        if self.is_waiting:
            self.resume()

    def _work(self) -> Iterator[None]:
        try:
            while self._pending:
                pending = self._pending[0]
                queue = self._queue_of(pending.subscription)
                if queue is None:
                    self._drop_first()
                elif not self._has_room(queue, pending.subscription):
                    self._wait(pending.subscription)
                    return
                else:
                    self._step(pending, queue)
                yield
        finally:
            self._is_working = False

    def _drop_first(self) -> None:
        """Drop the first subscription: it has its retained messages, or is gone."""
        assert self._pending is not None
        self._pending.popleft()
        if not self._pending:
            self._pending = None

    def _queue_of(self, subscription: SubscriptionRecord) -> QueueLike | None:
        """Return the queue for a subscription's copies; ``None`` if the subscription is gone."""
        session = self._scope.session
        if session.subscriptions.get(subscription.filter) is not subscription:
            return None
        if self._is_over and not self._goes_to_disk(subscription):
            return None
        return session.queue_of(subscription.qos)

    def _step(self, pending: _PendingSubscription, queue: QueueLike) -> None:
        """Visit one level of the topic tree and offer a copy of its message."""
        try:
            message = next(pending.found)
        except StopIteration:
            self._drop_first()
            return
        if message is None:
            return
        header = retained_header(message.header, pending.subscription.identifier, self._scope.journal.now_ms)
        queue.offer(Message(message.exchange, message.routing_key, header, message.body))
        self._unwritten += len(message.body) + _OVERHEAD

    def _goes_to_disk(self, subscription: SubscriptionRecord) -> bool:
        return self._scope.session.is_durable and subscription.qos > 0

    def _has_room(self, queue: QueueLike, subscription: SubscriptionRecord) -> bool:
        if self._goes_to_disk(subscription):
            return self._unwritten < _UNWRITTEN_BYTES and not self._scope.journal.disk_backlog.is_large
        return not isinstance(queue, Queue) or (
            queue.ready.length < _WAITING_COPIES and queue.ready.bytes < _WAITING_BYTES
        )

    def _wait(self, subscription: SubscriptionRecord) -> None:
        """Continue once the disk has caught up or the client has taken some; a timer covers missed events."""
        self.is_waiting = True
        journal = self._scope.journal
        if self._goes_to_disk(subscription) and not journal.disk_backlog.is_large:
            journal.when_durable(journal.pending_lsn, self._written)
        elif not self._is_polling:
            self._is_polling = True
            self._scope.settings.broker.clock.call_later(_POLL_S, self._poll)

    def _poll(self) -> None:
        self._is_polling = False
        self._written()

    def _written(self) -> None:
        self._unwritten = 0
        if self.is_waiting:
            self.resume()
