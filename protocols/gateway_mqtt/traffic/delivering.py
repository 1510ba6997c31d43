"""Delivery of messages to a client: one consumer for each queue of its session."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import inf
from typing import Final

from gateway.kernel.journal.records.sessions import SubscriptionRecord
from gateway.kernel.queueing.consumer import ConsumedQueue, Consumer, Resumption
from gateway.kernel.queueing.queue_like import QueueLike
from gateway_mqtt.scope import Scope
from gateway_mqtt.traffic.delivery_writer import DeliveryWriter
from gateway_mqtt.traffic.inflight import Inflight, InflightDelivery
from gateway_mqtt.traffic.retained_feed import RetainedFeed
from gateway_mqtt.traffic.subscribers import Acknowledged, AtMostOnce, SharedSubscriber

#: The consumer tag of sessions in listings, as in RabbitMQ.
_TAG: Final = "mqtt"

#: Messages that a resumed session sends in the turn of the CONNECT, and then between two readings of the clock: each
#: takes about 15 microseconds, because those of the last connection keep their identifiers.
_STEP: Final = 64


class Delivering:
    """Owns the consumers of one connection. ``feed`` sends retained messages as room permits."""

    def __init__(self, scope: Scope, inflight: Inflight, writer: DeliveryWriter, feed: RetainedFeed) -> None:
        self._session = scope.session
        self._journal = scope.journal
        self._interception = scope.vhost.interception
        self._outbox = scope.outbox
        self._inflight = inflight
        self._writer = writer
        self._feed: RetainedFeed | None = feed
        self._consumer_by_queue: dict[ConsumedQueue, Consumer] = {}
        self._held: list[tuple[int, InflightDelivery]] = []  # the oldest comes last
        self._resumption = Resumption()
        self._receive_maximum = inflight.credit.limit
        self._is_opening = False

    # Consumers

    def resume_session(self) -> None:
        """Resume the session: first PUBREL for open identifiers, then the messages in order (MQTT-4.4.0-1).

        A client with a large Receive Maximum gets the first messages now, the others in slices.
        """
        self._inflight.repeat_releases()
        self._inflight.credit.limit = min(self._receive_maximum, self._inflight.credit.used + _STEP)
        shared = self._session.shared_by_queue_name()
        for queue in self._session.queues():
            self._attach(queue, shared.get(queue.name))
        self._take_held()
        for consumer in self.consumers:
            self._hand_out([consumer.queue], consumer.queue.dispatch)
        self._give_up_missing()
        self._open_up()

    def start_consuming(self, queue: QueueLike, subscription: SubscriptionRecord) -> None:
        """Consume from the queue of a subscription, unless it is consumed already."""
        if queue not in self._consumer_by_queue:
            self._attach(queue, subscription)
        self._hand_out([queue], queue.dispatch)

    def stop_consuming(self, queue: QueueLike) -> None:
        """Stop consuming from a queue; its deliveries may still be acknowledged."""
        consumer = self._consumer_by_queue.pop(queue, None)
        if consumer is not None:
            queue.cancel(consumer)
            queue.dispatch()

    @property
    def consumers(self) -> tuple[Consumer, ...]:
        """The consumers of the connection."""
        return tuple(self._consumer_by_queue.values())

    def resume(self) -> None:
        """Serve consumers that waited for the client's acknowledgements or for room in the outbox."""
        self._send_held()
        if waiting := self._waiting():
            self._hand_out([each.queue for each in waiting], partial(self._resumption.serve, waiting))
            waiting = self._waiting()
        self._inflight.credit.is_awaited = bool(self._held or waiting)
        self._open_up()
        if self._feed is not None and self._feed.is_waiting:
            self._feed.resume()

    def _give_up_missing(self) -> None:
        """Complete deliveries of the last connection whose messages have left the queue, once it is empty."""
        acknowledged = self._session.queue_of(1)
        if acknowledged is None or not len(acknowledged):
            self._inflight.give_up_before(inf)

    def _open_up(self) -> None:
        """Raise the credit of a resumed session to the client's Receive Maximum, in slices while messages wait."""
        credit = self._inflight.credit
        if credit.limit >= self._receive_maximum or self._is_opening:
            return
        if self._held or self._waiting():
            self._is_opening = True
            self._journal.clock.background.add_later(self._opening())
        else:
            self._open_wide()

    def _opening(self) -> Iterator[None]:
        """Return the steps that raise the credit as it is used up, until the outbox is full or nothing can be sent."""
        credit = self._inflight.credit
        while self._can_send_more and credit.limit < self._receive_maximum and (self._held or self._waiting()):
            before = (credit.used, len(self._held))
            credit.limit = min(credit.used - len(self._held) + _STEP, self._receive_maximum)
            self.resume()
            if before == (credit.used, len(self._held)):
                break  # a queue pauses; the client's acknowledgements begin again
            yield
        self._is_opening = False
        if self._can_send_more and not (self._held or self._waiting()):
            self._open_wide()

    @property
    def _can_send_more(self) -> bool:
        """Whether the connection is open, and its outbox is not full."""
        return self._feed is not None and self._outbox.is_open

    def _open_wide(self) -> None:
        self._inflight.credit.limit = self._receive_maximum
        self._give_up_missing()

    def _waiting(self) -> list[Consumer]:
        return [consumer for consumer in self._consumer_by_queue.values() if consumer.is_waiting]

    def _hand_out(self, queues: Sequence[ConsumedQueue], dispatch: Callable[[], None]) -> None:
        """Dispatch queued messages. Those with QoS 0 are sent after their removal from the queue is durable.

        Otherwise a crash would restore and resend them, which violates at most once (MQTT-4.3.1-1). A message that is
        not queued has no such delay.
        """
        is_kept = self._session.is_durable and any(
            len(queue) and self._session.is_at_most_once(queue) for queue in queues
        )
        first = len(self._outbox.pieces)
        dispatch()
        if is_kept and len(self._outbox.pieces) > first:
            self._outbox.promise(self._journal.pending_lsn, since=first)

    def close(self) -> Iterator[None]:
        """Cancel all consumers; return the steps that requeue unacknowledged messages, now not sent again here."""
        self._feed = None
        consumers = list(self.consumers)
        self._consumer_by_queue.clear()
        for consumer in consumers:
            consumer.queue.cancel(consumer)
        return _ending(self._inflight.returning(), consumers)

    def _cancelled(self, consumer: Consumer) -> None:
        """Drop the consumer of a deleted queue."""
        self._consumer_by_queue.pop(consumer.queue, None)

    def _attach(self, queue: QueueLike, subscription: SubscriptionRecord | None) -> None:
        """Consume from a queue; the terms are those of a shared subscription or of all the session's subscriptions."""
        subscriber: AtMostOnce | Acknowledged
        if subscription is not None and subscription.group and not self._session.owns(queue):
            subscriber = SharedSubscriber(self._session, self._inflight, self._writer, self._cancelled, subscription)
        elif self._session.is_at_most_once(queue):
            subscriber = AtMostOnce(self._session, self._writer, self._cancelled)
        else:
            subscriber = Acknowledged(self._session, self._inflight, self._writer, self._cancelled)
        needs_settling = isinstance(subscriber, Acknowledged)
        credit = self._inflight.credit if needs_settling else None
        consumer = Consumer(queue, _TAG, subscriber, self._outbox, needs_settling=needs_settling, shared_credit=credit)
        queue.consume(consumer)
        self._consumer_by_queue[queue] = consumer

    def _take_held(self) -> None:
        """Resume deliveries of shared subscriptions that only this client may complete (MQTT-4.8.2-4)."""
        self._held = self._inflight.take_held()[::-1]
        self._inflight.credit.is_awaited = bool(self._held)
        self._send_held()

    def _send_held(self) -> None:
        """Send as many of them as the client's credit allows; all of them are charged to it already."""
        credit, held = self._inflight.credit, self._held
        if held and self._session.is_durable:  # the connection before may have ended before it could send them
            self._writer.promise()
        while held and credit.used - len(held) < credit.limit:
            packet_id, delivery = held.pop()
            if self._inflight.deliveries.get(packet_id) is delivery:
                message = self._interception.delivered(delivery.entry.message, delivery.queue.name, self._writer.origin)
                self._writer.send_special(
                    delivery.queue, message, None, True, delivery.entry, qos=2, packet_id=packet_id, is_resent=True
                )


def _ending(returning: Iterator[None], consumers: list[Consumer]) -> Iterator[None]:
    """Return the steps that requeue messages, and then serve the other consumers of the queues."""
    yield from returning
    for consumer in consumers:
        consumer.queue.dispatch()
