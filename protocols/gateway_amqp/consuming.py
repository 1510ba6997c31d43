"""The consuming methods of the basic class on one channel: consume, cancel, get, qos, and settlement of deliveries."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from pamqp import commands

from gateway.access import Operation
from gateway.kernel.errors import NotAllowed, NotImplementedHere, PreconditionFailed
from gateway.kernel.messages.message import Message
from gateway.kernel.messages.origin import Origin
from gateway.kernel.names import REPLY_TO
from gateway.kernel.queueing.ack_timeout import AckTimeout
from gateway.kernel.queueing.channel_counters import ChannelCounters
from gateway.kernel.queueing.consumer import Consumer, Credit, Resumption, Subscriber
from gateway.kernel.queueing.consumer_arguments import priority_of
from gateway.kernel.queueing.delivery_outcome import DeliveryOutcome
from gateway.kernel.queueing.expired_heads import drop_expired_steps
from gateway.kernel.queueing.leaving import leave
from gateway.kernel.queueing.ledger import Delivery, Ledger, settle_all
from gateway.kernel.queueing.queue import Queue
from gateway.kernel.queueing.queue_like import QueueLike
from gateway.kernel.queueing.queue_operations import require_queue
from gateway_amqp.deliveries import DeliveryWriter
from gateway_amqp.methods import table_of
from gateway_amqp.replies import DirectReplyTo
from gateway_amqp.scope import Scope
from gateway_amqp.topology import Topology

if TYPE_CHECKING:
    from gateway.kernel.messages.queued_message import QueuedMessage
    from gateway_amqp.publishing import Transactional


class Consuming(Subscriber):
    """Owns the consumers, the credit and the unsettled deliveries of one channel."""

    __slots__ = (
        "_ack_timeout",
        "_consumer_by_tag",
        "_ledger",
        "_prefetch",
        "_resumption",
        "_scope",
        "_settle",
        "_shared_credit",
        "_topology",
        "_transaction",
        "_writer",
        "channel_counters",
        "replies",
    )

    def __init__(self, scope: Scope, topology: Topology, writer: DeliveryWriter) -> None:
        self._scope = scope
        self._topology = topology
        self._writer = writer
        self._consumer_by_tag: dict[str, Consumer] = {}
        self._ledger = Ledger()
        self._ack_timeout = AckTimeout()
        self.channel_counters = ChannelCounters()
        self._prefetch = 0
        self._shared_credit: Credit | None = None
        self._resumption = Resumption()
        self._transaction: Transactional | None = None
        self._settle: Callable[[list[Delivery], DeliveryOutcome], None] = settle_all
        self.replies = DirectReplyTo(scope)

    # Consumers

    def consume(self, method: commands.Basic.Consume) -> None:
        """Start a consumer (60, 20, R99). :raises NotAllowed: when its tag is in use."""
        tag = method.consumer_tag or f"amq.ctag-{self._scope.token()}"
        queue: QueueLike
        if method.queue == REPLY_TO:
            queue = self.replies.open(method.no_ack)
        else:
            queue = self._topology.used_queue(method.queue, Operation.READ)
        if tag in self._consumer_by_tag:
            raise NotAllowed(f"attempt to reuse consumer tag '{tag}'")
        self._scope.vhost.queues.require_room_for_consumer(len(self._consumer_by_tag), self.origin.user)
        consumer = Consumer(
            queue,
            tag,
            self,
            self._scope.outbox,
            needs_settling=not method.no_ack,
            is_exclusive=method.exclusive,
            priority=priority_of(queue, table_of(method.arguments)),
            credit=Credit(self._prefetch),
            shared_credit=None if method.queue == REPLY_TO else self._shared_credit,
            arguments=table_of(method.arguments),
        )
        queue.consume(consumer)
        consumer.counters = self.channel_counters.for_queue(queue)
        self._consumer_by_tag[tag] = consumer
        self._ack_timeout.watch(queue)
        if not method.nowait:
            self._scope.reply(commands.Basic.ConsumeOk(tag))
        queue.dispatch()

    def cancel(self, method: commands.Basic.Cancel) -> None:
        """Cancel a consumer; an unknown tag is not an error (60, 30)."""
        consumer = self._consumer_by_tag.pop(method.consumer_tag or "", None)
        if consumer is not None:
            self._end(consumer)
        if not method.nowait:
            self._scope.reply(commands.Basic.CancelOk(method.consumer_tag))

    def cancelled(self, consumer: Consumer) -> None:
        """Notify the client of a cancelled consumer, if it has that capability: the queue was deleted (R98)."""
        self._consumer_by_tag.pop(consumer.tag, None)
        if self._scope.host.identity.has_capability("consumer_cancel_notify"):
            self._scope.reply(commands.Basic.Cancel(consumer.tag, nowait=True))

    @property
    def consumers(self) -> tuple[Consumer, ...]:
        """The consumers of the channel."""
        return tuple(self._consumer_by_tag.values())

    @property
    def unsettled(self) -> int:
        """The number of unsettled deliveries."""
        return len(self._ledger)

    def held(self) -> Iterator[Delivery]:
        """Iterate over the unsettled deliveries, and those settled in an open transaction."""
        undecided: Iterable[Delivery] = () if self._transaction is None else self._transaction.undecided
        return chain(self._ledger, undecided)

    @property
    def unsettled_size(self) -> int:
        """The approximate size of the unsettled deliveries in bytes, including those settled in an open transaction."""
        undecided = 0 if self._transaction is None else self._transaction.undecided_size
        return self._ledger.size + undecided

    @property
    def prefetch(self) -> tuple[int, int]:
        """The prefetch limits: of each new consumer, and of all consumers together; 0 for none."""
        return self._prefetch, self._shared_credit.limit if self._shared_credit is not None else 0

    def waiting(self) -> list[Consumer]:
        """Return the consumers that wait for credit or for room in the outbox."""
        return [consumer for consumer in self._consumer_by_tag.values() if consumer.is_waiting]

    def resume(self) -> None:
        """Resume consumers that waited for the channel's credit."""
        self._resumption.serve(self.waiting())

    def close(self) -> None:
        """Cancel all consumers, and requeue their deliveries at their old positions (R88)."""
        consumers = list(self._consumer_by_tag.values())
        self._consumer_by_tag.clear()
        leave(consumers, self._ledger.in_parts(), self._end)
        self.replies.abandon()
        self._transaction, self._settle = None, settle_all

    def _end(self, consumer: Consumer) -> None:
        consumer.queue.cancel(consumer)
        if not self.replies.close(consumer.queue):
            self._scope.vhost.delete_queue_if_done(consumer.queue)
        consumer.queue.dispatch()  # another consumer may be active now (R93)

    # Deliveries

    @property
    def origin(self) -> Origin:
        """The connection and channel of the consumers."""
        return self._scope.origin

    def deliver(self, consumer: Consumer, message: Message, redelivered: bool, entry: "QueuedMessage | None") -> None:
        """Send a message to the client."""
        tag = self._ledger.deliver(consumer, entry, redelivered)
        self._writer.deliver(consumer.tag, tag, redelivered, message)
        tracing = self._scope.vhost.tracing
        if tracing is not None:
            tracing.delivered(message, consumer.queue, redelivered, self._scope.origin, entry)

    def deliver_run(self, consumer: Consumer, run: "Sequence[QueuedMessage]") -> None:
        """Send several messages of a stream at once: a consumer may replay the whole stream."""
        first_tag = self._ledger.deliver_run(consumer, run)
        self._writer.deliver_run(consumer.tag, first_tag, run)
        tracing = self._scope.vhost.tracing
        if tracing is not None:
            for entry in run:
                tracing.delivered(entry.message, consumer.queue, False, self._scope.origin, entry)

    def get(self, method: commands.Basic.Get) -> None:
        """Send one message without a consumer, if there is one (60, 70, R90)."""
        queue = self._topology.used_queue(method.queue, Operation.READ)
        if self._scope.outbox.is_full and not method.no_ack:
            raise PreconditionFailed("the connection holds too many deliveries that it has not acknowledged")
        source = require_queue(queue, "basic.get")
        entry = source.get()
        if entry is None and len(source):  # many expired messages precede the first live one
            no_ack = method.no_ack
            self._scope.host.work_through(drop_expired_steps(source), lambda: self._got(source, source.take(), no_ack))
        else:
            self._got(source, entry, method.no_ack)

    def _got(self, queue: Queue, entry: "QueuedMessage | None", no_ack: bool) -> None:
        if entry is None:
            queue.counters.get_empty += 1
            self.channel_counters.for_queue(queue).get_empty += 1
            self._scope.reply(commands.Basic.GetEmpty())
            return
        self._count_get(queue, no_ack, entry.is_redelivered)
        if no_ack:
            queue.consumed(entry)
            tag = self._ledger.skip_tag()
        else:
            tag = self._ledger.add(queue, entry, None)
            self._ack_timeout.watch(queue)
        redelivered = entry.is_redelivered
        message = self._scope.vhost.interception.delivered(queue.shown(entry), queue.name, self._scope.origin)
        self._writer.get_ok(tag, redelivered, message, len(queue))
        if (tracing := self._scope.vhost.tracing) is not None:
            tracing.delivered(entry.message, queue, redelivered, self._scope.origin, None if no_ack else entry)

    def _count_get(self, queue: QueueLike, no_ack: bool, is_redelivered: bool) -> None:
        for counters in (queue.counters, self.channel_counters.for_queue(queue)):
            counters.get_no_ack += no_ack
            counters.get += not no_ack
            counters.redeliver += is_redelivered

    def accept(self, tag: int) -> None:
        """Acknowledge one delivery, as ``settle`` does (R87). :raises PreconditionFailed: for an unknown tag."""
        if self._transaction is not None or self._shared_credit is not None:
            self.settle(tag, False, DeliveryOutcome.ACCEPTED)
            return
        delivery = self._ledger.take(tag)
        if delivery is None:
            raise PreconditionFailed(f"unknown delivery tag {tag}")
        delivery.queue.accept(delivery.entry)
        consumer = delivery.consumer
        if consumer is not None:
            consumer.counters.ack += 1
            consumer.settled()
        else:
            self.channel_counters.for_queue(delivery.queue).ack += 1

    def settle(self, tag: int, is_multiple: bool, outcome: DeliveryOutcome) -> None:
        """Handle an ack, nack or reject (R87). :raises PreconditionFailed: for an unknown tag."""
        deliveries = self._ledger.remove(tag, is_multiple)
        if deliveries is None:
            raise PreconditionFailed(f"unknown delivery tag {tag}")
        if outcome is DeliveryOutcome.ACCEPTED:
            self._count_acks(deliveries)
        self._settle(deliveries, outcome)
        self.share()

    def _count_acks(self, deliveries: list[Delivery]) -> None:
        """Count acks at the queues of the deliveries; in most cases that is one queue for all."""
        by_queue = self.channel_counters.by_queue
        if len(by_queue) == 1:
            for tally in by_queue.values():
                tally.ack += len(deliveries)
        else:
            for delivery in deliveries:
                self.channel_counters.for_queue(delivery.queue).ack += 1

    def settle_through(self, transaction: "Transactional") -> None:
        """Pass settlements to a transaction from now on."""
        self._transaction = transaction
        self._settle = transaction.settle

    def restore_unsettled(self, deliveries: list[Delivery]) -> None:
        """Restore deliveries whose settlement was rolled back."""
        self._ledger.restore(deliveries)

    def recover(self, requeue: bool) -> None:
        """Requeue all unsettled deliveries at their old positions (60, 110). :raises NotImplementedHere: without
        requeue.
        """
        if not requeue:
            raise NotImplementedHere("requeue=false")
        settle_all(self._ledger.clear(), DeliveryOutcome.REQUEUED)
        self.share()

    def exceeded_timeout_ms(self, now_s: float, default_ms: int) -> int | None:
        """Return the acknowledgement timeout that a delivery has exceeded; ``None`` if none has."""
        return self._ack_timeout.exhausted(self._ledger, now_s, default_ms)

    # Credit

    def share(self) -> None:
        """Offer returned credit to the consumers that share it (R85)."""
        if self._shared_credit is not None:
            self.resume()

    def qos(self, method: commands.Basic.Qos) -> None:
        """Limit each new consumer, or all consumers of the channel together (60, 10, R83-R85)."""
        if method.prefetch_size:
            raise NotImplementedHere(f"prefetch_size!=0 ({method.prefetch_size})")
        if method.global_:
            self._share_credit(method.prefetch_count)
        else:
            self._prefetch = method.prefetch_count
        self._scope.reply(commands.Basic.QosOk())

    def _share_credit(self, limit: int) -> None:
        """Apply one limit to all consumers of the channel; their unsettled deliveries already count (R85)."""
        holders = [delivery.consumer for delivery in self.held() if delivery.consumer is not None]
        self._shared_credit = Credit(limit, used=len(holders)) if limit else None
        for consumer in {*self._consumer_by_tag.values(), *holders}:
            if not self.replies.is_consumed_by(consumer):
                consumer.share(self._shared_credit)
        self.resume()
