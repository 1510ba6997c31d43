"""A binding from an exchange to a queue or to another exchange."""

from typing import TYPE_CHECKING, TypeAlias, Union

from gateway.kernel.messages.message import Arguments
from gateway.kernel.messages.values import dumps_key

if TYPE_CHECKING:
    from gateway.kernel.queueing.queue_like import QueueLike
    from gateway.kernel.routing.exchange_identity import ExchangeIdentity

Destination: TypeAlias = Union["QueueLike", "ExchangeIdentity"]


class Binding:
    """One binding. Bindings with equal keys are the same binding (R7).

    ``user`` created it; empty if unknown.
    """

    __slots__ = ("arguments", "destination", "routing_key", "source", "user")

    def __init__(
        self,
        source: "ExchangeIdentity",
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
        """Whether it survives a restart: both of its ends are durable (R27)."""
        return self.source.is_durable and self.destination.is_durable

    @property
    def queue(self) -> "Destination":
        """The destination, under the name that suits most exchange types."""
        return self.destination

    def key(self) -> "tuple[Destination, str, bytes]":
        """Return the identity of the binding within its exchange.

        Arguments compare by value and type, as in the store: to a headers exchange ``True`` is not 1.
        """
        return self.destination, self.routing_key, dumps_key([dict(self.arguments)])
