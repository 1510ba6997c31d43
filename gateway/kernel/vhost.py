"""A closed world of exchanges, queues and bindings, and the operations on it that every protocol shares."""

from collections.abc import Callable, Sequence
from enum import Enum, auto
from typing import TYPE_CHECKING

from gateway.kernel.advice import advice_on
from gateway.kernel.arguments import (
    COMPARED_EXCHANGE_ARGUMENTS,
    COMPARED_QUEUE_ARGUMENTS,
    require_equal,
    require_equivalent,
    type_name,
)
from gateway.kernel.binding import Binding, Destination
from gateway.kernel.bindings import Bindings
from gateway.kernel.changes import ExchangeRecord, Put, QueueRecord, Removed, VhostRecord
from gateway.kernel.counters import Traffic
from gateway.kernel.dead_letters import DeadLetters
from gateway.kernel.default_exchange import default_exchange
from gateway.kernel.equipping import Equipment
from gateway.kernel.errors import (
    AccessRefused,
    CommandInvalid,
    InternalError,
    NotFound,
    PreconditionFailed,
    ResourceLocked,
)
from gateway.kernel.events import Event, Events
from gateway.kernel.exchange import Exchange
from gateway.kernel.features.surroundings import Surroundings
from gateway.kernel.guards import guard_for, holds_messages, require_valid_guard, routing_type
from gateway.kernel.limits import require_room_for_queue
from gateway.kernel.message import Arguments, Message
from gateway.kernel.names import PREDECLARED, printable, require_free, require_short
from gateway.kernel.policies import Policies
from gateway.kernel.queue import RESIDENT_MESSAGES, Queue
from gateway.kernel.queue_arguments import require_possible, require_valid
from gateway.kernel.router import Router

if TYPE_CHECKING:
    from gateway.kernel.journal import Journal
    from gateway.kernel.ports import Clock, ExchangeFactory, ExchangeTypes, Origin, Tracer


class Verdict(Enum):
    """What became of a publish: some queue took it, none was bound, or one that was refused it (R66, R67)."""

    TAKEN = auto()
    UNROUTED = auto()
    REFUSED = auto()


class VirtualHost:
    """Owns the exchanges, queues and bindings of one virtual host.

    What is durable is recorded in the journal as it changes; ``install_*`` build an entity, live and in recovery alike.
    ``version`` rises when an exchange or a permission changes, so that publishers look both up again. ``policies`` are
    changed through the broker; ``equipment`` applies them.
    """

    def __init__(
        self,
        record: VhostRecord,
        journal: "Journal",
        clock: "Clock",
        exchange_types: "ExchangeTypes",
        events: Events,
        next_queue_id: Callable[[], int],
        resident_messages: int = RESIDENT_MESSAGES,
        permits_transient_queues: bool = True,
    ) -> None:
        self.name = record.name
        self.record = record
        self.version = 0
        self.tracers: tuple[Tracer, ...] = ()
        self.traffic = Traffic()
        self.queue_by_name: dict[str, Queue] = {}
        self.reply_queue_by_name: dict[str, Queue] = {}
        self.default_exchange = default_exchange(record.name, self.queue_by_name, self.reply_queue_by_name)
        self.exchange_by_name: dict[str, Exchange] = {"": self.default_exchange}
        self.exchange_types = exchange_types
        self._journal = journal
        self._events = events
        self._router = Router(self.exchange_by_name)
        self.bindings = Bindings(journal, events, self._router.forget)
        self._next_queue_id = next_queue_id
        self._resident_messages = resident_messages
        self._permits_transient_queues = permits_transient_queues
        self._exclusive_queues: dict[object, dict[Queue, None]] = {}
        self.policies = Policies()
        dead_letters = DeadLetters(self.name, self.exchange_by_name, self._router, journal, events)
        surroundings = Surroundings(clock, journal, dead_letters, self.delete_queue)
        self.equipment = Equipment(
            self.policies, surroundings, self.queue_by_name, self.exchange_by_name, self._router.forget
        )
        for name, type, is_internal in PREDECLARED:
            self.install_exchange(ExchangeRecord(self.name, name, type, False, is_internal, {}), is_durable=True)

    # Messages

    def publish(self, exchange: Exchange, message: Message, origin: "Origin | None" = None) -> Verdict:
        """Offer a message to every queue it is routed to. Without an ``origin`` no tracer sees it."""
        queues = exchange.routes.get(message.routing_key)
        if queues is None or message.header.sender_keys:
            queues = self._router.route(exchange, message)
        if self.tracers and origin is not None:
            self._trace_publish(message, queues, origin)
        exchange.published_in += 1
        self.traffic.published += 1
        if not queues:
            self.traffic.unroutable += 1
            return Verdict.UNROUTED
        exchange.published_out += len(queues)
        verdict = Verdict.TAKEN
        for queue in queues:
            if queue.offer(message) is not None:
                verdict = Verdict.REFUSED
        return verdict

    def _let_go(self, exchange: Exchange, message: Message) -> None:
        """Route a message that an exchange held back; one that a queue refuses now has nobody to be refused to."""
        for queue in self._router.route_past_guard(exchange, message):
            queue.offer(message)

    def trace_delivery(self, queue: Queue, message: Message, redelivered: bool, origin: "Origin") -> None:
        """Tell the tracers that a message was handed out."""
        for tracer in self.tracers:
            self._spared(tracer, lambda tracer: tracer.delivered(message, queue.name, redelivered, origin))

    def _trace_publish(self, message: Message, queues: Sequence[Queue], origin: "Origin") -> None:
        names = [queue.name for queue in queues]
        for tracer in self.tracers:
            self._spared(tracer, lambda tracer: tracer.published(message, names, origin))

    def _spared(self, tracer: "Tracer", tell: "Callable[[Tracer], None]") -> None:
        """Tell a tracer something. One that breaks must not cost the message that it watches."""
        try:
            tell(tracer)
        except Exception as error:  # the seam to a plugin: whatever it raises is its own fault
            details = {"tracer": type(tracer).__qualname__, "error": repr(error)}
            self._events.emit(Event("tracer.failed", self.name, details=details))

    # Exchanges

    def exchange(self, name: str) -> Exchange:
        """Return an exchange. :raises NotFound: when there is none of this name."""
        exchange = self.exchange_by_name.get(name)
        if exchange is None:
            raise NotFound(f"no exchange '{name}' in vhost '{self.name}'")
        return exchange

    def declare_exchange(
        self,
        name: str,
        type: str,
        *,
        is_durable: bool = False,
        is_auto_delete: bool = False,
        is_internal: bool = False,
        arguments: Arguments | None = None,
    ) -> Exchange:
        """Return the exchange of this name, made now if need be.

        :raises CommandInvalid: when no plugin of this virtual host supplies the type.
        :raises AccessRefused: when the name is the default exchange's or reserved.
        :raises PreconditionFailed: when it exists with other properties (R10), or the type refuses the arguments.
        """
        name = printable(name)
        arguments = dict(arguments or {})
        self.require_exchange_type(type, arguments)
        entity = f"exchange '{name}' in vhost '{self.name}'"
        exchange = self.exchange_by_name.get(name)
        if exchange is not None:
            self.require_not_default(name)
            require_equal(entity, "type", type, exchange.type_name)
            require_equal(entity, "durable", is_durable, exchange.is_durable)
            require_equal(entity, "auto_delete", is_auto_delete, exchange.is_auto_delete)
            require_equal(entity, "internal", is_internal, exchange.is_internal)
            require_equivalent(entity, COMPARED_EXCHANGE_ARGUMENTS, arguments, exchange.arguments)
            return exchange
        require_free("exchange", name)
        require_short("exchange", name)
        alternate = arguments.get("alternate-exchange", "")
        if not isinstance(alternate, str):
            raise PreconditionFailed(f"invalid type '{type_name(alternate)}' for arg 'alternate-exchange' in {entity}")
        require_valid_guard(type, arguments)
        queue_id = self._next_queue_id() if is_durable and holds_messages(type) else 0
        record = ExchangeRecord(self.name, name, type, is_auto_delete, is_internal, arguments, queue_id)
        exchange = self.install_exchange(record, is_durable=is_durable)
        if is_durable:
            self._journal.record(Put(record))
        self._events.emit(Event("exchange.created", self.name, name))
        return exchange

    def install_exchange(self, record: ExchangeRecord, *, is_durable: bool) -> Exchange:
        """Build an exchange from its record."""
        factory = self.require_exchange_type(record.type, record.arguments)
        exchange = Exchange(
            self.name,
            record.name,
            record.type,
            factory(record.arguments),
            is_durable=is_durable,
            is_auto_delete=record.is_auto_delete,
            is_internal=record.is_internal,
            arguments=record.arguments,
            routes_by_key=bool(getattr(factory, "routes_by_key", False)),
            guard=guard_for(
                record, self._journal, is_durable=is_durable, let_go=lambda message: self._let_go(exchange, message)
            ),
        )
        self.exchange_by_name[record.name] = exchange
        self.equipment.fit_exchange(exchange)
        self._router.forget()
        return exchange

    def delete_exchange(self, name: str, *, if_unused: bool = False) -> bool:
        """Delete an exchange with its bindings; return whether there was one.

        :raises AccessRefused: for the default exchange and those of the system.
        :raises PreconditionFailed: when it must be unused and is not.
        """
        self.require_not_default(name)
        if name.startswith("amq."):
            raise AccessRefused(f"deletion of system exchange '{name}' in vhost '{self.name}' not allowed")
        exchange = self.exchange_by_name.get(name)
        if exchange is None:
            return False
        if if_unused and self.bindings.of(exchange):
            raise PreconditionFailed(f"exchange '{name}' in vhost '{self.name}' in use")
        self._remove_exchange(exchange)
        return True

    def delete_all_exchanges(self) -> None:
        """Delete every exchange, those of the system too: the virtual host goes."""
        for exchange in list(self.exchange_by_name.values()):
            self._remove_exchange(exchange)

    def require_exchange_type(self, type: str, arguments: Arguments) -> "ExchangeFactory":
        """Return the factory of the exchange type that routes. :raises CommandInvalid: when nobody supplies it."""
        factory = self.exchange_types.get(routing_type(type, arguments))
        if factory is None:
            raise CommandInvalid(f"unknown exchange type '{type}'" if type else "invalid exchange type ''")
        return factory

    def require_not_default(self, name: str) -> None:
        """Refuse what nobody may do to the default exchange (R18)."""
        if not name:
            raise AccessRefused("operation not permitted on the default exchange")

    def _remove_exchange(self, exchange: Exchange) -> None:
        if self.exchange_by_name.pop(exchange.name, None) is None:
            return
        self.version += 1
        for binding in dict.fromkeys(self.bindings.of(exchange) + self.bindings.to(exchange)):  # one may lead to itself
            self._remove_binding(binding)
        self._router.forget()
        if exchange.guard is not None:
            exchange.guard.close()
        if exchange.is_durable:
            self._journal.record(Removed("exchange", (self.name, exchange.name)))
        self._events.emit(Event("exchange.deleted", self.name, exchange.name))

    # Queues

    def queue(self, name: str) -> Queue:
        """Return a queue. :raises NotFound: when there is none of this name."""
        queue = self.queue_by_name.get(name)
        if queue is None:
            raise NotFound(f"no queue '{name}' in vhost '{self.name}'")
        return queue

    def declare_queue(
        self,
        name: str,
        *,
        is_durable: bool = False,
        owner: object | None = None,
        is_auto_delete: bool = False,
        arguments: Arguments | None = None,
        is_server_named: bool = False,
        claimant: object | None = None,
    ) -> Queue:
        """Return the queue of this name, made now if need be.

        ``owner`` makes it exclusive; ``claimant`` is the connection that asks, exclusive or not.

        :raises AccessRefused: when the name is reserved and ``is_server_named`` does not allow it.
        :raises ResourceLocked: when exclusiveness or its owner differ (R31).
        :raises PreconditionFailed: when it exists with other properties or arguments (R10).
        """
        name = printable(name)
        arguments = dict(arguments or {})
        queue = self.queue_by_name.get(name)
        if queue is not None:
            self._require_equivalent_queue(queue, is_durable, owner, is_auto_delete, arguments, claimant)
            queue.use()
            return queue
        if not is_server_named:
            require_free("queue", name)
        require_short("queue", name)
        require_valid(f"queue '{name}' in vhost '{self.name}'", arguments)
        require_possible(
            f"queue '{name}' in vhost '{self.name}'",
            arguments,
            is_durable=is_durable,
            is_exclusive=owner is not None,
            is_auto_delete=is_auto_delete,
        )
        if not (is_durable or owner is not None or self._permits_transient_queues):
            raise InternalError(f"transient non-exclusive queues are not permitted: queue '{name}' is neither")
        require_room_for_queue(self.name, self.record.limits, name, len(self.queue_by_name))
        survives = is_durable and owner is None
        record = QueueRecord(self.name, name, self._next_queue_id() if survives else 0, is_auto_delete, arguments)
        queue = self.install_queue(record, is_durable=is_durable, owner=owner)
        if survives:
            self._journal.record(Put(record))
        self._events.emit(Event("queue.created", self.name, name))
        for argument, advice in advice_on(arguments):
            self._events.emit(Event("queue.advice", self.name, name, {"argument": argument, "advice": advice}))
        return queue

    def install_queue(self, record: QueueRecord, *, is_durable: bool, owner: object | None = None) -> Queue:
        """Build a queue from its record."""
        queue = Queue(
            self.name,
            record.name,
            self._journal,
            id=record.id,
            is_durable=is_durable,
            is_auto_delete=record.is_auto_delete,
            owner=owner,
            arguments=record.arguments,
            resident_messages=self._resident_messages,
            refit=self.equipment.refit,
        )
        self.equipment.fit(queue)
        self.queue_by_name[record.name] = queue
        if owner is not None:
            self._exclusive_queues.setdefault(owner, {})[queue] = None
        self._router.forget()  # the default exchange may be the alternate of any other
        return queue

    def delete_queue(self, queue: Queue, *, if_unused: bool = False, if_empty: bool = False) -> int:
        """Delete a queue with its messages, bindings and consumers; return how many messages waited.

        :raises PreconditionFailed: when it must be unused or empty and is not.
        """
        entity = f"queue '{queue.name}' in vhost '{self.name}'"
        if if_unused and len(queue.consumers):
            raise PreconditionFailed(f"{entity} in use")
        if if_empty and (len(queue) or queue.delays):
            raise PreconditionFailed(f"{entity} not empty")
        if queue.is_deleted:
            return 0
        queue.is_deleted = True
        queue.equip(())
        self.traffic.departed.add(queue.counters)
        del self.queue_by_name[queue.name]
        self._exclusive_queues.get(queue.owner, {}).pop(queue, None)
        for binding in self.bindings.to(queue):
            self._remove_binding(binding)
        self._router.forget()
        count = queue.purge()
        if queue.id:
            self._journal.record(Removed("queue", (self.name, queue.name)))
        for consumer in queue.consumers:
            queue.cancel(consumer)
            consumer.subscriber.cancelled(consumer)
        self._events.emit(Event("queue.deleted", self.name, queue.name))
        return count

    def delete_queue_if_done(self, queue: Queue) -> None:
        """Delete an auto-delete queue whose last consumer went (R32)."""
        if queue.is_auto_delete and queue.is_unused and not queue.is_deleted:
            self.delete_queue(queue)

    def release(self, owner: object) -> None:
        """Delete the exclusive queues of a connection that is gone, durable or not (R31)."""
        for queue in self._exclusive_queues.pop(owner, {}):
            self.delete_queue(queue)

    def open_replies(self, name: str) -> Queue:
        """Make a place that only the default exchange reaches, for a requester to wait for replies at."""
        queue = Queue(self.name, name, self._journal)
        self.reply_queue_by_name[name] = queue
        self._router.forget()
        return queue

    def close_replies(self, queue: Queue) -> None:
        """Forget such a place."""
        del self.reply_queue_by_name[queue.name]
        self._router.forget()

    def _require_equivalent_queue(
        self,
        queue: Queue,
        is_durable: bool,
        owner: object | None,
        is_auto_delete: bool,
        arguments: Arguments,
        claimant: object | None,
    ) -> None:
        queue.require_owner(claimant or owner)
        if (owner is None) != (queue.owner is None):
            raise ResourceLocked(queue.locked)
        entity = f"queue '{queue.name}' in vhost '{self.name}'"
        require_equal(entity, "durable", is_durable, queue.is_durable)
        require_equal(entity, "auto_delete", is_auto_delete, queue.is_auto_delete)
        require_equivalent(entity, COMPARED_QUEUE_ARGUMENTS, arguments, queue.arguments)

    # Bindings

    def bind(
        self, source: Exchange, destination: Destination, routing_key: str, arguments: Arguments | None = None
    ) -> Binding:
        """Return the binding that is this rule, made now if need be (R7).

        :raises AccessRefused: when the source is the default exchange (R18).
        :raises PreconditionFailed: when the exchange type cannot use the arguments.
        """
        self.require_not_default(source.name)
        return self.bindings.declare(source, destination, routing_key, dict(arguments or {}))

    def unbind(
        self, source: Exchange, destination: Destination, routing_key: str, arguments: Arguments | None = None
    ) -> bool:
        """Remove the binding that is this rule; return whether there was one."""
        binding = self.bindings.find(source, destination, routing_key, arguments or {})
        if binding is None:
            return False
        self._remove_binding(binding)
        return True

    def _remove_binding(self, binding: Binding) -> None:
        """Remove a binding, and with it an auto-delete exchange that has no other (R28)."""
        self.bindings.remove(binding)
        if binding.source.is_auto_delete and not self.bindings.of(binding.source):
            self._remove_exchange(binding.source)
