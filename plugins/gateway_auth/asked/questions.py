"""Questions about permissions, as they are put to another server."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias


class ResourceKind(Enum):
    """The kind of a resource. The values are those of RabbitMQ's HTTP backend."""

    VHOST = "vhost"
    EXCHANGE = "exchange"
    QUEUE = "queue"
    TOPIC = "topic"


@dataclass(frozen=True, slots=True)
class Question:
    """Whether a user has a permission.

    ``name`` is that of the virtual host, exchange or queue; for a topic that of its exchange. ``permission`` is
    ``configure``, ``write`` or ``read``, and empty for the access to a virtual host. ``client_id`` is set for topics of
    clients that have one, ``peer_host`` for the access to a virtual host, if the address is known.
    """

    user: str
    tags: tuple[str, ...]
    vhost: str
    resource: ResourceKind
    name: str
    permission: str = ""
    routing_key: str = ""
    client_id: str = ""
    peer_host: str = ""

    @property
    def shown(self) -> str:
        """The resource in the words of an error message."""
        match self.resource:
            case ResourceKind.VHOST:
                return f"vhost '{self.vhost}'"
            case ResourceKind.TOPIC:
                return f"topic '{self.routing_key}' in exchange '{self.name}' in vhost '{self.vhost}'"
            case _:
                return f"{self.resource.value} '{self.name}' in vhost '{self.vhost}'"


Verdict: TypeAlias = bool | None
"""Whether the user has the permission; ``None`` if the server gave no valid answer."""

Ask: TypeAlias = Callable[[Question, Callable[[Verdict], None]], None]
"""Asks a server, and calls back once, now or later, on the kernel's thread."""
