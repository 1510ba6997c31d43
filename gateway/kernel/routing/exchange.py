"""An exchange. It holds names and settings; its type, from a plugin, selects destinations."""

from typing import TYPE_CHECKING

from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.messages.message import Arguments, Message
from gateway.kernel.settings.effective_settings import effective

if TYPE_CHECKING:
    from gateway.kernel.archives.archive import Archive
    from gateway.kernel.queueing.queue import Queue
    from gateway.kernel.routing.exchange_type import ExchangeType
    from gateway.kernel.routing.interceptor import ExchangeInterceptor

#: Routes cached per exchange before the cache is cleared; bounds the memory when publishers keep using new keys.
ROUTES_REMEMBERED = 10_000


class Route:
    """A set of queues that messages are routed to together, with a count. The publisher increments it.

    ``archives`` are those of the exchanges on the way.
    """

    __slots__ = ("archives", "count", "queues")

    def __init__(self, queues: "tuple[Queue, ...]", archives: "tuple[Archive, ...]" = ()) -> None:
        self.queues = queues
        self.archives = archives
        self.count = 0


class Exchange:
    """One exchange of one virtual host.

    ``routes`` caches the route of each routing key while ``routes_by_key``; ``route_by_ends`` holds every distinct
    route. The router fills and clears both; totals survive clearing. ``archive`` is usually ``None``. ``inert_reason``
    explains why an exchange routes nothing because its type is unavailable; it is empty otherwise.
    """

    __slots__ = (
        "_passed_on",
        "_published_in",
        "_published_out",
        "archive",
        "arguments",
        "inert_reason",
        "interceptor",
        "is_auto_delete",
        "is_durable",
        "is_internal",
        "name",
        "route_by_ends",
        "routes",
        "routes_by_key",
        "settings",
        "type",
        "type_name",
        "vhost_name",
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
        interceptor: "ExchangeInterceptor | None" = None,
    ) -> None:
        self.vhost_name = vhost_name
        self.name = name
        self.type_name = type_name
        self.type = type
        self.is_durable = is_durable
        self.is_auto_delete = is_auto_delete
        self.is_internal = is_internal
        self.arguments: Arguments = arguments or {}
        self.settings = effective(self.arguments)
        self.routes_by_key = routes_by_key and interceptor is None
        self.interceptor = interceptor
        self.archive: Archive | None = None
        self.inert_reason = ""
        self.routes: dict[str, Route] = {}
        self.route_by_ends: dict[tuple[Queue | Archive, ...], Route] = {}
        self._passed_on: dict[Queue, int] = {}
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

    def route_to(self, queues: "tuple[Queue, ...]", archives: "tuple[Archive, ...]" = ()) -> Route:
        """Return the route to these queues and archives, shared by all keys that lead there."""
        ends: tuple[Queue | Archive, ...] = (*queues, *archives)
        route = self.route_by_ends.get(ends)
        if route is None:
            if len(self.route_by_ends) >= ROUTES_REMEMBERED:
                self.forget()
            route = self.route_by_ends[ends] = Route(queues, archives)
        return route

    def remember(self, message: Message, route: Route) -> None:
        """Cache the route of a message's key."""
        if len(self.routes) >= ROUTES_REMEMBERED:
            self.routes.clear()
        self.routes[message.routing_key] = route

    def forget(self) -> None:
        """Clear all routes, but keep their counts."""
        passed_on = self._passed_on
        for route in self.route_by_ends.values():
            self._published_in += route.count
            self._published_out += route.count * len(route.queues)
            for queue in route.queues:
                passed_on[queue] = passed_on.get(queue, 0) + route.count
        self.routes.clear()
        self.route_by_ends.clear()

    # Counts

    @property
    def published_in(self) -> int:
        """The number of messages published to the exchange."""
        return self._published_in + sum(route.count for route in self.route_by_ends.values())

    @property
    def published_out(self) -> int:
        """The number of messages routed to queues, counted once per queue."""
        return self._published_out + sum(route.count * len(route.queues) for route in self.route_by_ends.values())

    def passed_on(self) -> "dict[Queue, int]":
        """Return the number of messages routed to each existing queue."""
        self._passed_on = {queue: count for queue, count in self._passed_on.items() if not queue.is_deleted}
        passed_on = dict(self._passed_on)
        for route in self.route_by_ends.values():
            if route.count:
                for queue in route.queues:
                    passed_on[queue] = passed_on.get(queue, 0) + route.count
        return passed_on
