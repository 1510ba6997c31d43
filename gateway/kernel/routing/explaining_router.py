"""A router for explanations: it takes the way of a message without publishing it, and notes each step."""

from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from gateway.kernel.faults import described
from gateway.kernel.routing.exchange import Route
from gateway.kernel.routing.exchange_type import LongRoute
from gateway.kernel.routing.router import Router, Walk

if TYPE_CHECKING:
    from gateway.kernel.faults import Faults
    from gateway.kernel.journal.journal import Journal
    from gateway.kernel.messages.message import Message
    from gateway.kernel.queueing.queue import Queue
    from gateway.kernel.queueing.queue_like import QueueLike
    from gateway.kernel.routing.binding import Destination
    from gateway.kernel.routing.exchange import Exchange


@dataclass(slots=True)
class Visit:
    """One exchange on the way of a message.

    ``destinations`` are those that its type selected. ``taker`` is the queue of its interceptor, if that takes the
    message. ``used_alternate`` is whether the message went on to the alternate exchange. ``fault`` describes an
    exception or a wrong answer of the type; it is empty otherwise.
    """

    exchange: "Exchange"
    destinations: "dict[Destination, None]"
    taker: "Queue | None" = None
    used_alternate: bool = False
    fault: str = ""


class ExplainingRouter(Router):
    """Routes one message as ``Router`` does, but changes no cache, counter or state of exchange types.

    ``visits`` has the exchanges in the order of their visit.
    """

    def __init__(self, exchange_by_name: "Mapping[str, Exchange]", journal: "Journal", faults: "Faults") -> None:
        super().__init__(exchange_by_name, journal, faults)
        self.visits: dict[Exchange, Visit] = {}

    def explained(self, exchange: "Exchange", message: "Message") -> "Generator[None, None, tuple[QueueLike, ...]]":
        """Return the steps that find the queues of a message."""
        taker = self._taker(exchange, message)
        if taker is not None:
            return (taker,)
        found = self._walked(exchange, message)
        if isinstance(found, Route):
            return found.queues
        yield from self.steps(found)
        assert found.route is not None
        return found.route.queues

    def _visit(self, exchange: "Exchange") -> Visit:
        return self.visits.setdefault(exchange, Visit(exchange, {}))

    # Steps of the router, with a note and without effects

    def _taker(self, exchange: "Exchange", message: "Message") -> "Queue | None":
        visit = self._visit(exchange)
        if exchange.interceptor is not None:
            visit.taker = exchange.interceptor.would_take(message)
        return visit.taker

    def _selected(self, exchange: "Exchange", message: "Message") -> "Iterable[Destination]":
        visit = self._visit(exchange)
        answer = getattr(exchange.type, "peek", exchange.type.route)(message)
        if isinstance(answer, LongRoute):
            return LongRoute(partial(_noted, answer, visit))
        selected = tuple(answer)
        visit.destinations.update(dict.fromkeys(selected))
        return selected

    def _alternates(self, exchange: "Exchange") -> "tuple[Exchange, ...]":
        alternates = super()._alternates(exchange)
        self._visit(exchange).used_alternate = bool(alternates)
        return alternates

    def _finish(self, walk: Walk, queues: "tuple[QueueLike, ...] | None" = None) -> Route:
        return Route(tuple(walk.found) if queues is None else queues, walk.archives)

    def _contain(self, exchange: "Exchange", error: BaseException, walk: Walk) -> None:
        self._visit(exchange).fault = described(error)


def _noted(answer: LongRoute, visit: Visit) -> "Iterator[Destination | None]":
    """Return the steps of a long route, and note what they find."""
    for destination in answer.find():
        if destination is not None:
            visit.destinations[destination] = None
        yield destination
