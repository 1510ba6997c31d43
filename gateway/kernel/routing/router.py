"""Routing: from a message to its queues, through bindings, exchange-to-exchange bindings and alternate exchanges."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Final

from gateway.kernel.budget import SLOW_S, WORK_PER_CLOCK_READING
from gateway.kernel.faults import BadAnswer, Faults, shown
from gateway.kernel.messages.message import Message
from gateway.kernel.plugin_times import CALL_LIMIT_S, CallTime, Overrun
from gateway.kernel.queueing.queue_like import QueueLike
from gateway.kernel.routing.exchange import MOST_QUEUES, Exchange, Route
from gateway.kernel.routing.exchange_type import LongRoute

if TYPE_CHECKING:
    from gateway.kernel.archives.archive import Archive
    from gateway.kernel.journal.journal import Journal
    from gateway.kernel.queueing.queue import Queue
    from gateway.kernel.routing.binding import Destination


#: An exchange type that takes longer for a message makes the turn read its clock, in seconds.
_NOTABLE_S: Final = 20e-6

#: Destinations examined between two readings of the clock.
_STEP: Final = 64


#: Parts of a long route that are found in the turn of the message.
_PARTS_AT_ONCE: Final = 8


class Walk:
    """The state of the routing of one message through bindings, from exchange to exchange.

    ``messages`` are the message under each of its sender's keys. Every exchange on the way tries all of them, as in
    RabbitMQ: a different key may match at the next exchange (R29). ``destinations`` are those of the exchange at hand
    if they are very many, and ``rest`` has the steps that find the others, if that takes long: the walk then goes on in
    ``Router.steps``, which sets ``route``. ``selected`` are those of ``start`` if they are known already. ``faulty`` is
    the exchange at hand once something else than a destination was found in the answer of its type. ``is_by_key`` while
    the route depends only on the routing key, ``is_by_headers`` while it depends only on the headers.
    """

    __slots__ = (
        "archives",
        "at",
        "destinations",
        "faulty",
        "found",
        "has_failed",
        "is_by_headers",
        "is_by_key",
        "messages",
        "rest",
        "route",
        "seen",
        "selected",
        "start",
        "to_visit",
        "version",
    )

    def __init__(self, start: Exchange, messages: tuple[Message, ...], version: int) -> None:
        self.start = start
        self.messages = messages
        self.version = version
        self.found: dict[QueueLike, None] = {}
        self.archives: tuple[Archive, ...] = ()
        self.seen = {start}
        self.to_visit = [start]
        self.at = start
        self.faulty: Exchange | None = None
        self.destinations: tuple[object, ...] = ()
        self.rest: Iterator[object] | None = None
        self.is_by_key = True
        self.is_by_headers = True
        self.has_failed = False
        self.route: Route | None = None
        self.selected: tuple[object, ...] | None = None

    @property
    def is_unfinished(self) -> bool:
        """Whether the walk goes on in later turns."""
        return self.rest is not None or bool(self.destinations)

    @property
    def has_queue(self) -> bool:
        """Whether a queue was found already."""
        return bool(self.found) or _has_queue(self.destinations)


class Router:
    """Routes through the exchanges of one virtual host. Each exchange is visited once, so cycles end (R22, R24).

    An exchange type that raises routes nothing, and ``faults`` count it. Its route is not cached. ``time_by_type`` has
    the times of routing by the type of the first exchange; cached routes take none.
    """

    def __init__(self, exchange_by_name: Mapping[str, Exchange], journal: "Journal", faults: Faults) -> None:
        self._exchange_by_name = exchange_by_name
        self._budget = journal.budget
        self._background = journal.clock.background
        self._faults = faults
        self._version = 0
        self._with_routes: set[Exchange] = set()
        self.time_by_type: defaultdict[str, CallTime] = defaultdict(CallTime)

    def route(self, exchange: Exchange, message: Message) -> Route:
        """Return the route to every queue of a message, each once (R7), in the order found."""
        return self.completed(self.find(exchange, message))

    def find(self, exchange: Exchange, message: Message) -> Route | Walk:
        """Return the route of a message, or the walk to it if that takes long: it leads to very many queues, or past
        very many bindings.
        """
        if exchange.interceptor is not None and (taker := self._taker(exchange, message)) is not None:
            return self._route_to(exchange, (taker,), () if exchange.archive is None else (exchange.archive,))
        return self.find_past_interceptor(exchange, message)

    def completed(self, found: Route | Walk) -> Route:
        """Return the route; do the rest of a walk in this turn."""
        if isinstance(found, Route):
            return found
        if found.route is None:
            for _ in self.steps(found):
                pass
        assert found.route is not None
        return found.route

    def find_past_interceptor(self, exchange: Exchange, message: Message) -> Route | Walk:
        """Return the answer of ``find``, ignoring the interceptor of this exchange."""
        if not message.header.sender_keys:
            route = exchange.routes.get(message.routing_key)
            if route is None and exchange.route_by_header:
                route = exchange.route_by_header.get(message.header)
            if route is not None:
                return route
            if exchange.archive is None:
                return self._found_at_once(exchange, message)
        return self._walked(exchange, message)

    def _found_at_once(self, exchange: Exchange, message: Message) -> Route | Walk:
        """Return the route of a message without a walk if the exchange type selects one queue or none, else the usual
        result.

        A walk takes 4 microseconds, more than the rest of a publish to an exchange whose routes cannot be cached.
        """
        budget = self._budget
        starts_s = budget.monotonic_s()
        error: BaseException | None = None
        selected: tuple[object, ...] = ()
        rest: Iterator[object] | None = None
        try:
            answer = self._selected(exchange, message)
            if isinstance(answer, LongRoute):
                selected, rest = _begun(answer)
            else:
                selected = tuple(answer)
        except BaseException as raised:  # plugin code: only this message is unroutable
            error = raised
        seconds = budget.monotonic_s() - starts_s
        self.time_by_type[exchange.type_name].add(seconds)
        if seconds > _NOTABLE_S:  # an exchange type may take milliseconds for a message
            budget.work += WORK_PER_CLOCK_READING
            self._report_if_slow(exchange, seconds)
            if seconds > CALL_LIMIT_S:
                self._contain_overrun(exchange, seconds)
        queues = self._only(exchange, selected) if rest is None and error is None else None
        if queues is not None:
            budget.work += 2
            route = self._route_to(exchange, queues, ())
            if exchange.routes_by_key:
                exchange.remember(message, route)
            elif exchange.routes_by_headers:
                exchange.remember_by_header(message, route)
            return route
        walk = Walk(exchange, (message,), self._version)
        walk.selected, walk.rest = selected, rest
        if error is not None:
            self._contain(exchange, error, walk)
            error = None  # its traceback refers to this frame: the cycle would keep the connection in memory
        self._timed_advance(walk)
        return walk if walk.is_unfinished else self._finish(walk)

    def _only(self, exchange: Exchange, selected: tuple[object, ...]) -> "tuple[QueueLike, ...] | None":
        """Return the only queue among what an exchange type selected, or none if it selected nothing; else ``None``."""
        if not selected:
            return None if self._alternates(exchange) else ()
        queue = selected[0]
        return (queue,) if len(selected) == 1 and isinstance(queue, QueueLike) and not queue.is_deleted else None

    def _walked(self, exchange: Exchange, message: Message) -> Route | Walk:
        """Return the route of a message, found without the cache, or the walk to it."""
        if message.header.sender_keys:
            keys = dict.fromkeys((message.routing_key, *message.header.sender_keys))
            walk = Walk(exchange, tuple([message.with_routing_key(key) for key in keys]), self._version)
            self._advance(walk)
        else:
            walk = Walk(exchange, (message,), self._version)
            self._timed_advance(walk)
        return walk if walk.is_unfinished else self._finish(walk)

    def forget(self) -> None:
        """Clear every cached route: a binding, an exchange or a queue changed."""
        self._version += 1
        for exchange in self._with_routes:
            self._forget_routes(exchange)
        self._with_routes.clear()

    def _forget_routes(self, exchange: Exchange) -> None:
        steps = exchange.forget()
        if steps is not None:
            self._background.add_later(steps)

    def _route_to(self, exchange: Exchange, queues: "tuple[QueueLike, ...]", archives: "tuple[Archive, ...]") -> Route:
        """Return the route to these queues, which the exchange keeps until the next change."""
        route = None
        if len(queues) <= MOST_QUEUES:
            route = exchange.route_by_ends.get((*queues, *archives) if archives else queues)
        if route is None:
            if exchange.is_full:
                self._forget_routes(exchange)
            self._with_routes.add(exchange)
            route = exchange.route_to(queues, archives)
        return route

    # Walks

    def _timed_advance(self, walk: Walk) -> None:
        """Route a message, and report exchanges whose types are slow."""
        budget = self._budget
        starts_s = budget.monotonic_s()
        self._advance(walk)
        seconds = budget.monotonic_s() - starts_s
        self.time_by_type[walk.start.type_name].add(seconds)
        self._report_if_slow(walk.start, seconds)

    def _report_if_slow(self, start: Exchange, seconds: float) -> None:
        if seconds <= SLOW_S:
            return
        vhost, type_name, faults = start.vhost_name, start.type_name, self._faults
        what = f"routing in exchange '{start.name}' of type {type_name}"
        self._budget.on_slow(faults.cause(what, vhost, type_name), seconds)

    def _contain_overrun(self, exchange: Exchange, seconds: float) -> None:
        """Count the long call of an exchange type as a fault of the plugin that supplies it."""
        vhost, type_name = exchange.vhost_name, exchange.type_name
        if self._faults.plugin_of(vhost, type_name):
            function = exchange.type.route
            self._faults.contain_in_type("route", Overrun(seconds), vhost, exchange.name, type_name, function)

    def _advance(self, walk: Walk) -> None:
        """Visit the exchanges on the way, up to the next one with very many destinations."""
        messages = walk.messages
        # An exchange type may take milliseconds for a message.
        self._budget.work += WORK_PER_CLOCK_READING * len(messages)
        found, seen, to_visit = walk.found, walk.seen, walk.to_visit
        while to_visit:
            exchange = to_visit.pop()
            walk.is_by_key = walk.is_by_key and exchange.routes_by_key
            walk.is_by_headers = walk.is_by_headers and exchange.routes_by_headers
            if exchange.archive is not None:
                walk.archives = (*walk.archives, exchange.archive)
            if exchange.interceptor is not None and exchange is not walk.start:
                taker = self._taker(exchange, messages[0])
                if taker is not None:
                    found[taker] = None
                    continue
            destinations = self._destinations(exchange, walk)
            if walk.rest is not None:
                exchange.has_long_routes = walk.start.has_long_routes = True
                walk.at, walk.destinations = exchange, destinations
                return
            if len(destinations) > MOST_QUEUES and (found or _has_queue(destinations[:MOST_QUEUES])):
                walk.at, walk.destinations = exchange, destinations
                return
            has_wrong = False
            for destination in destinations:
                if isinstance(destination, Exchange) and self._exchange_by_name.get(destination.name) is destination:
                    if destination not in seen:
                        seen.add(destination)
                        to_visit.append(destination)
                elif isinstance(destination, QueueLike) and not destination.is_deleted:
                    found[destination] = None
                else:
                    has_wrong = True
            if has_wrong:
                self._contain_wrong(exchange, destinations, walk)
                if len(self._wrong(destinations)) == len(destinations):
                    to_visit.extend(alternate for alternate in self._alternates(exchange) if alternate not in seen)
                    seen.update(to_visit)

    def steps(self, walk: Walk) -> Iterator[None]:
        """Return the steps of the rest of a walk.

        Its bindings are those at the time of the message, without queues and exchanges that are deleted meanwhile.
        """
        while walk.is_unfinished:
            destinations, walk.destinations = walk.destinations, ()
            rest, walk.rest = walk.rest, None
            has_some = False
            for first in range(0, len(destinations), _STEP):
                for destination in destinations[first : first + _STEP]:
                    has_some = self._take(destination, walk) or has_some
                yield
            if rest is not None:
                yield from self._taking_rest(rest, walk, has_some=has_some)
            self._advance(walk)
        queues = tuple(walk.found)
        yield  # a tuple of 100,000 queues takes a millisecond
        walk.route = self._finish(walk, queues)

    def _taking_rest(self, rest: Iterator[object], walk: Walk, *, has_some: bool) -> Iterator[None]:
        """Return the steps that add the other destinations of an exchange; its alternate one if there are none."""
        exchange = walk.at
        try:
            for destination in rest:
                if destination is None:
                    yield
                else:
                    has_some = self._take(destination, walk) or has_some
        except Exception as error:  # code of an exchange type: the destinations found before are sound
            self._contain(exchange, error, walk)
        if not has_some:
            for alternate in self._alternates(exchange):
                self._take(alternate, walk)

    def _take(self, destination: object, walk: Walk) -> bool:
        """Add a destination to a walk, unless it was deleted meanwhile; return false if it is none."""
        if isinstance(destination, QueueLike):
            if not destination.is_deleted:
                walk.found[destination] = None
        elif isinstance(destination, Exchange):
            is_new = destination not in walk.seen
            if is_new and self._exchange_by_name.get(destination.name) is destination:
                walk.seen.add(destination)
                walk.to_visit.append(destination)
        else:
            self._contain_other(destination, walk)
            return False
        return True

    def _finish(self, walk: Walk, queues: "tuple[QueueLike, ...] | None" = None) -> Route:
        """Return the route that was found, and cache it if it depends on the routing key or on the headers only."""
        start = walk.start
        route = self._route_to(start, tuple(walk.found) if queues is None else queues, walk.archives)
        is_current = walk.version == self._version and not walk.has_failed
        if is_current and not walk.messages[0].header.sender_keys:
            if walk.is_by_key:
                start.remember(walk.messages[0], route)
            elif walk.is_by_headers:
                start.remember_by_header(walk.messages[0], route)
        return route

    def _destinations(self, exchange: Exchange, walk: Walk) -> "tuple[object, ...]":
        """Return the destinations from the exchange type, which may be invalid; contain its exceptions."""
        messages = walk.messages
        destinations: tuple[object, ...]
        if walk.selected is not None:
            destinations, walk.selected = walk.selected, None
            return destinations if destinations or walk.rest is not None else self._alternates(exchange)
        try:
            if len(messages) == 1:
                answer = self._selected(exchange, messages[0])
                if isinstance(answer, LongRoute):
                    destinations, walk.rest = _begun(answer)
                else:
                    destinations = tuple(answer)
            else:
                answers = [self._selected(exchange, message) for message in messages]
                long = [answer.find() for answer in answers if isinstance(answer, LongRoute)]
                walk.rest = chain.from_iterable(long) if long else None
                destinations = tuple([found for each in answers if not isinstance(each, LongRoute) for found in each])
        except BaseException as error:  # plugin code: only this message is unroutable
            self._contain(exchange, error, walk)
            destinations = ()
            walk.rest = None
        return destinations if destinations or walk.rest is not None else self._alternates(exchange)

    def _taker(self, exchange: Exchange, message: Message) -> "Queue | None":
        """Return the queue that the interceptor of an exchange, if any, puts a message in instead of routing it."""
        return None if exchange.interceptor is None else exchange.interceptor.takes(message)

    def _selected(self, exchange: Exchange, message: Message) -> "Iterable[Destination]":
        """Return the destinations that the exchange type selects."""
        return exchange.type.route(message)

    def _alternates(self, exchange: Exchange) -> tuple[Exchange, ...]:
        """Return the alternate exchange, for messages without a destination, if it exists."""
        if exchange.alternate is None:
            return ()
        alternate = self._exchange_by_name.get(exchange.alternate)
        return () if alternate is None else (alternate,)

    # Faulty exchange types

    def _wrong(self, destinations: tuple[object, ...]) -> list[object]:
        """Return the destinations that are not an existing queue or exchange of this virtual host."""
        exchanges, queues = self._exchange_by_name, [d for d in destinations if isinstance(d, QueueLike)]
        sound = {id(queue) for queue in queues if not queue.is_deleted}
        sound |= {id(d) for d in destinations if isinstance(d, Exchange) and exchanges.get(d.name) is d}
        return [destination for destination in destinations if id(destination) not in sound]

    def _contain_wrong(self, exchange: Exchange, destinations: tuple[object, ...], walk: Walk) -> None:
        wrong = shown(self._wrong(destinations)[0])
        error = BadAnswer(f"route() returned {wrong}, which is not an existing queue or exchange")
        self._contain(exchange, error, walk)

    def _contain_other(self, found: object, walk: Walk) -> None:
        """Count an answer with something that is neither a queue nor an exchange, once for all of its slices."""
        if walk.faulty is not walk.at:
            walk.faulty = walk.at
            error = BadAnswer(f"route() returned {shown(found)}, which is not an existing queue or exchange")
            self._contain(walk.at, error, walk)

    def _contain(self, exchange: Exchange, error: BaseException, walk: Walk) -> None:
        walk.has_failed = True
        function = getattr(type(exchange.type), "route", None)
        self._faults.contain_in_type("route", error, exchange.vhost_name, exchange.name, exchange.type_name, function)


def _begun(answer: LongRoute) -> "tuple[tuple[object, ...], Iterator[object] | None]":
    """Return what the first parts of the work find, and the rest of it; ``None`` if that was all."""
    found, parts, steps = list[object](), 0, answer.find()
    for destination in steps:
        if destination is not None:
            found.append(destination)
            continue
        parts += 1
        if parts == _PARTS_AT_ONCE:
            return tuple(found), steps
    return tuple(found), None


def _has_queue(destinations: tuple[object, ...]) -> bool:
    """Return whether an existing queue is among the destinations."""
    return any(isinstance(destination, QueueLike) and not destination.is_deleted for destination in destinations)
