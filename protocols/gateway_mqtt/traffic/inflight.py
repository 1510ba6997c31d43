"""Unacknowledged deliveries to one client, by packet identifier (MQTT 5.0, 4.3 and 4.4)."""

from collections.abc import Iterator
from typing import Final

from gateway.kernel.clock import drained
from gateway.kernel.compiling import mypyc_attr
from gateway.kernel.messages.queued_message import QueuedMessage
from gateway.kernel.queueing.consumer import ConsumedQueue, Credit
from gateway.kernel.queueing.delivery_outcome import DeliveryOutcome
from gateway.kernel.queueing.ledger import in_slices, while_paused
from gateway_mqtt.codec.encoding import PUBREL, ack
from gateway_mqtt.codec.errors import MqttError
from gateway_mqtt.codec.packet_types import PacketType
from gateway_mqtt.codec.reasons import ReasonCode
from gateway_mqtt.meter import ClientCounters
from gateway_mqtt.scope import Scope

#: Deliveries of a closed connection that are requeued between two readings of the clock.
_STEP: Final = 64


@mypyc_attr(free_list_len=1)
class InflightDelivery:
    """A delivery that waits for its acknowledgement."""

    __slots__ = ("entry", "qos", "queue")

    def __init__(self, queue: ConsumedQueue, entry: QueuedMessage, qos: int) -> None:
        self.queue = queue
        self.entry = entry
        self.qos = qos


class Inflight:
    """Owns the unacknowledged deliveries of one connection, and the credit that limits them.

    ``credit`` is the client's Receive Maximum, shared by all its queues (MQTT-4.9.0-1) and restored here.
    ``deliveries`` are those whose message is still in its queue. The identifiers of QoS 2 deliveries after PUBREC are
    in the session.
    """

    __slots__ = ("_journal", "_outbox", "_qos2_state", "_session", "_version", "counters", "credit", "deliveries")

    def __init__(self, scope: Scope, receive_maximum: int, counters: ClientCounters) -> None:
        self._session = scope.session
        self._qos2_state = scope.session.qos2_state
        self._journal = scope.journal
        self._outbox = scope.outbox
        self._version = scope.version
        self.counters = counters
        self.credit = Credit(receive_maximum)
        self.deliveries: dict[int, InflightDelivery] = {}

    def __len__(self) -> int:
        return len(self.deliveries) + len(self._qos2_state.releasing)

    def repeat_releases(self) -> None:
        """Resend PUBREL for deliveries that the last connection did not complete (MQTT-4.4.0-1)."""
        for packet_id in self._qos2_state.releasing:
            self.credit.used += 1
            self._release(packet_id)

    def give_up_before(self, position: float) -> None:
        """Send PUBREL for remembered deliveries before this queue position, whose messages have left the queue."""
        for packet_id in self._qos2_state.give_up_before(position):
            self.credit.used += 1
            self._release(packet_id)

    def accept(self, packet_id: int) -> None:
        """Handle a PUBACK: acknowledge the message. :raises MqttError: if it was sent with QoS 2."""
        delivery = self.deliveries.get(packet_id)
        if delivery is None:
            return
        if delivery.qos != 1:
            raise MqttError(ReasonCode.PROTOCOL_ERROR, f"PUBACK for packet identifier {packet_id}, which has QoS 2")
        del self.deliveries[packet_id]
        self.counters.ack += 1
        delivery.queue.accept(delivery.entry)
        self.credit.used -= 1

    def refuse(self, packet_id: int) -> None:
        """Handle a PUBACK or PUBREC with an error: reject the message, which may be dead-lettered as over AMQP."""
        delivery = self.deliveries.pop(packet_id, None)
        if delivery is None:
            return
        if delivery.qos == 2:
            self._qos2_state.abort(packet_id)
        delivery.queue.settle(delivery.entry, DeliveryOutcome.REJECTED)
        self.credit.used -= 1

    def received(self, packet_id: int) -> None:
        """Handle a PUBREC: acknowledge the message and send PUBREL once that is durable (MQTT-4.3.3-8).

        :raises MqttError: if it was sent with QoS 1.
        """
        delivery = self.deliveries.get(packet_id)
        if delivery is None:
            if packet_id in self._qos2_state.releasing:
                self._release(packet_id)
            else:
                reason = ReasonCode.PACKET_IDENTIFIER_NOT_FOUND
                self._promise()
                self._outbox.write(ack(PacketType.PUBREL, self._version, packet_id, reason))
            return
        if delivery.qos != 2:
            raise MqttError(ReasonCode.PROTOCOL_ERROR, f"PUBREC for packet identifier {packet_id}, which has QoS 1")
        del self.deliveries[packet_id]
        self.counters.ack += 1
        self._qos2_state.proceed(packet_id)
        delivery.queue.accept(delivery.entry)
        self._release(packet_id)

    def _release(self, packet_id: int) -> None:
        """Send PUBREL."""
        self._promise()
        self._outbox.write(PUBREL + packet_id.to_bytes(2, "big"))

    def _promise(self) -> None:
        """Delay later packets until it is durable that the client has the message.

        Otherwise the client could free the identifier, and after a crash take the resent message for a new one.
        """
        if self._qos2_state.is_durable:
            self._outbox.promise(self._journal.pending_lsn)

    def completed(self, packet_id: int) -> None:
        """Handle a PUBCOMP: free the identifier."""
        if self._qos2_state.conclude(packet_id):
            self.credit.used -= 1

    def returning(self) -> Iterator[None]:
        """Return the steps that requeue the deliveries of a closed connection, or hold them for its client.

        Those of a group that were sent exactly once are held (MQTT-4.8.2-4).
        """
        packet_ids, deliveries = list(self.deliveries), list(self.deliveries.values())
        self.deliveries.clear()  # the dict is shared, so it is cleared and not replaced
        return while_paused(in_slices(deliveries), self._returning(packet_ids, deliveries))

    def _returning(self, packet_ids: list[int], deliveries: list[InflightDelivery]) -> Iterator[None]:
        for number, (packet_id, delivery) in enumerate(zip(packet_ids, drained(deliveries), strict=True), 1):
            self._return(packet_id, delivery)
            if number % _STEP == 0:
                yield

    def _return(self, packet_id: int, delivery: InflightDelivery) -> None:
        session, queue, entry = self._session, delivery.queue, delivery.entry
        if session.owns(queue):
            self._qos2_state.remember(entry.position, packet_id, delivery.qos)
            if delivery.qos == 2:
                entry.never_expire()
        elif delivery.qos == 2:
            session.hold(packet_id, queue, entry)
            return
        queue.settle(entry, DeliveryOutcome.REQUEUED)

    def take_held(self) -> list[tuple[int, InflightDelivery]]:
        """Return the deliveries that were held for this client and make them unacknowledged ones again."""
        taken = []
        for packet_id, (queue, entry) in self._session.take_held().items():
            self.credit.used += 1
            self.deliveries[packet_id] = delivery = InflightDelivery(queue, entry, 2)
            taken.append((packet_id, delivery))
        return taken
