"""Routing: from a message to its queues, through bindings, exchange-to-exchange bindings and alternate exchanges."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from gateway.kernel.budget import LOOK_EVERY, SLOW_S
from gateway.kernel.faults import BadAnswer, Faults, shown
from gateway.kernel.messages.message import Message
from gateway.kernel.queueing.queue import Queue
from gateway.kernel.routing.exchange import Exchange, Route

if TYPE_CHECKING:
    from gateway.kernel.archives.archive import Archive
    from gateway.kernel.journal.journal import Journal


class Router:
    """Routes through the exchanges of one virtual host. Each exchange is visited once, so cycles end (R22, R24).

    An exchange type that raises routes nothing, and ``faults`` count it. Its route is not cached.
    """

    def __init__(self, exchange_by_name: Mapping[str, Exchange], journal: "Journal", faults: Faults) -> None:
        self._exchange_by_name = exchange_by_name
        self._budget = journal.budget
        self._background = journal.clock.background
        self._faults = faults
        self._has_failed = False
        self._with_routes: set[Exchange] = set()

    def route(self, exchange: Exchange, message: Message) -> Route:
        """Return the route to every queue of a message, each once (R7), in the order found."""
        if exchange.interceptor is not None and (taker := exchange.interceptor.takes(message)) is not None:
            return self._route_to(exchange, (taker,), () if exchange.archive is None else (exchange.archive,))
        return self.route_past_interceptor(exchange, message)

    def route_past_interceptor(self, exchange: Exchange, message: Message) -> Route:
        """Return the route, ignoring the interceptor of this exchange."""
        if message.header.sender_keys:
            keys = dict.fromkeys((message.routing_key, *message.header.sender_keys))
            queues, archives, _ = self._walk(exchange, tuple([message.with_routing_key(key) for key in keys]))
            return self._route_to(exchange, queues, archives)
        route = exchange.routes.get(message.routing_key)
        if route is None:
            queues, archives, is_cacheable = self._timed_walk(exchange, (message,))
            route = self._route_to(exchange, queues, archives)
            if is_cacheable:
                exchange.remember(message, route)
        return route

    def forget(self) -> None:
        """Clear every cached route: a binding, an exchange or a queue changed."""
        for exchange in self._with_routes:
            self._forget_routes(exchange)
        self._with_routes.clear()

    def _forget_routes(self, exchange: Exchange) -> None:
        steps = exchange.forget()
        if steps is not None:
            self._background.add_later(steps)

    def _route_to(self, exchange: Exchange, queues: "tuple[Queue, ...]", archives: "tuple[Archive, ...]") -> Route:
        """Return the route to these queues, which the exchange keeps until the next change."""
        route = exchange.route_by_ends.get((*queues, *archives) if archives else queues)
        if route is None:
            if exchange.is_full:
                self._forget_routes(exchange)
            self._with_routes.add(exchange)
            route = exchange.route_to(queues, archives)
        return route

    def _timed_walk(
        self, start: Exchange, messages: tuple[Message, ...]
    ) -> "tuple[tuple[Queue, ...], tuple[Archive, ...], bool]":
        """Route a message, and report exchanges whose types are slow."""
        budget = self._budget
        starts_s = budget.monotonic_s()
        found = self._walk(start, messages)
        seconds = budget.monotonic_s() - starts_s
        if seconds > SLOW_S:
            budget.on_slow(f"routing in exchange '{start.name}' of type {start.type_name}", seconds)
        return found

    def _walk(
        self, start: Exchange, messages: tuple[Message, ...]
    ) -> "tuple[tuple[Queue, ...], tuple[Archive, ...], bool]":
        """Return the queues, the archives on the way, and whether the route depends on the routing key only.

        ``messages`` are one message under each of its sender's keys. Every exchange on the way tries all of them, as in
        RabbitMQ: a different key may match at the next exchange (R29).
        """
        self._budget.work += LOOK_EVERY * len(messages)  # an exchange type may take milliseconds for a message
        found: dict[Queue, None] = {}
        archives: tuple[Archive, ...] = ()
        seen = {start}
        to_visit = [start]
        is_cacheable = True
        self._has_failed = False
        while to_visit:
            exchange = to_visit.pop()
            is_cacheable = is_cacheable and exchange.routes_by_key
            if exchange.archive is not None:
                archives = (*archives, exchange.archive)
            interceptor = exchange.interceptor if exchange is not start else None
            if interceptor is not None and (taker := interceptor.takes(messages[0])) is not None:
                found[taker] = None
                continue
            destinations = self._destinations(exchange, messages)
            has_wrong = False
            for destination in destinations:
                if isinstance(destination, Exchange) and self._exchange_by_name.get(destination.name) is destination:
                    if destination not in seen:
                        seen.add(destination)
                        to_visit.append(destination)
                elif isinstance(destination, Queue) and not destination.is_deleted:
                    found[destination] = None
                else:
                    has_wrong = True
            if has_wrong:
                self._contain_wrong(exchange, destinations)
                if len(self._wrong(destinations)) == len(destinations):
                    to_visit.extend(alternate for alternate in self._alternates(exchange) if alternate not in seen)
                    seen.update(to_visit)
        return tuple(found), archives, is_cacheable and not self._has_failed

    def _destinations(self, exchange: Exchange, messages: tuple[Message, ...]) -> "tuple[object, ...]":
        """Return the destinations from the exchange type, which may be invalid; contain its exceptions."""
        try:
            destinations: tuple[object, ...] = tuple(
                [found for message in messages for found in exchange.type.route(message)]
            )
        except BaseException as error:  # plugin code: only this message is unroutable
            self._contain(exchange, error)
            destinations = ()
        return destinations or self._alternates(exchange)

    def _alternates(self, exchange: Exchange) -> tuple[Exchange, ...]:
        """Return the alternate exchange, for messages without a destination, if it exists."""
        if exchange.alternate is None:
            return ()
        alternate = self._exchange_by_name.get(exchange.alternate)
        return () if alternate is None else (alternate,)

    # Faulty exchange types

    def _wrong(self, destinations: tuple[object, ...]) -> list[object]:
        """Return the destinations that are not an existing queue or exchange of this virtual host."""
        exchanges, queues = self._exchange_by_name, [d for d in destinations if isinstance(d, Queue)]
        sound = {id(queue) for queue in queues if not queue.is_deleted}
        sound |= {id(d) for d in destinations if isinstance(d, Exchange) and exchanges.get(d.name) is d}
        return [destination for destination in destinations if id(destination) not in sound]

    def _contain_wrong(self, exchange: Exchange, destinations: tuple[object, ...]) -> None:
        wrong = shown(self._wrong(destinations)[0])
        self._contain(exchange, BadAnswer(f"route() returned {wrong}, which is not an existing queue or exchange"))

    def _contain(self, exchange: Exchange, error: BaseException) -> None:
        self._has_failed = True
        function = getattr(type(exchange.type), "route", None)
        self._faults.contain_in_type("route", error, exchange.vhost_name, exchange.name, exchange.type_name, function)
