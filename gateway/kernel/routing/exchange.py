"""An exchange. It holds names and settings; its type, from a plugin, selects destinations."""

from collections import deque
from typing import TYPE_CHECKING, Final

from gateway.kernel.caches import remember
from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.messages.message import Arguments, Header, Message
from gateway.kernel.routing.exchange_identity import ExchangeIdentity
from gateway.kernel.settings.effective_settings import effective

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gateway.kernel.archives.archive import Archive
    from gateway.kernel.queueing.queue_like import QueueLike
    from gateway.kernel.routing.exchange_type import ExchangeType
    from gateway.kernel.routing.interceptor import ExchangeInterceptor

#: The largest number of queues that a message is routed and offered to in one turn.
MOST_QUEUES: Final = 2048

#: Routes cached per exchange before the cache is cleared; bounds the memory when publishers keep using new keys.
ROUTES_REMEMBERED = 10_000


#: Routes cached by header, and the longest header: a longer one seldom repeats.
_HEADERS_REMEMBERED: Final = 1024
_LONGEST_HEADER: Final = 512

#: The sum of the numbers of queues of these routes is bounded too: a hundred routes to 100,000 queues take 80 MB.
QUEUES_REMEMBERED = 2**20

#: Routes to more queues together than this are forgotten in slices: 100,000 take 24 ms.
_FEW = 2048

#: Queues whose counts are added up between two readings of the clock.
_STEP = 256

#: Counts of deleted queues are removed once there are this many counts.
_FEWEST_COUNTS = 64


class Route:
    """A set of queues that messages are routed to together, with a count. The publisher increments it.

    ``archives`` are those of the exchanges on the way.
    """

    __slots__ = ("archives", "count", "queues")

    def __init__(self, queues: "tuple[QueueLike, ...]", archives: "tuple[Archive, ...]" = ()) -> None:
        self.queues = queues
        self.archives = archives
        self.count = 0


class Exchange(ExchangeIdentity):
    """One exchange of one virtual host.

    ``routes`` caches the route of each routing key while ``routes_by_key``, ``route_by_header`` that of each header
    while ``routes_by_headers``; ``route_by_ends`` holds every distinct route, except those to very many queues: the
    hash of 100,000 takes 3 ms, a comparison 0.2 ms. The router fills and clears all three; totals survive clearing.
    ``archive`` is usually ``None``. ``inert_reason`` explains why an exchange routes nothing because its type is
    unavailable; it is empty otherwise. ``has_long_routes`` is set once a route took several turns to find.
    """

    __slots__ = (
        "_added_up",
        "_next_removal",
        "_passed_on",
        "_past",
        "_published_in",
        "_published_out",
        "_wide_routes",
        "_width",
        "archive",
        "has_long_routes",
        "inert_reason",
        "interceptor",
        "route_by_ends",
        "route_by_header",
        "routes",
        "routes_by_headers",
        "routes_by_key",
        "settings",
        "type",
    )

    def __init__(
        self,
        vhost_name: str,
        name: str,
        type_name: str,
        type: "ExchangeType",
        *,
        is_durable: bool = False,
        is_auto_delete: bool = False,
        is_internal: bool = False,
        arguments: Arguments | None = None,
        routes_by_key: bool = False,
        routes_by_headers: bool = False,
        interceptor: "ExchangeInterceptor | None" = None,
    ) -> None:
        super().__init__(vhost_name, name, type_name, is_durable, is_auto_delete, is_internal, arguments)
        self.type = type
        self.settings = effective(self.arguments)
        self.routes_by_key = routes_by_key and interceptor is None
        self.routes_by_headers = routes_by_headers and interceptor is None
        self.interceptor = interceptor
        self.archive: Archive | None = None
        self.inert_reason = ""
        self.has_long_routes = False
        self.routes: dict[str, Route] = {}
        self.route_by_header: dict[Header, Route] = {}
        self.route_by_ends: dict[tuple[QueueLike | Archive, ...], Route] = {}
        self._wide_routes: list[Route] = []
        self._width = 0  # the queues of all cached routes
        self._passed_on: dict[QueueLike, int] = {}
        self._next_removal = _FEWEST_COUNTS  # the number of counts at which those of deleted queues are removed
        self._past: deque[Route] = deque()  # forgotten routes whose counts are not in ``_passed_on`` yet
        self._added_up = 0  # the queues of the first of these whose counts are
        self._published_in = 0
        self._published_out = 0

    @property
    def alternate(self) -> str | None:
        """The name of the exchange that gets messages this one cannot route (R24)."""
        return self.settings.text("alternate-exchange") if self.name else None

    def require_working(self) -> None:
        """Refuse publishing while the exchange is inert: the messages would be lost.

        :raises PreconditionFailed: with the reason and the remedy.
        """
        if self.inert_reason:
            raise PreconditionFailed(
                f"exchange '{self.name}' in vhost '{self.vhost_name}' is inert: {self.inert_reason}"
            )

    # Routes

    @property
    def is_full(self) -> bool:
        """Whether so many routes are cached that they should be forgotten."""
        return len(self.route_by_ends) >= ROUTES_REMEMBERED or self._width >= QUEUES_REMEMBERED

    def route_to(self, queues: "tuple[QueueLike, ...]", archives: "tuple[Archive, ...]" = ()) -> Route:
        """Return the route to these queues and archives, shared by all keys that lead there."""
        if len(queues) > MOST_QUEUES:
            return self._wide_route_to(queues, archives)
        ends: tuple[QueueLike | Archive, ...] = (*queues, *archives) if archives else queues
        new = Route(queues, archives)
        route = self.route_by_ends.setdefault(ends, new)  # hashes the queues once
        if route is new:
            self._width += len(queues)
        return route

    def _wide_route_to(self, queues: "tuple[QueueLike, ...]", archives: "tuple[Archive, ...]") -> Route:
        for known in self._wide_routes:
            if known.archives == archives and known.queues == queues:
                return known
        route = Route(queues, archives)
        self._wide_routes.append(route)
        self._width += len(queues)
        return route

    def _known_routes(self) -> "Iterator[Route]":
        yield from self.route_by_ends.values()
        yield from self._wide_routes

    def remember(self, message: Message, route: Route) -> None:
        """Cache the route of a message's key."""
        remember(self.routes, message.routing_key, route, ROUTES_REMEMBERED)

    def remember_by_header(self, message: Message, route: Route) -> None:
        """Cache the route of a message's header. Messages with equal headers share one."""
        if len(message.header.raw) <= _LONGEST_HEADER:
            remember(self.route_by_header, message.header, route, _HEADERS_REMEMBERED)

    def forget(self) -> "Iterator[None] | None":
        """Clear all routes, but keep their counts. Return the rest of the work as steps; ``None`` if there is none.

        A binding may change for each message to 100,000 queues.
        """
        is_adding_up = bool(self._past)
        for route in self._known_routes():
            self._published_in += route.count
            self._published_out += route.count * len(route.queues)
            self._past.append(route)
        is_much = self._width > _FEW
        self.routes.clear()
        self.route_by_header.clear()
        self.route_by_ends.clear()
        self._wide_routes.clear()
        self._width = 0
        if is_adding_up:
            return None  # the steps that were returned before add these up too
        if is_much:
            return self._adding_up()
        for _ in self._adding_up():
            pass
        return None

    def _adding_up(self) -> "Iterator[None]":
        """Return the steps that add the counts of forgotten routes to those of their queues."""
        passed_on = self._passed_on
        while self._past:
            route = self._past[0]
            if route.count:
                queues = route.queues
                for first in range(0, len(queues), _STEP):
                    for queue in queues[first : first + _STEP]:
                        passed_on[queue] = passed_on.get(queue, 0) + route.count
                    self._added_up = first + _STEP
                    yield
            self._past.popleft()
            self._added_up = 0
        yield from self._forgetting_deleted()

    def _forgetting_deleted(self) -> "Iterator[None]":
        """Return the steps that remove the counts of deleted queues, each time that there are twice as many counts."""
        passed_on = self._passed_on
        if len(passed_on) < self._next_removal:
            return
        queues = list(passed_on)
        for first in range(0, len(queues), _STEP):
            for queue in queues[first : first + _STEP]:
                if queue.is_deleted:
                    passed_on.pop(queue, None)
            yield
        self._next_removal = max(_FEWEST_COUNTS, 2 * len(passed_on))

    # Counts

    @property
    def published_in(self) -> int:
        """The number of messages published to the exchange."""
        return self._published_in + sum(route.count for route in self._known_routes())

    @property
    def published_out(self) -> int:
        """The number of messages routed to queues, counted once per queue."""
        return self._published_out + sum(route.count * len(route.queues) for route in self._known_routes())

    def passed_on(self) -> "Iterator[tuple[QueueLike, int] | None]":
        """Yield the number of messages routed to each existing queue, as it is now; ``None`` after each step of work.

        The sum over the routes to 100,000 queues takes 40 ms.
        """
        sums, uncounted = dict(self._passed_on), self._uncounted()
        yield None
        for queues, first, published in uncounted:
            for start in range(first, len(queues), _STEP):
                for queue in queues[start : start + _STEP]:
                    sums[queue] = sums.get(queue, 0) + published
                yield None
        for queue, count in sums.items():
            if queue.is_deleted:
                self._passed_on.pop(queue, None)
                yield None
            else:
                yield queue, count

    def passed_on_to(self, queue: "QueueLike") -> int:
        """Return the number of messages routed to a queue."""
        uncounted = sum(count for queues, first, count in self._uncounted() if queue in queues[first:])
        return self._passed_on.get(queue, 0) + uncounted

    def _uncounted(self) -> "list[tuple[tuple[QueueLike, ...], int, int]]":
        """Return the routes whose counts are not in ``_passed_on``: queues, the first of them, and the count."""
        first = self._added_up
        uncounted = []
        for route in (*self._past, *self._known_routes()):
            if route.count:
                uncounted.append((route.queues, first, route.count))
            first = 0
        return uncounted
