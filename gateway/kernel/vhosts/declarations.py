"""Declarations of exchanges and queues: validation, and comparison with an existing entity.

Checks run in the same order as in RabbitMQ, so that a declaration with two faults is refused for the same reason.
"""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self

from gateway.kernel.errors import PreconditionFailed, ResourceLocked
from gateway.kernel.features.interceptors import require_valid_interceptor
from gateway.kernel.messages.bounds import fault_of_key, require_arguments, require_name
from gateway.kernel.messages.message import Arguments
from gateway.kernel.names import require_free
from gateway.kernel.settings.arguments import (
    COMPARED_EXCHANGE_ARGUMENTS,
    require_equal,
    require_equivalent,
    type_name,
)
from gateway.kernel.settings.offered_settings import OfferedSettings
from gateway.kernel.settings.queue_arguments import COMPARED, require_possible, require_valid

if TYPE_CHECKING:
    from gateway.kernel.queueing.queue_like import QueueLike
    from gateway.kernel.routing.exchange import Exchange


@dataclass(frozen=True, slots=True)
class ExchangeDeclaration:
    """The declared properties of an exchange."""

    vhost_name: str
    name: str
    type: str
    is_durable: bool = False
    is_auto_delete: bool = False
    is_internal: bool = False
    arguments: Arguments = field(default_factory=dict)

    @property
    def entity(self) -> str:
        """The declared entity, as error texts name it."""
        return f"exchange '{self.name}' in vhost '{self.vhost_name}'"

    def require_new(self) -> None:
        """Validate the properties of a new exchange.

        :raises AccessRefused: when the name is reserved.
        :raises PreconditionFailed: when the name is too long, or an argument is invalid.
        """
        require_free("exchange", self.name)
        require_name("exchange", self.name)
        require_arguments(self.entity, self.arguments)
        alternate = self.arguments.get("alternate-exchange", "")
        if not isinstance(alternate, str):
            wrong = f"invalid type '{type_name(alternate)}' for arg 'alternate-exchange'"
            raise PreconditionFailed(f"{wrong} in {self.entity}")
        if fault := fault_of_key(alternate):
            raise PreconditionFailed(f"invalid arg 'alternate-exchange' for {self.entity}: {fault}")
        require_valid_interceptor(self.type, self.arguments)

    def require_equivalent(self, exchange: "Exchange") -> None:
        """Compare with an existing exchange (R10). :raises PreconditionFailed: naming the first difference."""
        require_equal(self.entity, "type", self.type, exchange.type_name)
        require_equal(self.entity, "durable", self.is_durable, exchange.is_durable)
        require_equal(self.entity, "auto_delete", self.is_auto_delete, exchange.is_auto_delete)
        require_equal(self.entity, "internal", self.is_internal, exchange.is_internal)
        require_equivalent(self.entity, COMPARED_EXCHANGE_ARGUMENTS, self.arguments, exchange.arguments)


@dataclass(frozen=True, slots=True)
class QueueDeclaration:
    """The declared properties of a queue.

    ``owner`` makes it exclusive; ``claimant`` is the connection that declares it, exclusive or not. Reserved names are
    allowed for a name that the broker generated (``is_server_named``). A new queue counts for ``user``.
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
        """The declared entity, as error texts name it."""
        return f"queue '{self.name}' in vhost '{self.vhost_name}'"

    @property
    def survives(self) -> bool:
        """Whether the queue survives a restart: an exclusive one is deleted with its connection (R31)."""
        return self.is_durable and self.owner is None

    def typed(self, default: str) -> Self:
        """Return the declaration with the default type if it names none and can have that type.

        As in RabbitMQ, only a queue that outlives its connection can be a quorum queue or a stream; any other is
        classic (rabbit_amqqueue: augment_declare_args).
        """
        if default == "classic" or "x-queue-type" in self.arguments or self.is_auto_delete or not self.survives:
            return self
        return replace(self, arguments={**self.arguments, "x-queue-type": default})

    def require_new(self, offered: OfferedSettings) -> None:
        """Validate the properties of a new queue, with the settings that plugins offer.

        :raises AccessRefused: when the name is reserved.
        :raises PreconditionFailed: when the name is too long, or an argument is invalid.
        """
        if not self.is_server_named:
            require_free("queue", self.name)
        require_name("queue", self.name)
        require_valid(self.entity, self.arguments, offered)
        require_possible(
            self.entity,
            self.arguments,
            is_durable=self.is_durable,
            is_exclusive=self.owner is not None,
            is_auto_delete=self.is_auto_delete,
        )

    def require_equivalent(self, queue: "QueueLike", offered: OfferedSettings) -> None:
        """Compare with an existing queue, with the settings that plugins offer.

        :raises ResourceLocked: when it has another owner, or only one of both is exclusive (R31).
        :raises PreconditionFailed: naming the first difference (R10).
        """
        queue.require_owner(self.claimant or self.owner)
        if (self.owner is None) != (queue.owner is None):
            raise ResourceLocked(queue.locked)
        require_equal(self.entity, "durable", self.is_durable, queue.is_durable)
        require_equal(self.entity, "auto_delete", self.is_auto_delete, queue.is_auto_delete)
        require_equivalent(self.entity, (*COMPARED, *offered.arguments), self.arguments, queue.arguments)
