"""What somebody asks an exchange or a queue to be: whether that makes sense, and whether it is what is there already.

A declaration is a value. It is checked in the order in which RabbitMQ checks, so that what is wrong in two ways is
refused for the same reason.
"""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self

from gateway.kernel.errors import PreconditionFailed, ResourceLocked
from gateway.kernel.features.interceptors import require_valid_interceptor
from gateway.kernel.messages.bounds import fault_of_said_key, require_arguments, require_name
from gateway.kernel.messages.message import Arguments
from gateway.kernel.names import require_free
from gateway.kernel.settings.arguments import (
    COMPARED_EXCHANGE_ARGUMENTS,
    COMPARED_QUEUE_ARGUMENTS,
    require_equal,
    require_equivalent,
    type_name,
)
from gateway.kernel.settings.queue_arguments import require_possible, require_valid

if TYPE_CHECKING:
    from gateway.kernel.queueing.queue import Queue
    from gateway.kernel.routing.exchange import Exchange


@dataclass(frozen=True, slots=True)
class ExchangeDeclaration:
    """What an exchange is to be."""

    vhost_name: str
    name: str
    type: str
    is_durable: bool = False
    is_auto_delete: bool = False
    is_internal: bool = False
    arguments: Arguments = field(default_factory=dict)

    @property
    def entity(self) -> str:
        """What is declared, as refusals call it."""
        return f"exchange '{self.name}' in vhost '{self.vhost_name}'"

    def require_new(self) -> None:
        """Refuse what no new exchange may be.

        :raises AccessRefused: when the name is reserved.
        :raises PreconditionFailed: when the name is too long, or an argument makes no sense.
        """
        require_free("exchange", self.name)
        require_name("exchange", self.name)
        require_arguments(self.entity, self.arguments)
        alternate = self.arguments.get("alternate-exchange", "")
        if not isinstance(alternate, str):
            wrong = f"invalid type '{type_name(alternate)}' for arg 'alternate-exchange'"
            raise PreconditionFailed(f"{wrong} in {self.entity}")
        if fault := fault_of_said_key(alternate):
            raise PreconditionFailed(f"invalid arg 'alternate-exchange' for {self.entity}: {fault}")
        require_valid_interceptor(self.type, self.arguments)

    def require_equivalent(self, exchange: "Exchange") -> None:
        """Refuse an exchange that has other properties (R10). :raises PreconditionFailed: naming the first."""
        require_equal(self.entity, "type", self.type, exchange.type_name)
        require_equal(self.entity, "durable", self.is_durable, exchange.is_durable)
        require_equal(self.entity, "auto_delete", self.is_auto_delete, exchange.is_auto_delete)
        require_equal(self.entity, "internal", self.is_internal, exchange.is_internal)
        require_equivalent(self.entity, COMPARED_EXCHANGE_ARGUMENTS, self.arguments, exchange.arguments)


@dataclass(frozen=True, slots=True)
class QueueDeclaration:
    """What a queue is to be. ``owner`` makes it exclusive; ``claimant`` is the connection that asks, exclusive or not.

    A name that the broker made up may be a reserved one: ``is_server_named``. A new queue counts for the ``user``.
    """

    vhost_name: str
    name: str
    is_durable: bool = False
    owner: object | None = None
    is_auto_delete: bool = False
    arguments: Arguments = field(default_factory=dict)
    is_server_named: bool = False
    claimant: object | None = None
    user: str = ""

    @property
    def entity(self) -> str:
        """What is declared, as refusals call it."""
        return f"queue '{self.name}' in vhost '{self.vhost_name}'"

    @property
    def survives(self) -> bool:
        """Whether the queue survives a restart: an exclusive one goes with its connection (R31)."""
        return self.is_durable and self.owner is None

    def typed(self, default: str) -> Self:
        """Return it with the type that it does not name: the default one, where such a queue can be of that type.

        As in RabbitMQ, only a queue that outlives its declarer can be a quorum queue or a stream; any other becomes
        classic, which is what a queue without a type is (rabbit_amqqueue: augment_declare_args).
        """
        if default == "classic" or "x-queue-type" in self.arguments or self.is_auto_delete or not self.survives:
            return self
        return replace(self, arguments={**self.arguments, "x-queue-type": default})

    def require_new(self) -> None:
        """Refuse what no new queue may be.

        :raises AccessRefused: when the name is reserved.
        :raises PreconditionFailed: when the name is too long, or an argument makes no sense.
        """
        if not self.is_server_named:
            require_free("queue", self.name)
        require_name("queue", self.name)
        require_valid(self.entity, self.arguments)
        require_possible(
            self.entity,
            self.arguments,
            is_durable=self.is_durable,
            is_exclusive=self.owner is not None,
            is_auto_delete=self.is_auto_delete,
        )

    def require_equivalent(self, queue: "Queue") -> None:
        """Refuse a queue that is another's, or has other properties.

        :raises ResourceLocked: when exclusiveness or its owner differ (R31).
        :raises PreconditionFailed: naming the first other property (R10).
        """
        queue.require_owner(self.claimant or self.owner)
        if (self.owner is None) != (queue.owner is None):
            raise ResourceLocked(queue.locked)
        require_equal(self.entity, "durable", self.is_durable, queue.is_durable)
        require_equal(self.entity, "auto_delete", self.is_auto_delete, queue.is_auto_delete)
        require_equivalent(self.entity, COMPARED_QUEUE_ARGUMENTS, self.arguments, queue.arguments)
