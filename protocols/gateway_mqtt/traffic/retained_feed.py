"""What is retained, on its way to one client that subscribed: no more of it waits in memory than the client takes soon.

Copies go into the queue where the subscription's messages wait, so that they keep their order and its terms. Where that
queue is on disk and keeps them for a client that is away, all of them go there, as fast as the disk takes them.
"""

from collections import deque
from collections.abc import Iterator
from typing import Final

from gateway.kernel.journal.records import SubscriptionRecord
from gateway.kernel.messages.message import Message
from gateway.kernel.queueing.queue import Queue
from gateway_mqtt.scope import Scope
from gateway_mqtt.translation.header import retained_header

#: Copies, and bytes of them, that may wait in memory for a client.
_WAITING_COPIES: Final = 64
_WAITING_BYTES: Final = 256 * 1024

#: Bytes of copies that may wait for the disk. Publishers are held back when more than 32 MiB of all clients do.
_UNWRITTEN_BYTES: Final = 1024 * 1024

#: What a copy costs the disk besides its body, in bytes.
_OVERHEAD: Final = 512

#: How soon the feed looks whether there is room again where nothing tells it so, in seconds.
_LOOK_S: Final = 0.1


class _Serving:
    """A subscription, and what is still to be looked at for it."""

    __slots__ = ("found", "subscription")

    def __init__(self, subscription: SubscriptionRecord, found: Iterator[Message | None]) -> None:
        self.subscription = subscription
        self.found = found


class RetainedFeed:
    """Owns the subscriptions of one connection that are being served what is retained, the first of them first.

    ``is_waiting`` says that there is more than the client, or the disk, takes at the moment: ``go_on`` when it may.
    """

    __slots__ = ("_is_looking", "_is_over", "_is_working", "_scope", "_serving", "_unwritten", "is_waiting")

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._serving: deque[_Serving] = deque()
        self._is_working = False
        self._is_looking = False
        self._is_over = False
        self._unwritten = 0
        self.is_waiting = False

    def serve(self, subscription: SubscriptionRecord) -> None:
        """Put a subscription behind those that are being served, for what is retained now; ``go_on`` serves it."""
        found = self._scope.vhost.retained.walk(subscription.binding_key)
        self._serving.append(_Serving(subscription, found))

    def go_on(self) -> None:
        """Send more, if there is more: in slices, so that no other client waits."""
        self.is_waiting = False
        if self._serving and not self._is_working:
            self._is_working = True
            self._scope.settings.broker.clock.background.add(self._work())

    def close(self) -> None:
        """The connection ends. What a queue on disk keeps for the client goes there all the same."""
        self._is_over = True
        if self.is_waiting:
            self.go_on()

    def _work(self) -> Iterator[None]:
        try:
            while self._serving:
                serving = self._serving[0]
                queue = self._queue_of(serving.subscription)
                if queue is None:
                    self._serving.popleft()
                elif not self._has_room(queue, serving.subscription):
                    self._wait(serving.subscription)
                    return
                else:
                    self._step(serving, queue)
                yield
        finally:
            self._is_working = False

    def _queue_of(self, subscription: SubscriptionRecord) -> Queue | None:
        """Return where copies for a subscription go; ``None`` when no client wants them any more."""
        session = self._scope.session
        if session.subscriptions.get(subscription.filter) is not subscription:
            return None
        if self._is_over and not self._goes_to_disk(subscription):
            return None
        return session.queue_of(subscription.qos)

    def _step(self, serving: _Serving, queue: Queue) -> None:
        """Look at one level, and offer a copy of what is there."""
        try:
            message = next(serving.found)
        except StopIteration:
            self._serving.popleft()
            return
        if message is None:
            return
        header = retained_header(message.header, serving.subscription.identifier, self._scope.journal.now_ms)
        queue.offer(Message(message.exchange, message.routing_key, header, message.body))
        self._unwritten += len(message.body) + _OVERHEAD

    def _goes_to_disk(self, subscription: SubscriptionRecord) -> bool:
        return self._scope.session.is_durable and subscription.qos > 0

    def _has_room(self, queue: Queue, subscription: SubscriptionRecord) -> bool:
        if self._goes_to_disk(subscription):
            return self._unwritten < _UNWRITTEN_BYTES and not self._scope.journal.is_backlogged
        return queue.ready.length < _WAITING_COPIES and queue.ready.bytes < _WAITING_BYTES

    def _wait(self, subscription: SubscriptionRecord) -> None:
        """Go on once the disk has what it was given, or the client took some; a look now and then makes sure."""
        self.is_waiting = True
        journal = self._scope.journal
        if self._goes_to_disk(subscription) and not journal.is_backlogged:
            journal.when_durable(journal.pending_lsn, self._written)
        elif not self._is_looking:
            self._is_looking = True
            self._scope.settings.broker.clock.call_later(_LOOK_S, self._look)

    def _look(self) -> None:
        self._is_looking = False
        self._written()

    def _written(self) -> None:
        self._unwritten = 0
        if self.is_waiting:
            self.go_on()
