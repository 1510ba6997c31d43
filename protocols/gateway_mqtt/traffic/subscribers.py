"""Kernel ``Subscriber`` classes for the queues of a session.

There is one class for the queue of QoS 0, one for QoS 1 and 2, and one for shared subscriptions. Each has a fast path
for messages that all subscribers see alike, and a slow path for all others.
"""

from collections.abc import Callable
from typing import Final

from gateway.kernel.journal.records.sessions import SubscriptionRecord
from gateway.kernel.messages.message import Message
from gateway.kernel.messages.origin import Origin
from gateway.kernel.messages.queued_message import QueuedMessage
from gateway.kernel.queueing.consumer import Consumer, Subscriber
from gateway.kernel.sessions.session import Session
from gateway.kernel.sessions.subscriptions import Terms, may_match
from gateway_mqtt.traffic.delivery_writer import DeliveryWriter
from gateway_mqtt.traffic.inflight import Inflight, InflightDelivery
from gateway_mqtt.translation.views import delivery_view_of

#: The terms of a message that the client does not want.
_UNWANTED: Final = Terms()


class AtMostOnce(Subscriber):
    """Delivers from the queue of QoS 0, without acknowledgements."""

    __slots__ = ("_client_id", "_forget", "_subscriptions", "_writer")

    def __init__(self, session: Session, writer: DeliveryWriter, forget: Callable[[Consumer], None]) -> None:
        self._writer = writer
        self._client_id = session.client_id
        self._subscriptions = session.subscriptions
        self._forget = forget

    @property
    def origin(self) -> Origin:
        """The client's connection."""
        return self._writer.origin

    def cancelled(self, consumer: Consumer) -> None:
        """Drop the consumer of a deleted queue."""
        self._forget(consumer)

    def deliver(self, consumer: Consumer, message: Message, redelivered: bool, entry: QueuedMessage | None) -> None:
        """Send a message, unless the session's other queue delivers it with a higher QoS."""
        terms = self._subscriptions.terms_of_a_match(message.routing_key)
        if terms is not None and terms.is_plain and not terms.qos:
            writer = self._writer
            packet = writer.encoder.at_most_once(message)
            if packet and len(packet) <= writer.plain_size:
                writer.outbox.pieces.append(packet)
                writer.record(len(packet), consumer.queue, message, redelivered, entry)
                return
        self._deliver_special(consumer, message, redelivered)

    def _deliver_special(self, consumer: Consumer, message: Message, redelivered: bool) -> None:
        terms = wanted(self._subscriptions.terms(message.routing_key), message, self._client_id)
        if terms is _UNWANTED:
            return
        if terms is not None and terms.qos and not delivery_view_of(message.header).is_copy:
            return
        self._writer.send_special(consumer.queue, message, terms, redelivered, None, qos=0)


class Acknowledged(Subscriber):
    """Delivers from the queue of QoS 1 and 2; each delivery has a packet identifier until it is acknowledged."""

    __slots__ = ("_client_id", "_deliveries", "_forget", "_inflight", "_qos2_state", "_subscriptions", "_writer")

    def __init__(
        self, session: Session, inflight: Inflight, writer: DeliveryWriter, forget: Callable[[Consumer], None]
    ) -> None:
        self._writer = writer
        self._inflight = inflight
        self._deliveries = inflight.deliveries
        self._client_id = session.client_id
        self._qos2_state = session.qos2_state
        self._subscriptions = session.subscriptions
        self._forget = forget

    @property
    def origin(self) -> Origin:
        """The client's connection."""
        return self._writer.origin

    def cancelled(self, consumer: Consumer) -> None:
        """Drop the consumer of a deleted queue."""
        self._forget(consumer)

    def deliver(self, consumer: Consumer, message: Message, redelivered: bool, entry: QueuedMessage | None) -> None:
        """Send a message with a packet identifier, which it keeps until the client acknowledges it."""
        assert entry is not None
        terms = self._terms_of_a_match(message.routing_key)
        if terms is not None and terms.is_plain and terms.qos and not redelivered:
            writer = self._writer
            packet = writer.encoder.acknowledged(message, terms.qos)
            can_send = packet.qos == 1 or (packet.qos == 2 and not self._qos2_state.is_durable)
            if can_send and packet.size <= writer.plain_size:
                packet_id = self._qos2_state.next_id(self._deliveries)
                self._deliveries[packet_id] = InflightDelivery(consumer.queue, entry, packet.qos)
                writer.add_numbered(packet, packet_id)
                writer.record(packet.size, consumer.queue, message, redelivered, entry)
                return
        self._deliver_special(consumer, message, redelivered, entry)

    def _terms(self, routing_key: str) -> Terms | None:
        """Return the terms of a message; ``None`` if no subscription of the session matches its routing key."""
        return self._subscriptions.terms(routing_key)

    def _terms_of_a_match(self, routing_key: str) -> Terms | None:
        """Return the terms of a message that arrived by a binding of the session."""
        return self._subscriptions.terms_of_a_match(routing_key)

    def _deliver_special(self, consumer: Consumer, message: Message, redelivered: bool, entry: QueuedMessage) -> None:
        recalled = self._recalled(entry)
        terms = self._terms(message.routing_key) if recalled is not None else self._wanted(message)
        if terms is _UNWANTED:
            self._settle_unsent(consumer, entry)
            return
        packet_id, qos = recalled or self._numbered(message, terms)
        is_resent = recalled is not None or (
            redelivered and qos == 1
        )  # with QoS 2 the session tells whether it was sent (MQTT-3.3.1-3)
        self._begin(packet_id, qos, entry, recalled is not None)
        if not self._writer.send_special(
            consumer.queue, message, terms, redelivered, entry, qos=qos, packet_id=packet_id, is_resent=is_resent
        ):
            self._give_up(packet_id, qos)
            self._settle_unsent(consumer, entry)
            return
        if qos:
            self._deliveries[packet_id] = InflightDelivery(consumer.queue, entry, qos)
        else:
            self._settle_unsent(consumer, entry)

    def _wanted(self, message: Message) -> Terms | None:
        """Return the terms of a message, ``None`` for no particular ones, ``_UNWANTED`` for an unwanted one."""
        terms = self._terms(message.routing_key)
        found = wanted(terms, message, self._client_id)
        if found is not terms and found is not None and not found.qos:
            return _UNWANTED  # the queue of QoS 0 delivers it
        return found

    def _numbered(self, message: Message, terms: Terms | None) -> tuple[int, int]:
        """Return a new packet identifier, 0 for QoS 0, and the QoS of a message."""
        published = delivery_view_of(message.header).qos
        qos = published if terms is None else min(terms.qos, published)
        return (self._qos2_state.next_id(self._deliveries), qos) if qos else (0, 0)

    def _recalled(self, entry: QueuedMessage) -> tuple[int, int] | None:
        """Return the identifier and QoS under which an earlier connection sent this message (MQTT-4.4.0-1)."""
        if not self._qos2_state.remembered:
            return None
        recalled = self._qos2_state.recall(entry.position)
        if recalled is None:
            self._inflight.give_up_before(entry.position)
        return recalled

    def _begin(self, packet_id: int, qos: int, entry: QueuedMessage, is_begun: bool) -> None:
        """Record the identifier of a QoS 2 delivery; delay the packet until identifier and message are durable."""
        if qos == 2 and self._qos2_state.is_durable:
            if not is_begun:
                self._qos2_state.begin(packet_id, entry.position)
            self._writer.promise()

    def _give_up(self, packet_id: int, qos: int) -> None:
        if qos == 2:
            self._qos2_state.abort(packet_id)

    def _settle_unsent(self, consumer: Consumer, entry: QueuedMessage) -> None:
        """Settle a message that the client will not acknowledge."""
        consumer.queue.accept(entry)
        consumer.settled()


class SharedSubscriber(Acknowledged):
    """Delivers from the queue of a shared subscription, on the terms of this member."""

    __slots__ = ("_binding_key", "_joined_on")

    def __init__(
        self,
        session: Session,
        inflight: Inflight,
        writer: DeliveryWriter,
        forget: Callable[[Consumer], None],
        subscription: SubscriptionRecord,
    ) -> None:
        super().__init__(session, inflight, writer, forget)
        self._joined_on = Terms.of(subscription)
        self._binding_key = subscription.binding_key

    def _terms(self, routing_key: str) -> Terms | None:
        """Return the terms of this member, for any message of the group."""
        return self._joined_on if may_match(self._binding_key, routing_key) else None

    def _terms_of_a_match(self, routing_key: str) -> Terms | None:
        """Return the same terms: a match in the exchange need not be a match of the filter."""
        return self._terms(routing_key)

    def _recalled(self, entry: QueuedMessage) -> None:
        """Return ``None``: unfinished deliveries of a group are in ``Session.held``."""


def wanted(terms: Terms | None, message: Message, client_id: str) -> Terms | None:
    """Return the terms on which a client wants a message: ``None`` for no particular ones, or ``_UNWANTED``.

    Topics with ``$`` require a filter that names it (MQTT-4.7.2-1). The client's own messages require a subscription
    without *no local* (MQTT-3.8.3-3). Copies of retained messages are always wanted.
    """
    view = delivery_view_of(message.header)
    if view.is_copy:
        return terms
    if terms is None:
        return _UNWANTED if message.routing_key.startswith("$") else None
    if terms.own is terms or view.client_id != client_id:
        return terms
    return _UNWANTED if terms.own is None else terms.own
