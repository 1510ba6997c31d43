"""A named entry point of a virtual host. The entity keeps names and rules; its type, from a plugin, chooses."""

from typing import TYPE_CHECKING

from gateway.kernel.message import Arguments, Message
from gateway.kernel.settings import effective

if TYPE_CHECKING:
    from gateway.kernel.guards import Guard
    from gateway.kernel.ports import ExchangeType
    from gateway.kernel.queue import Queue

#: Routes remembered per exchange before the memory is emptied: bounds what a publisher with ever new keys can hold.
ROUTES_REMEMBERED = 10_000


class Exchange:
    """One exchange of one virtual host.

    ``routes`` remembers the queues of a routing key while ``routes_by_key``; the router fills and the virtual host
    empties it. ``published_in`` counts the messages published to it, ``published_out`` the queues they went to.
    """

    __slots__ = (
        "arguments",
        "guard",
        "is_auto_delete",
        "is_durable",
        "is_internal",
        "name",
        "published_in",
        "published_out",
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
        guard: "Guard | None" = None,
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
        self.routes_by_key = routes_by_key and guard is None
        self.guard = guard
        self.routes: dict[str, tuple[Queue, ...]] = {}
        self.published_in = 0
        self.published_out = 0

    @property
    def alternate(self) -> str | None:
        """The name of the exchange that gets what this one cannot route (R24)."""
        return self.settings.text("alternate-exchange") if self.name else None

    def remember(self, message: Message, queues: "tuple[Queue, ...]") -> None:
        """Keep the route of a message's key for the next one."""
        if len(self.routes) >= ROUTES_REMEMBERED:
            self.routes.clear()
        self.routes[message.routing_key] = queues
