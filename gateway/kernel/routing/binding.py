"""A rule that leads from an exchange to a queue or to another exchange."""

from typing import TYPE_CHECKING, TypeAlias, Union

from gateway.kernel.messages.message import Arguments
from gateway.kernel.messages.values import dumps_key

if TYPE_CHECKING:
    from gateway.kernel.queueing.queue import Queue
    from gateway.kernel.routing.exchange import Exchange

Destination: TypeAlias = Union["Queue", "Exchange"]


class Binding:
    """One binding. Its identity is the object; its key says which bindings are the same rule (R7).

    ``user`` made it, and is empty where no user is known.
    """

    __slots__ = ("arguments", "destination", "routing_key", "source", "user")

    def __init__(
        self,
        source: "Exchange",
        destination: Destination,
        routing_key: str,
        arguments: Arguments,
        user: str = "",
    ) -> None:
        self.source = source
        self.destination = destination
        self.routing_key = routing_key
        self.arguments = arguments
        self.user = user

    @property
    def is_durable(self) -> bool:
        """Whether it survives a restart: when both of its ends do (R27)."""
        return self.source.is_durable and self.destination.is_durable

    @property
    def queue(self) -> "Destination":
        """The destination, under the name most exchange types read best with."""
        return self.destination

    def key(self) -> "tuple[Destination, str, bytes]":
        """What makes two bindings of one exchange the same rule.

        Arguments compare as the store tells them apart, by value and type: to a headers exchange ``True`` is not 1.
        """
        return self.destination, self.routing_key, dumps_key([dict(self.arguments)])
