"""Delivery of messages to a client: one consumer for each queue of its session."""

from collections.abc import Callable, Sequence
from functools import partial
from math import inf
from typing import Final

from gateway.kernel.journal.journal import Journal
from gateway.kernel.journal.records import SubscriptionRecord
from gateway.kernel.messages.message import Message
from gateway.kernel.messages.origin import Origin
from gateway.kernel.messages.queued_message import QueuedMessage
from gateway.kernel.queueing.consumer import Consumer, Resumption
from gateway.kernel.queueing.queue import Queue
from gateway.kernel.sessions.session import Session
from gateway.kernel.sessions.subscriptions import Terms
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.net.outbox import HIGH_WATER, Outbox
from gateway_mqtt.traffic.aliases import OutgoingAliases
from gateway_mqtt.traffic.encoder import Encoder
from gateway_mqtt.traffic.inflight import Inflight, InflightDelivery
from gateway_mqtt.traffic.retained_feed import RetainedFeed
from gateway_mqtt.traffic.subscribers import Acknowledged, AtMostOnce, SharedSubscriber
from gateway_mqtt.translation.delivery_view import delivery_view_of

#: The consumer tag of sessions in listings, as in RabbitMQ.
_TAG: Final = "mqtt"

#: An empty topic, sent with a known alias (3.3.2.3.4).
_NO_TOPIC: Final = b"\0\0"

#: Packets up to this size, in bytes, are copied into one piece. Larger ones are written in parts, so that subscribers
#: share the body and do not each hold a copy.
_SMALL: Final = 1024


class Delivering:
    """Owns the consumers of one connection and writes their deliveries to its outbox.

    ``plain_size`` is the largest packet that all subscribers may share, in bytes: the client's Maximum Packet Size, or
    0 if the client uses topic aliases. ``feed`` sends retained messages as room permits.
    """

    def __init__(
        self,
        vhost: VirtualHost,
        session: Session,
        journal: Journal,
        outbox: Outbox,
        encoder: Encoder,
        inflight: Inflight,
        origin: Origin,
        *,
        max_packet_size: int,
        alias_maximum: int = 0,
    ) -> None:
        self.session = session
        self.encoder = encoder
        self.inflight = inflight
        self.origin = origin
        self.plain_size = 0 if alias_maximum else max_packet_size
        self._counters = inflight.counters
        self._vhost = vhost
        self._journal = journal
        self._outbox = outbox
        self._max_packet_size = max_packet_size
        self._aliases = OutgoingAliases(alias_maximum) if alias_maximum else None
        self._consumer_by_queue: dict[Queue, Consumer] = {}
        self._held: list[tuple[int, InflightDelivery]] = []  # the oldest comes last
        self._resumption = Resumption()
        self.feed: RetainedFeed | None = None

    # Consumers

    def resume_session(self) -> None:
        """Resume the session: first PUBREL for open identifiers, then the messages in order (MQTT-4.4.0-1)."""
        self.inflight.repeat_releases()
        shared = self.session.shared_by_queue_name()
        for queue in self.session.queues():
            self._attach(queue, shared.get(queue.name))
        self._take_held()
        for consumer in self.consumers:
            self._hand_out([consumer.queue], consumer.queue.dispatch)
        acknowledged = self.session.queue_of(1)
        if acknowledged is None or not len(acknowledged):
            self.inflight.give_up_before(inf)

    def start_consuming(self, queue: Queue, subscription: SubscriptionRecord) -> None:
        """Consume from the queue of a subscription, unless it is consumed already."""
        if queue not in self._consumer_by_queue:
            self._attach(queue, subscription)
        self._hand_out([queue], queue.dispatch)

    def stop_consuming(self, queue: Queue) -> None:
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
        self.inflight.credit.is_awaited = bool(self._held or waiting)
        if self.feed is not None and self.feed.is_waiting:
            self.feed.resume()

    def _waiting(self) -> list[Consumer]:
        return [consumer for consumer in self._consumer_by_queue.values() if consumer.is_waiting]

    def _hand_out(self, queues: Sequence[Queue], dispatch: Callable[[], None]) -> None:
        """Dispatch queued messages. Those with QoS 0 are sent after their removal from the queue is durable.

        Otherwise a crash would restore and resend them, which violates at most once (MQTT-4.3.1-1). A message that is
        not queued has no such delay.
        """
        is_kept = self.session.is_durable and any(
            len(queue) and self.session.is_at_most_once(queue) for queue in queues
        )
        first = len(self._outbox.pieces)
        dispatch()
        if is_kept and len(self._outbox.pieces) > first:
            self._outbox.promise(self._journal.pending_lsn, since=first)

    def close(self) -> None:
        """Cancel all consumers, then requeue unacknowledged messages, so that they are not sent again here."""
        self.feed = None
        consumers = self.consumers
        self._consumer_by_queue.clear()
        for consumer in consumers:
            consumer.queue.cancel(consumer)
        self.inflight.put_back()
        for consumer in consumers:
            consumer.queue.dispatch()

    def cancelled(self, consumer: Consumer) -> None:
        """Drop the consumer of a deleted queue."""
        self._consumer_by_queue.pop(consumer.queue, None)

    def _attach(self, queue: Queue, subscription: SubscriptionRecord | None) -> None:
        """Consume from a queue; the terms are those of a shared subscription or of all the session's subscriptions."""
        subscriber: AtMostOnce | Acknowledged
        if subscription is not None and subscription.group and not self.session.owns(queue):
            subscriber = SharedSubscriber(self, subscription)
        elif self.session.is_at_most_once(queue):
            subscriber = AtMostOnce(self)
        else:
            subscriber = Acknowledged(self)
        needs_settling = isinstance(subscriber, Acknowledged)
        credit = self.inflight.credit if needs_settling else None
        consumer = Consumer(queue, _TAG, subscriber, self._outbox, needs_settling=needs_settling, shared_credit=credit)
        queue.consume(consumer)
        self._consumer_by_queue[queue] = consumer

    def _take_held(self) -> None:
        """Resume deliveries of shared subscriptions that only this client may complete (MQTT-4.8.2-4)."""
        self._held = self.inflight.take_held()[::-1]
        self.inflight.credit.is_awaited = bool(self._held)
        self._send_held()

    def _send_held(self) -> None:
        """Send as many of them as the client's credit allows; all of them are charged to it already."""
        credit, held = self.inflight.credit, self._held
        while held and credit.used - len(held) < credit.limit:
            packet_id, delivery = held.pop()
            if self.inflight.deliveries.get(packet_id) is delivery:
                message = delivery.entry.message
                self.send_special(message, None, qos=2, packet_id=packet_id, is_resent=True)
                self.count(delivery.queue, message, True, delivery.entry)

    # Packets

    def send_special(
        self, message: Message, terms: Terms | None, *, qos: int, packet_id: int = 0, is_resent: bool = False
    ) -> bool:
        """Write a packet for this client only; return whether it fits the Maximum Packet Size (MQTT-3.1.2-24)."""
        view = delivery_view_of(message.header)
        identifiers = () if terms is None else terms.identifiers
        is_retained = view.is_retained and terms is not None and terms.retain_as_published
        if view.is_copy:
            identifiers = (view.identifier,) if view.identifier else ()
            is_retained = True
        topic, alias = self._encoder_topic(message.routing_key)
        packet = self.encoder.special(
            message,
            view,
            qos=qos,
            packet_id=packet_id,
            is_resent=is_resent,
            is_retained=is_retained,
            identifiers=identifiers,
            topic=topic,
            alias=alias,
            now_ms=self._journal.now_ms,
        )
        if len(packet) > self._max_packet_size:
            if self._aliases is not None and alias and topic != _NO_TOPIC:
                self._aliases.forget(message.routing_key)
            return False
        self.write(packet)
        return True

    def _encoder_topic(self, routing_key: str) -> tuple[bytes, int]:
        """Return the encoded topic and its alias; the topic is empty if the client has received the alias."""
        topic = self.encoder.topic(routing_key)
        if self._aliases is None:
            return topic, 0
        alias, is_known = self._aliases.alias(routing_key)
        return _NO_TOPIC if is_known else topic, alias

    def write(self, packet: bytes) -> None:
        """Append a packet to the outbox and close the outbox to deliveries when it is full."""
        outbox = self._outbox
        outbox.pieces.append(packet)
        outbox.size += len(packet)
        if outbox.size > HIGH_WATER:
            outbox.is_open = False
        if not outbox.is_awake:
            outbox.wake()

    def write_numbered(self, head: bytes, packet_id: int, tail: bytes, size: int) -> None:
        """Append a packet with its identifier between two shared parts; ``size`` is the total in bytes."""
        outbox = self._outbox
        number = packet_id.to_bytes(2, "big")
        if size <= _SMALL:
            outbox.pieces.append(head + number + tail)
        else:
            outbox.pieces += (head, number, tail)
        outbox.size += size
        if outbox.size > HIGH_WATER:
            outbox.is_open = False
        if not outbox.is_awake:
            outbox.wake()

    def promise(self) -> None:
        """Delay later packets until everything recorded so far is durable."""
        self._outbox.promise(self._journal.pending_lsn)

    def count(self, queue: Queue, message: Message, redelivered: bool, entry: QueuedMessage | None = None) -> None:
        """Count a delivery and report it to the tracers."""
        counters = self._counters
        counters.deliver += 1
        counters.payload_sent += len(message.body)
        if self._vhost.tracing is not None:
            position = None if entry is None else entry.position
            self._vhost.tracing.delivered(message, queue, redelivered, self.origin, position)
