"""A complete broker in memory: the real kernel and the built-in plugins, without reactor or disk.

A test declares queues on ``vhost``, publishes, and consumes with a ``Recipient``. Nothing is durable before
``commit``; ``crashed`` returns the broker as it restarts after a power failure::

    broker = MemoryBroker()
    orders = broker.vhost.declare_queue("orders", is_durable=True)
    broker.publish("orders", b"one", is_persistent=True)
    broker.commit()
    worker = Recipient()
    worker.consume(broker.crashed().vhost.queue("orders"))
    assert worker.bodies == [b"one"]
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from gateway.kernel.broker.broker import Broker
from gateway.kernel.broker.recovery import recover
from gateway.kernel.messages.message import Arguments, Header, Message, Properties, Value
from gateway.kernel.messages.native_header import NATIVE, native_header
from gateway.kernel.messages.origin import Origin
from gateway.kernel.messages.queued_message import QueuedMessage
from gateway.kernel.queueing.consumer import Consumer, Credit, Outlet, Selection, Subscriber
from gateway.kernel.queueing.delivery_outcome import DeliveryOutcome
from gateway.kernel.queueing.ledger import Ledger, settle_all
from gateway.kernel.queueing.queue import RESIDENT_MESSAGES, Queue
from gateway.kernel.queueing.queue_like import QueueLike
from gateway.kernel.vhosts.queue_rules import QueueRules
from gateway.kernel.vhosts.verdict import Verdict
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.patterns import compile_pattern
from gateway.plugins.enabling import enabled_plugins
from gateway.plugins.registry import PluginRegistry, PluginView, load_plugins
from gateway.testing.clock import FakeClock
from gateway_memory import MemoryStore


class MemoryBroker:
    """One node without a network.

    ``vhost`` is its virtual host ``/``. ``registry`` holds the available plugins, by default the built-in ones.
    """

    def __init__(
        self,
        store: MemoryStore | None = None,
        *,
        clock: FakeClock | None = None,
        registry: PluginRegistry | None = None,
        resident_messages: int = RESIDENT_MESSAGES,
        permits_transient_queues: bool = True,
        default_queue_type: str = "classic",
        reserve: int = 0,
    ) -> None:
        self.store = store or MemoryStore()
        self.clock = clock or FakeClock()
        self._registry = registry or load_plugins()
        self._queue_rules = QueueRules(resident_messages, permits_transient_queues, default_queue_type, reserve=reserve)
        self.kernel = Broker(
            self.store,
            self.clock,
            {NATIVE.name: NATIVE},
            self._view,
            node="gateway@test",
            compile_pattern=compile_pattern,
            queue_rules=self._queue_rules,
        )
        recover(self.kernel, self.store.recover_runs())
        self.vhost: VirtualHost = self.kernel.declare_vhost("/")

    def publish(
        self,
        routing_key: str,
        body: bytes = b"",
        *,
        exchange: str = "",
        is_persistent: bool = False,
        headers: Mapping[str, Value] | None = None,
        sender_keys: tuple[str, ...] = (),
    ) -> Verdict:
        """Publish a message; return the outcome. :raises NotFound: if the exchange does not exist."""
        header = header_of(is_persistent=is_persistent, headers=headers, sender_keys=sender_keys)
        return self.vhost.publish(self.vhost.exchange(exchange), Message(exchange, routing_key, header, body))

    def advance(self, seconds: float) -> None:
        """Advance the clock between two turns."""
        self.end_turn()
        self.clock.advance(seconds)
        self.end_turn()

    def end_turn(self) -> None:
        """End the turn: all changes since the last one become one step of the store."""
        self.kernel.journal.flush()

    def commit(self) -> None:
        """End the turn and make everything durable."""
        self.end_turn()
        self.store.commit()

    def stopped(self) -> "MemoryBroker":
        """Stop normally; return the broker of the next start. Recipients must leave first."""
        self.kernel.stop()
        self.commit()
        return self.crashed()

    def crashed(self) -> "MemoryBroker":
        """Return the broker that recovers from the committed changes, as after a crash."""
        return MemoryBroker(
            self.store.reopened(),
            clock=self.clock,
            registry=self._registry,
            resident_messages=self._queue_rules.resident_messages,
            permits_transient_queues=self._queue_rules.permits_transient,
            default_queue_type=self._queue_rules.default_type,
            reserve=self._queue_rules.reserve,
        )

    def _view(self, vhost: str, recorded: Mapping[str, Value]) -> PluginView:
        return self._registry.view(vhost, enabled_plugins({}, recorded))


def header_of(
    *,
    is_persistent: bool = False,
    headers: Mapping[str, Value] | None = None,
    sender_keys: tuple[str, ...] = (),
) -> Header:
    """Return the header of a published message."""
    if not headers:  # most messages of most tests
        return Header(NATIVE, _ENCODED[is_persistent], is_persistent=is_persistent, sender_keys=sender_keys)
    header = native_header(Properties(delivery_mode=2 if is_persistent else 1, headers=headers))
    header.sender_keys = sender_keys
    return header


#: The properties of transient and persistent messages without headers, encoded once.
_ENCODED: Final = {
    is_persistent: native_header(Properties(delivery_mode=2 if is_persistent else 1)).raw
    for is_persistent in (False, True)
}


@dataclass(frozen=True, slots=True)
class Received:
    """One delivery to a recipient; ``tag`` is ``None`` if it needs no acknowledgement."""

    queue: str
    consumer_tag: str
    body: bytes
    redelivered: bool
    tag: int | None
    message: Message


class Recipient(Subscriber):
    """A client that consumes from any number of queues over one channel and records every delivery.

    A kernel ``Subscriber`` with an ``Outlet``: set ``is_open`` to False to stop deliveries; call ``resume`` after
    setting it to True. Recipients may share ``log`` to record the order of deliveries across them. ``prefetch``
    limits all consumers of the recipient together.
    """

    def __init__(self, log: "list[tuple[Recipient, Received]] | None" = None, *, prefetch: int = 0) -> None:
        self.outlet = Outlet()
        self.received: list[Received] = []
        self.cancelled_tags: list[str] = []
        self.consumers: list[Consumer] = []
        self.ledger = Ledger()
        self.log = [] if log is None else log
        self._shared_credit = Credit(prefetch) if prefetch else None

    @property
    def bodies(self) -> list[bytes]:
        """The bodies of all received messages, in order."""
        return [received.body for received in self.received]

    @property
    def origin(self) -> Origin:
        """The recipient's address, for listings."""
        return Origin("recipient", 1, "guest", "amqp091")

    @property
    def is_open(self) -> bool:
        """Whether the recipient accepts deliveries."""
        return self.outlet.is_open

    @is_open.setter
    def is_open(self, is_open: bool) -> None:
        self.outlet.is_open = is_open

    # Actions of a client

    def consume(
        self,
        queue: QueueLike,
        tag: str = "",
        *,
        prefetch: int = 0,
        settles: bool = True,
        priority: int = 0,
        is_exclusive: bool = False,
        arguments: Arguments | None = None,
        selection: Selection | None = None,
    ) -> Consumer:
        """Consume from a queue; ``settles`` means that each delivery is acknowledged explicitly."""
        consumer = Consumer(
            queue,
            tag or f"consumer-{len(self.consumers) + 1}",
            self,
            self.outlet,
            needs_settling=settles,
            is_exclusive=is_exclusive,
            priority=priority,
            credit=Credit(prefetch),
            shared_credit=self._shared_credit,
            arguments=arguments,
            selection=selection,
        )
        queue.consume(consumer)
        self.consumers.append(consumer)
        queue.dispatch()
        return consumer

    def get(self, queue: Queue) -> Received | None:
        """Fetch one message, to be acknowledged; ``None`` if the queue is empty."""
        entry = queue.get()
        if entry is None:
            return None
        tag = self.ledger.add(queue, entry, None)
        return self._remember(
            Received(queue.name, "", entry.message.body, entry.is_redelivered, tag, queue.shown(entry))
        )

    def settle(
        self, tag: int | None, outcome: DeliveryOutcome = DeliveryOutcome.ACCEPTED, *, up_to: bool = False
    ) -> None:
        """Settle the delivery of this tag, or all deliveries ``up_to`` it; tag 0 with ``up_to`` means all."""
        deliveries = self.ledger.remove(tag or 0, up_to)
        assert deliveries is not None, f"no delivery {tag} is outstanding"
        settle_all(deliveries, outcome)
        self.resume()

    def cancel(self, consumer: Consumer) -> None:
        """Cancel one consumer; its unacknowledged deliveries stay outstanding."""
        self.consumers.remove(consumer)
        consumer.queue.cancel(consumer)
        consumer.queue.dispatch()

    def resume(self) -> None:
        """Make waiting consumers eligible again: there is room, or shared credit."""
        for consumer in self.consumers:
            if consumer.is_waiting:
                consumer.queue.reconsider(consumer)

    def leave(self) -> None:
        """Disconnect: consumers end, and unacknowledged messages return to their positions."""
        consumers, self.consumers = self.consumers, []
        for consumer in consumers:
            consumer.queue.cancel(consumer)
        settle_all(self.ledger.clear(), DeliveryOutcome.REQUEUED)
        for consumer in consumers:
            consumer.queue.dispatch()

    # Calls from the kernel

    def deliver(self, consumer: Consumer, message: Message, redelivered: bool, entry: QueuedMessage | None) -> None:
        """Record a delivery."""
        tag = None if entry is None else self.ledger.add(consumer.queue, entry, consumer)
        self._remember(Received(consumer.queue.name, consumer.tag, message.body, redelivered, tag, message))

    def cancelled(self, consumer: Consumer) -> None:
        """Record that the queue of a consumer was deleted."""
        self.consumers.remove(consumer)
        self.cancelled_tags.append(consumer.tag)

    def _remember(self, received: Received) -> Received:
        self.received.append(received)
        self.log.append((self, received))
        return received
