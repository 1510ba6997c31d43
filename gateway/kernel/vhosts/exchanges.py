"""The exchanges of a virtual host."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from gateway.kernel.clock import drained
from gateway.kernel.errors import AccessRefused, CommandInvalid, PreconditionFailed, Refused
from gateway.kernel.events import Event
from gateway.kernel.faults import BadAnswer, described, shown
from gateway.kernel.features.interceptors import holds_messages, interceptor_for, routing_type
from gateway.kernel.journal.changes import Removed
from gateway.kernel.journal.entity_codec import writable
from gateway.kernel.journal.records.topology import ExchangeRecord
from gateway.kernel.messages.message import Arguments
from gateway.kernel.names import PREDECLARED, RESERVED_PREFIX, require_not_default
from gateway.kernel.routing.bindings import MOST_AT_ONCE
from gateway.kernel.routing.exchange import Exchange
from gateway.kernel.routing.exchange_type import RoutesBy, routes_by
from gateway.kernel.routing.inert_exchange import InertType
from gateway.kernel.vhosts.context import VhostContext
from gateway.kernel.vhosts.due_messages import DueMessages

if TYPE_CHECKING:
    from gateway.kernel.routing.exchange_type import ExchangeFactory, ExchangeType, ExchangeTypes
    from gateway.kernel.vhosts.declarations import ExchangeDeclaration

#: The methods that every exchange type must have.
_METHODS: Final = ("bind", "unbind", "route")


class Exchanges:
    """Declares, builds and deletes the exchanges of one virtual host, and stores the durable ones.

    ``types`` are the factories by exchange type; ``use`` replaces them. ``departed`` is called after each deletion, so
    that publishers look up their exchange again.
    """

    def __init__(
        self,
        context: VhostContext,
        exchange_by_name: dict[str, Exchange],
        types: "ExchangeTypes",
        departed: Callable[[], None],
    ) -> None:
        self._context = context
        self._exchange_by_name = exchange_by_name
        self.types = types
        self._departed = departed
        self.recent: list[Exchange] | None = None  # those created while types are swapped
        context.bindings.on_abandoned = self._remove
        for name, type, is_internal in PREDECLARED:
            record = ExchangeRecord(context.vhost_name, name, type, False, is_internal, {})
            self.install(record, is_durable=True)

    def provide_internal(self, name: str) -> None:
        """Create an internal topic exchange of a plugin, unless it exists. It is not stored."""
        if name not in self._exchange_by_name:
            record = ExchangeRecord(self._context.vhost_name, name, "topic", False, True, {})
            self.install(record, is_durable=True)

    def factory(self, type: str, arguments: Arguments) -> "ExchangeFactory":
        """Return the factory of an exchange type. :raises CommandInvalid: when no plugin supplies it."""
        return factory_of(self.types, type, arguments)

    def declare(self, declaration: "ExchangeDeclaration") -> Exchange:
        """Return the declared exchange; create it if needed. Raises as ``VirtualHost.declare_exchange`` does."""
        exchange = self._exchange_by_name.get(declaration.name)
        if exchange is None or exchange.type_name != declaration.type:  # an inert one may exist
            self.factory(declaration.type, declaration.arguments)
        if exchange is not None:
            require_not_default(declaration.name)
            declaration.require_equivalent(exchange)
            return exchange
        declaration.require_new()
        return self._make(declaration)

    def install(self, record: ExchangeRecord, *, is_durable: bool) -> Exchange:
        """Build an exchange from its record.

        :raises Refused: when no plugin supplies its type, or the type refuses its arguments or fails.
        """
        factory = self.factory(record.type, record.arguments)
        type, by = self._type_from(factory, record.vhost, record.name, record.type, record.arguments)
        return self._place(record, type, by, is_durable=is_durable)

    def restore(self, record: ExchangeRecord) -> Exchange:
        """Build a stored exchange; it is inert when its type is unavailable."""
        try:
            return self.install(record, is_durable=True)
        except Refused as refusal:
            reason = _remedied(refusal)
            exchange = self._place(record, InertType(), RoutesBy(), is_durable=True, inert_reason=reason)
            details = {"type": record.type, "reason": exchange.inert_reason}
            self._context.events.emit(Event("exchange.inert", record.vhost, record.name, details))
            return exchange

    def _type_from(
        self, factory: "ExchangeFactory", vhost: str, name: str, type_name: str, arguments: Arguments
    ) -> "tuple[ExchangeType, RoutesBy]":
        """Return an instance of the exchange type, and what its routes depend on.

        :raises PreconditionFailed: when the factory refuses or fails.
        """
        try:
            type = factory(arguments)
            by = routes_by(type, factory)
            missing = [method for method in _METHODS if not callable(getattr(type, method, None))]
            if missing:
                raise BadAnswer(f"the factory returned {shown(type)}, which has no {missing[0]}()")
        except Refused:
            raise
        except BaseException as error:  # plugin code: only this declaration fails
            self._context.faults.contain_in_type("declare", error, vhost, name, type_name, factory)
            failed = f"exchange type '{type_name}' failed to make exchange '{name}': {described(error)}"
            raise PreconditionFailed(failed) from None
        return type, by

    def _place(
        self,
        record: ExchangeRecord,
        type: "ExchangeType",
        by: RoutesBy,
        *,
        is_durable: bool,
        inert_reason: str = "",
    ) -> Exchange:
        """Build an exchange and add it to the virtual host."""
        exchange = Exchange(
            self._context.vhost_name,
            record.name,
            record.type,
            type,
            is_durable=is_durable,
            is_auto_delete=record.is_auto_delete,
            is_internal=record.is_internal,
            arguments=record.arguments,
            routes_by_key=by.key,
            routes_by_headers=by.headers,
            interceptor=interceptor_for(
                record,
                self._context.journal,
                self._context.deduplication_caches,
                self._context.trace_events,
                is_durable=is_durable,
                release_due=lambda held, entry: due_messages.route(held, entry),
            ),
        )
        due_messages = DueMessages(exchange, self._context)
        exchange.inert_reason = inert_reason
        self._context.keeping.fit(exchange)
        self._exchange_by_name[record.name] = exchange
        if self.recent is not None:
            self.recent.append(exchange)
        self._context.policy_applier.apply_to_exchange(exchange)
        self._context.router.forget()
        return exchange

    def release(self) -> None:
        """Release the callback: the virtual host was deleted."""
        self._departed = lambda: None

    # Replacing exchange types

    def declared(self) -> list[Exchange]:
        """Return all exchanges but the default one."""
        return [exchange for exchange in self._exchange_by_name.values() if exchange.name]

    def holds(self, exchange: Exchange) -> bool:
        """Return whether an exchange was not deleted."""
        return self._exchange_by_name.get(exchange.name) is exchange

    def offered(self, types: "ExchangeTypes | None", exchange: Exchange) -> "tuple[ExchangeFactory | None, str]":
        """Return the factory of an exchange among ``types``, by default those in use; or why there is none."""
        try:
            return factory_of(self.types if types is None else types, exchange.type_name, exchange.arguments), ""
        except Refused as refusal:
            return None, _remedied(refusal)

    def type_of(self, exchange: Exchange, factory: "ExchangeFactory") -> "tuple[ExchangeType, RoutesBy]":
        """Return a new type for an exchange, and what its routes depend on.

        :raises PreconditionFailed: when the factory refuses or fails.
        """
        return self._type_from(factory, exchange.vhost_name, exchange.name, exchange.type_name, exchange.arguments)

    def fit_keeping(self, exchange: Exchange) -> None:
        """Let the type of an exchange keep messages, if it does and the former type did not."""
        self._context.keeping.fit(exchange)

    def use(self, types: "ExchangeTypes") -> None:
        """Build later exchanges with these types, and forget all routes."""
        self.types = types
        self._context.router.forget()

    def emit(self, event: Event) -> None:
        """Emit an event about an exchange."""
        self._context.events.emit(event)

    def delete(self, name: str, *, if_unused: bool = False) -> bool:
        """Delete an exchange with its bindings; return whether it existed.

        Large numbers of bindings are removed first, in slices.
        :raises AccessRefused: for the default exchange and those of the system.
        :raises PreconditionFailed: when it must be unused and is not.
        """
        exchange = self._deletable(name, if_unused)
        if exchange is None:
            return False
        if self._context.bindings.count_at(exchange) > MOST_AT_ONCE:
            self._context.journal.clock.background.add(self._deleting(exchange))
        else:
            self._remove(exchange)
        return True

    def deleting(self, name: str, *, if_unused: bool = False) -> Iterator[None]:
        """Return the steps that delete an exchange and its bindings; raises as ``delete`` does.

        The exchange exists until its last binding is removed.
        """
        exchange = self._deletable(name, if_unused)
        return iter(()) if exchange is None else self._deleting(exchange)

    def _deleting(self, exchange: Exchange) -> Iterator[None]:
        yield from self._context.bindings.removing(exchange)
        if self._exchange_by_name.get(exchange.name) is exchange:
            self._remove(exchange)

    def _deletable(self, name: str, if_unused: bool) -> Exchange | None:
        """Return the exchange of this name, if it exists and may be deleted."""
        require_not_default(name)
        vhost_name = self._context.vhost_name
        if name.startswith(RESERVED_PREFIX):
            raise AccessRefused(f"deletion of system exchange '{name}' in vhost '{vhost_name}' not allowed")
        exchange = self._exchange_by_name.get(name)
        if exchange is not None and if_unused and self._context.bindings.of(exchange):
            raise PreconditionFailed(f"exchange '{name}' in vhost '{vhost_name}' in use")
        return exchange

    def deleting_all(self) -> Iterator[None]:
        """Return the steps that delete every exchange, predeclared ones too: the virtual host is deleted."""
        for exchange in drained(list(self._exchange_by_name.values())):
            yield from self._deleting(exchange)
            yield

    def _make(self, declaration: "ExchangeDeclaration") -> Exchange:
        """Create and store a new exchange."""
        keeps_messages = declaration.is_durable and holds_messages(declaration.type)
        record = ExchangeRecord(
            declaration.vhost_name,
            declaration.name,
            declaration.type,
            declaration.is_auto_delete,
            declaration.is_internal,
            dict(declaration.arguments),
            self._context.next_queue_id() if keeps_messages else 0,
        )
        put = writable(record)
        exchange = self.install(record, is_durable=declaration.is_durable)
        if exchange.is_durable:
            self._context.journal.record(put)
        details = {
            "type": record.type,
            "durable": exchange.is_durable,
            "auto_delete": record.is_auto_delete,
            "internal": record.is_internal,
            "arguments": record.arguments,
        }
        self._context.events.emit(Event("exchange.created", record.vhost, record.name, details))
        return exchange

    def _remove(self, exchange: Exchange) -> None:
        """Remove an exchange with its bindings, and auto-delete exchanges that lose their last binding (R28)."""
        context = self._context
        if self._exchange_by_name.pop(exchange.name, None) is None:
            return
        self._departed()
        bindings = context.bindings.of(exchange) + context.bindings.to(exchange)
        for binding in dict.fromkeys(bindings):  # an exchange may be bound to itself
            context.bindings.remove(binding)
        context.router.forget()
        context.policy_applier.stop_archiving(exchange)
        if exchange.interceptor is not None:
            exchange.interceptor.close()
        if exchange.is_durable:
            context.journal.record(Removed("exchange", (context.vhost_name, exchange.name)))
        context.events.emit(Event("exchange.deleted", context.vhost_name, exchange.name))


def _remedied(refusal: Refused) -> str:
    """Return why an exchange is inert, with the remedy."""
    return f"{refusal}; repair or enable the plugin that supplies it, or delete the exchange"


def factory_of(types: "ExchangeTypes", type: str, arguments: Arguments) -> "ExchangeFactory":
    """Return the factory of an exchange type. :raises CommandInvalid: when no plugin supplies it."""
    routing = routing_type(type, arguments)
    factory = types.get(routing)
    if factory is None:
        raise CommandInvalid(f"unknown exchange type '{routing}'" if routing else "invalid exchange type ''")
    return factory
