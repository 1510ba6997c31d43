"""What a queue is by its declaration: its name, what its declarer asked for, and to whom it belongs."""

from gateway.kernel.errors import ResourceLocked
from gateway.kernel.messages.message import Arguments


class Declared:
    """A queue's identity, which does not change while it exists.

    ``id`` is the queue's number in the store, 0 for one that does not survive a restart. ``owner`` is the connection
    an exclusive queue belongs to. ``stores_all`` says that messages survive whatever their publishers said (R141).
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
    def entity(self) -> str:
        """What messages to people call it."""
        return f"queue '{self.name}' in vhost '{self.vhost_name}'"

    @property
    def shares_credit(self) -> bool:
        """Whether its consumers may share a limit with those of other queues."""
        return not self.stores_all

    def require_owner(self, owner: object) -> None:
        """Refuse anyone but the owner of an exclusive queue (R31). :raises ResourceLocked: for any other."""
        if self.owner is not None and self.owner is not owner:
            raise ResourceLocked(self.locked)

    @property
    def locked(self) -> str:
        """What RabbitMQ says to those who may not use an exclusive queue."""
        return (
            f"cannot obtain exclusive access to locked {self.entity}. It could be originally declared on another "
            "connection or the exclusive property value does not match that of the original declaration."
        )
