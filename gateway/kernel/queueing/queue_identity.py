"""The identity of a queue: name, properties, arguments and owner."""

from typing import Final

from gateway.kernel.errors import ResourceLocked
from gateway.kernel.messages.message import Arguments

#: Owns the exclusive queues that were deleted.
_FORMER_OWNER: Final = object()


class QueueIdentity:
    """A queue's identity, which does not change while it exists.

    ``id`` is the queue's number in the store, 0 for a transient queue. ``owner`` is the connection of an exclusive
    queue. ``stores_all`` means that every message is stored, whatever its delivery mode (R141).
    """

    __slots__ = ("arguments", "id", "is_auto_delete", "is_durable", "name", "owner", "stores_all", "vhost_name")

    def __init__(
        self,
        vhost_name: str,
        name: str,
        id: int,
        is_durable: bool,
        is_auto_delete: bool,
        owner: object | None,
        arguments: Arguments | None,
    ) -> None:
        self.vhost_name = vhost_name
        self.name = name
        self.id = id
        self.is_durable = is_durable
        self.is_auto_delete = is_auto_delete
        self.owner = owner
        self.arguments: Arguments = arguments or {}
        self.stores_all = self.arguments.get("x-queue-type") in ("quorum", "stream")

    @property
    def type_name(self) -> str:
        """The declared type: ``classic``, ``quorum`` or ``stream``."""
        return str(self.arguments.get("x-queue-type", "classic"))

    @property
    def entity(self) -> str:
        """The queue and its virtual host, for error texts."""
        return f"queue '{self.name}' in vhost '{self.vhost_name}'"

    @property
    def shares_credit(self) -> bool:
        """Whether its consumers may share a limit with those of other queues (global QoS)."""
        return not self.stores_all

    def disown(self) -> None:
        """Forget the connection that owned this deleted queue, because the counts of an exchange may keep the queue."""
        if self.owner is not None:
            self.owner = _FORMER_OWNER

    def require_owner(self, owner: object) -> None:
        """Check that a connection may use the queue (R31). :raises ResourceLocked: if another one owns it."""
        if self.owner is not None and self.owner is not owner:
            raise ResourceLocked(self.locked)

    @property
    def locked(self) -> str:
        """RabbitMQ's error text for an exclusive queue of another connection."""
        return (
            f"cannot obtain exclusive access to locked {self.entity}. It could be originally declared on another "
            "connection or the exclusive property value does not match that of the original declaration."
        )
