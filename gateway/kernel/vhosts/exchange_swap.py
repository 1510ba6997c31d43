"""The replacement of the exchange types of a running virtual host: built beside those in use, swapped in one turn."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from gateway.kernel.errors import PreconditionFailed, Refused
from gateway.kernel.events import Event
from gateway.kernel.faults import described
from gateway.kernel.features.interceptors import routing_type
from gateway.kernel.routing.binding import Binding, Destination
from gateway.kernel.routing.exchange import Exchange
from gateway.kernel.routing.exchange_type import RoutesBy
from gateway.kernel.routing.inert_exchange import InertType

if TYPE_CHECKING:
    from gateway.kernel.messages.message import Message
    from gateway.kernel.routing.bindings import Bindings
    from gateway.kernel.routing.exchange_type import ExchangeType, ExchangeTypes
    from gateway.kernel.vhosts.exchanges import Exchanges

#: Bindings and exchanges handled between two readings of the clock.
_STEP: Final = 16

_UNDECLARED: Final = RoutesBy()


class TwinType:
    """The type of an exchange while its successor is built: routes with ``old``, binds and unbinds in both.

    ``bound_bindings`` are those in ``new``. ``failure`` is what ``new`` raised for a change of a client, which ``old``
    accepted.
    """

    def __init__(self, old: "ExchangeType", new: "ExchangeType") -> None:
        self.old = old
        self.new = new
        self.bound_bindings: set[Binding] = set()
        self.failure: BaseException | None = None

    def bind(self, binding: Binding) -> None:
        """Bind in both types."""
        self.old.bind(binding)
        try:
            self.new.bind(binding)
            self.bound_bindings.add(binding)
        except BaseException as error:  # plugin code: the swap fails, not the client's binding
            self.failure = error

    def unbind(self, binding: Binding) -> None:
        """Unbind in both types."""
        self.old.unbind(binding)
        self.forget(binding)

    def forget(self, binding: Binding) -> None:
        """Unbind in the new type, if it is bound there."""
        if binding in self.bound_bindings:
            self.bound_bindings.remove(binding)
            try:
                self.new.unbind(binding)
            except BaseException as error:  # plugin code: the swap fails
                self.failure = error

    def route(self, message: "Message") -> "Iterable[Destination]":
        """Return the destinations of the old type."""
        return self.old.route(message)

    def __getattr__(self, name: str) -> object:
        """Return an optional method of the old type, such as ``peek`` or those of a type that keeps messages."""
        return getattr(self.old, name)


@dataclass(slots=True)
class _Successor:
    """The new type of an exchange, or the reason why it becomes inert; ``unheeded`` are bindings that it refuses."""

    exchange: Exchange
    type: "ExchangeType"
    by: RoutesBy = _UNDECLARED
    inert_reason: str = ""
    twin: TwinType | None = None
    unheeded: set[Binding] = field(default_factory=set)
    formerly_unheeded: list[Binding] = field(default_factory=list)


class ExchangeSwap:
    """Replaces the exchange types of one virtual host. One swap at a time.

    ``is_changed`` returns whether the supplier of an exchange type changed, so that its exchanges are built again even
    if the factory is the same object. Exchanges without a type become inert if ``may_become_inert``, else the swap
    fails. Run ``steps``; after the last one, in the same turn, call ``commit``. Call ``abandon`` after an error.
    """

    def __init__(
        self,
        exchanges: "Exchanges",
        bindings: "Bindings",
        types: "ExchangeTypes",
        is_changed: Callable[[str], bool],
        *,
        may_become_inert: bool,
    ) -> None:
        self._exchanges = exchanges
        self._bindings = bindings
        self._types = types
        self._is_changed = is_changed
        self._may_become_inert = may_become_inert
        self._successors: list[_Successor] = []

    def steps(self) -> Iterator[None]:
        """Return the steps that build the new types. :raises Refused: if one refuses its exchange or a binding."""
        recent = self._exchanges.recent = []
        for number, exchange in enumerate(self._exchanges.declared()):
            yield from self._building(exchange)
            if number % _STEP == 0:
                yield
        while recent:
            yield from self._building(recent.pop())
        for successor in self._successors:
            if successor.twin is not None and successor.twin.failure is not None:
                raise self._refusal(successor.exchange, successor.twin.failure)

    def commit(self) -> list[Exchange]:
        """Put the new types in use; return the exchanges that got one. Publishes of later turns are routed by them."""
        self._exchanges.recent = None
        swapped = [successor for successor in self._successors if self._exchanges.holds(successor.exchange)]
        for successor in swapped:
            self._put(successor)
        self._successors = []
        self._exchanges.use(self._types)
        return [successor.exchange for successor in swapped]

    def abandon(self) -> None:
        """Leave every exchange with the type it had."""
        self._exchanges.recent = None
        for successor in self._successors:
            if successor.twin is not None and successor.exchange.type is successor.twin:
                successor.exchange.type = successor.twin.old
        self._successors = []

    def _building(self, exchange: Exchange) -> Iterator[None]:
        """Build the successor of an exchange's type, if it gets one."""
        if not self._exchanges.holds(exchange):
            return
        factory, lacks = self._exchanges.offered(self._types, exchange)
        if factory is None:
            if not exchange.inert_reason:
                self._retire(exchange, lacks)
            return
        is_same = factory is self._exchanges.offered(None, exchange)[0]
        if is_same and not self._is_changed(routing_type(exchange.type_name, exchange.arguments)):
            return
        try:
            new, by = self._exchanges.type_of(exchange, factory)
        except Refused as refusal:
            if exchange.inert_reason:
                return  # it stays inert
            raise self._refusal(exchange, refusal) from None
        twin = TwinType(exchange.type, new)
        successor = _Successor(exchange, new, by, twin=twin)
        self._successors.append(successor)
        exchange.type = twin
        yield from self._binding(successor, twin)

    def _retire(self, exchange: Exchange, reason: str) -> None:
        if not self._may_become_inert:
            raise PreconditionFailed(f"exchange '{exchange.name}' in vhost '{exchange.vhost_name}': {reason}")
        self._successors.append(_Successor(exchange, InertType(), inert_reason=reason))

    def _binding(self, successor: _Successor, twin: TwinType) -> Iterator[None]:
        exchange = successor.exchange
        for number, binding in enumerate(self._bindings.of(exchange)):
            if self._bindings.holds(binding) and binding not in twin.bound_bindings:
                was_unheeded = self._bindings.is_unheeded(binding)
                try:
                    twin.new.bind(binding)
                    twin.bound_bindings.add(binding)
                    if was_unheeded:
                        successor.formerly_unheeded.append(binding)
                except BaseException as error:  # plugin code
                    if not exchange.inert_reason and not was_unheeded:
                        raise self._refusal(exchange, error, binding) from None
                    successor.unheeded.add(binding)
            if number % _STEP == 0:
                yield

    def _put(self, successor: _Successor) -> None:
        exchange, twin = successor.exchange, successor.twin
        if twin is not None:
            for binding in successor.formerly_unheeded:  # may be unbound meanwhile, without a call of the twin
                if not self._bindings.holds(binding):
                    twin.forget(binding)
        self._bindings.replace_unheeded(exchange, successor.unheeded)
        exchange.type = successor.type
        exchange.routes_by_key = successor.by.key and exchange.interceptor is None
        exchange.routes_by_headers = successor.by.headers and exchange.interceptor is None
        self._exchanges.fit_keeping(exchange)
        was_inert, exchange.inert_reason = bool(exchange.inert_reason), successor.inert_reason
        if successor.inert_reason:
            details = {"type": exchange.type_name, "reason": successor.inert_reason}
            self._exchanges.emit(Event("exchange.inert", exchange.vhost_name, exchange.name, details))
        elif was_inert:
            details = {"type": exchange.type_name}
            self._exchanges.emit(Event("exchange.revived", exchange.vhost_name, exchange.name, details))

    def _refusal(self, exchange: Exchange, error: BaseException, binding: Binding | None = None) -> PreconditionFailed:
        reason = str(error) if isinstance(error, Refused) else described(error)
        at = "" if binding is None else f", binding to '{binding.destination.name}'"
        return PreconditionFailed(f"exchange '{exchange.name}' in vhost '{exchange.vhost_name}'{at}: {reason}")
