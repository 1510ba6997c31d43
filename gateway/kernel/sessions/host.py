"""The virtual host as its sessions use it: the interface that ``VirtualHost`` implements for them."""

from collections.abc import Iterator
from typing import Protocol

from gateway.kernel.errors import NotFound
from gateway.kernel.messages.message import Arguments
from gateway.kernel.queueing.consumer import ConsumedQueue
from gateway.kernel.queueing.queue_like import QueueLike
from gateway.kernel.routing.binding import Binding, Destination
from gateway.kernel.routing.exchange import Exchange


class HostQueues(Protocol):
    """The queues of the virtual host; the methods are those of ``Queues``."""

    @property
    def default_type(self) -> str:
        """The type of a queue that is declared without one."""
        ...

    def deleting(self, queue: QueueLike) -> Iterator[None]:
        """Delete a queue in steps."""
        ...


class SessionHost(Protocol):
    """The virtual host that sessions belong to; the methods are those of ``VirtualHost``."""

    name: str
    queue_by_name: dict[str, QueueLike]

    @property
    def queues(self) -> HostQueues:
        """The queues of the virtual host."""
        ...

    def declare_queue(
        self,
        name: str,
        *,
        is_durable: bool = False,
        owner: object | None = None,
        arguments: Arguments | None = None,
        user: str = "",
    ) -> QueueLike:
        """Return the queue that is declared; create it if there is none."""
        ...

    def delete_queue_if_done(self, queue: ConsumedQueue) -> None:
        """Delete a queue after its last consumer or group member left, if that applies."""
        ...

    def bind(
        self,
        source: Exchange,
        destination: Destination,
        routing_key: str,
        arguments: Arguments | None = None,
        user: str = "",
    ) -> Binding:
        """Return the binding with these parameters; create it if it does not exist."""
        ...

    def unbind(
        self, source: Exchange, destination: Destination, routing_key: str, arguments: Arguments | None = None
    ) -> bool:
        """Remove a binding; return whether it existed."""
        ...

    def release(self, owner: object) -> None:
        """Delete the exclusive queues of an owner that has disconnected."""
        ...


class DepartedHost:
    """A deleted virtual host, as sessions see it whose connections have not ended: nothing is in it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.queue_by_name: dict[str, QueueLike] = {}

    @property
    def queues(self) -> HostQueues:
        """Raise ``NotFound``."""
        raise self._gone()

    def declare_queue(
        self,
        name: str,
        *,
        is_durable: bool = False,
        owner: object | None = None,
        arguments: Arguments | None = None,
        user: str = "",
    ) -> QueueLike:
        """Raise ``NotFound``."""
        raise self._gone()

    def delete_queue_if_done(self, queue: ConsumedQueue) -> None:
        """Do nothing: the queue is deleted."""

    def bind(
        self,
        source: Exchange,
        destination: Destination,
        routing_key: str,
        arguments: Arguments | None = None,
        user: str = "",
    ) -> Binding:
        """Raise ``NotFound``."""
        raise self._gone()

    def unbind(
        self, source: Exchange, destination: Destination, routing_key: str, arguments: Arguments | None = None
    ) -> bool:
        """Return that there is no such binding."""
        return False

    def release(self, owner: object) -> None:
        """Do nothing: the queues of the owner are deleted."""

    def _gone(self) -> NotFound:
        return NotFound(f"vhost '{self.name}' was deleted")
