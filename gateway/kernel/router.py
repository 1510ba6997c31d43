"""From a message to the queues that get it: through bindings, exchange-to-exchange bindings and alternate exchanges."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from gateway.kernel.exchange import Exchange, Route
from gateway.kernel.message import Message

if TYPE_CHECKING:
    from gateway.kernel.archive import Archive
    from gateway.kernel.queue import Queue


class Router:
    """Walks the exchanges of one virtual host. Each exchange is visited once, so cycles end (R22, R24)."""

    def __init__(self, exchange_by_name: Mapping[str, Exchange]) -> None:
        self._exchange_by_name = exchange_by_name
        self._remembering: set[Exchange] = set()

    def route(self, exchange: Exchange, message: Message) -> Route:
        """Return the way to every queue the message goes to, each once (R7), in the order found."""
        if exchange.guard is not None and (taker := exchange.guard.takes(message)) is not None:
            return self._kept(exchange, (taker,), () if exchange.archive is None else (exchange.archive,))
        return self.route_past_guard(exchange, message)

    def route_past_guard(self, exchange: Exchange, message: Message) -> Route:
        """Return the same, as if nobody stood before this exchange."""
        if message.header.sender_keys:
            return self._kept(exchange, *self._route_sender_selected(exchange, message))
        route = exchange.routes.get(message.routing_key)
        if route is None:
            queues, archives, is_memorable = self._walk(exchange, message)
            route = self._kept(exchange, queues, archives)
            if is_memorable:
                exchange.remember(message, route)
        return route

    def forget(self) -> None:
        """Forget every remembered route: a binding, an exchange or a queue changed."""
        for exchange in self._remembering:
            exchange.forget()
        self._remembering.clear()

    def _kept(self, exchange: Exchange, queues: "tuple[Queue, ...]", archives: "tuple[Archive, ...]") -> Route:
        """Return the route to these queues, kept by the exchange until the next change."""
        route = exchange.route_by_ends.get((*queues, *archives) if archives else queues)
        if route is None:
            self._remembering.add(exchange)
            route = exchange.route_to(queues, archives)
        return route

    def _route_sender_selected(
        self, exchange: Exchange, message: Message
    ) -> "tuple[tuple[Queue, ...], tuple[Archive, ...]]":
        """Route as if published with each of the sender's keys (R29)."""
        found: dict[Queue, None] = {}
        met: dict[Archive, None] = {}
        for key in (message.routing_key, *message.header.sender_keys):
            queues, archives, _ = self._walk(exchange, message.keyed(key))
            found.update(dict.fromkeys(queues))
            met.update(dict.fromkeys(archives))
        return tuple(found), tuple(met)

    def _walk(self, start: Exchange, message: Message) -> "tuple[tuple[Queue, ...], tuple[Archive, ...], bool]":
        """Return the queues, the archives on the way, and whether every exchange there looks at the key alone."""
        found: dict[Queue, None] = {}
        archives: tuple[Archive, ...] = ()
        seen = {start}
        to_visit = [start]
        is_memorable = True
        while to_visit:
            exchange = to_visit.pop()
            is_memorable = is_memorable and exchange.routes_by_key
            if exchange.archive is not None:
                archives = (*archives, exchange.archive)
            guard = exchange.guard if exchange is not start else None
            if guard is not None and (taker := guard.takes(message)) is not None:
                found[taker] = None
                continue
            for destination in self._destinations(exchange, message):
                if not isinstance(destination, Exchange):
                    found[destination] = None
                elif destination not in seen:
                    seen.add(destination)
                    to_visit.append(destination)
        return tuple(found), archives, is_memorable

    def _destinations(self, exchange: Exchange, message: Message) -> "Iterable[Queue | Exchange]":
        destinations = tuple(exchange.type.route(message))
        if not destinations and exchange.alternate is not None:
            alternate = self._exchange_by_name.get(exchange.alternate)
            return () if alternate is None else (alternate,)
        return destinations
