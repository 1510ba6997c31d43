"""Explanations: where a message would go and why, without publishing it.

The router itself finds the way, so an explanation and a publish agree. Whether a binding matches is the answer of a new
instance of the exchange type with this binding alone.
"""

from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from gateway.kernel.messages.message import Message
from gateway.kernel.routing.binding import Binding
from gateway.kernel.routing.bindings import Bindings
from gateway.kernel.routing.explaining_router import ExplainingRouter, Visit
from gateway.kernel.vhosts.exchanges import factory_of

if TYPE_CHECKING:
    from gateway.kernel.queueing.queue_like import QueueLike
    from gateway.kernel.routing.exchange import Exchange
    from gateway.kernel.routing.exchange_type import ExchangeTypes

#: Bindings that are listed of each exchange, and of each result; the others are only counted.
MOST_LISTED: Final = 1000

#: Bindings tried between two readings of the clock.
_STEP: Final = 16


@dataclass(slots=True)
class ExplainedVisit:
    """One exchange on the way: its ``visit`` by the router, and its bindings.

    ``matched`` and ``unmatched`` list at most ``MOST_LISTED`` bindings each; the counts include all.
    """

    visit: Visit
    matched: list[Binding] = field(default_factory=list)
    unmatched: list[Binding] = field(default_factory=list)
    matched_count: int = 0
    tried_count: int = 0

    def note(self, binding: Binding, matches: bool) -> None:
        """Note a binding that was tried."""
        self.tried_count += 1
        self.matched_count += matches
        listed = self.matched if matches else self.unmatched
        if len(listed) < MOST_LISTED:
            listed.append(binding)


@dataclass(frozen=True, slots=True)
class Explanation:
    """The way of a message: the exchanges in the order of their visit, and the queues at its end.

    A queue without a name belongs to an interceptor: it is the ``taker`` of a visit.
    """

    message: Message
    visits: tuple[ExplainedVisit, ...]
    queues: "tuple[QueueLike, ...]"

    @property
    def duplicate_at(self) -> "Exchange | None":
        """The exchange that would drop the message as a duplicate; ``None`` if none would."""
        for explained in self.visits:
            visit, interceptor = explained.visit, explained.visit.exchange.interceptor
            if interceptor is not None and visit.taker is not None and visit.taker is not interceptor.waiting:
                return visit.exchange
        return None


class Explainer:
    """Explains messages of the virtual host with these bindings and exchange types."""

    def __init__(self, router: ExplainingRouter, bindings: Bindings, exchange_types: "ExchangeTypes") -> None:
        self._router = router
        self._bindings = bindings
        self._exchange_types = exchange_types

    def steps(self, exchange: "Exchange", message: Message) -> Generator[None, None, Explanation]:
        """Return the steps that explain a message; the topology is that of the first step."""
        router = self._router
        queues = yield from router.explained(exchange, message)
        keys = dict.fromkeys((message.routing_key, *message.header.sender_keys))
        messages = tuple([message.with_routing_key(key) for key in keys])
        visits = tuple([ExplainedVisit(visit) for visit in router.visits.values()])
        for explained in visits:
            if explained.visit.taker is None:
                yield from self._trying(explained, messages)
        return Explanation(message, visits, queues)

    def _trying(self, explained: ExplainedVisit, messages: tuple[Message, ...]) -> Iterator[None]:
        """Return the steps that try each binding of an exchange."""
        exchange, destinations = explained.visit.exchange, explained.visit.destinations
        if not exchange.name:
            for queue in destinations:  # the implicit bindings of the other queues are not worth a list
                explained.note(Binding(exchange, queue, queue.name, {}), True)
            return
        bindings = self._bindings.of(exchange)
        alone = [binding for binding in bindings if binding.destination in destinations]
        matching: set[Binding] = set()
        for number, binding in enumerate(alone):
            if self._matches_alone(exchange, binding, messages):
                matching.add(binding)
            if number % _STEP == 0:
                yield
        explained_ends = {binding.destination for binding in matching}
        for number, binding in enumerate(bindings):
            end = binding.destination
            # some types route only by several bindings together: then all of them lead to the destination
            explained.note(binding, binding in matching or (end in destinations and end not in explained_ends))
            if number % (_STEP * _STEP) == 0:
                yield

    def _matches_alone(self, exchange: "Exchange", binding: Binding, messages: tuple[Message, ...]) -> bool:
        """Return whether a new instance of the exchange type routes to a binding that is its only one."""
        try:
            type = factory_of(self._exchange_types, exchange.type_name, exchange.arguments)(exchange.arguments)
            type.bind(binding)
            return any(binding.destination in tuple(type.route(message)) for message in messages)
        except Exception:  # plugin code; the visit has the fault that matters, that of the routing
            return False
