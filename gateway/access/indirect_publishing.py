"""Permissions for indirect publishing: dead-letter exchanges, alternate exchanges and exchange bindings.

Topic permissions restrict the routing keys of a user's publishes. A user could bypass them with an exchange or a queue
that republishes messages, so its declaration requires the same permission.
"""

from collections.abc import Mapping
from types import MappingProxyType

from gateway.access.permissions import Operation, Permissions
from gateway.kernel.messages.message import Arguments, Message
from gateway.kernel.routing.exchange import Exchange
from gateway.kernel.routing.exchange_identity import ExchangeIdentity


def require_dead_letters(permissions: Permissions, queue: str, arguments: Arguments, exchange: Exchange | None) -> None:
    """Require the permissions for a queue's dead-letter exchange; ``exchange`` is that exchange, if it exists.

    :raises AccessRefused: without read on the queue, write on the exchange, or write on the dead letters' topics.
    """
    name = arguments.get("x-dead-letter-exchange")
    if not isinstance(name, str):
        return
    permissions.require(Operation.READ, "queue", queue)
    permissions.require(Operation.WRITE, "exchange", name)
    routing_key = arguments.get("x-dead-letter-routing-key")
    if isinstance(routing_key, str):
        if _has_topics(exchange):
            permissions.require_topic(Operation.WRITE, name, routing_key)
    else:
        require_unrestricted_topics(permissions, name, exchange)


def require_alternate(permissions: Permissions, name: str, arguments: Arguments, exchange: Exchange | None) -> None:
    """Require the permissions for an alternate exchange; ``exchange`` is that exchange, if it exists.

    :raises AccessRefused: without read on the exchange itself, write on its alternate, or write on all its topics.
    """
    alternate = arguments.get("alternate-exchange")
    if isinstance(alternate, str):
        permissions.require(Operation.READ, "exchange", name)
        permissions.require(Operation.WRITE, "exchange", alternate)
        require_unrestricted_topics(permissions, alternate, exchange)


def require_unrestricted_topics(permissions: Permissions, name: str, exchange: ExchangeIdentity | None) -> None:
    """Require that all keys may be published to an exchange. :raises AccessRefused: if its topics are restricted."""
    if _has_topics(exchange):
        permissions.require_every_topic(Operation.WRITE, name)


def require_sender_topics(
    permissions: Permissions,
    exchange: Exchange,
    message: Message,
    variables: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Require permission for all keys of a message, including ``CC`` and ``BCC``; see ``Permissions.may_use_topic``.

    :raises AccessRefused: if it is missing for a key.
    """
    if exchange.type_name == "topic" and permissions.restricts_topics:
        for routing_key in (message.routing_key, *message.header.sender_keys):
            permissions.require_topic(Operation.WRITE, exchange.name, routing_key, variables)


def _has_topics(exchange: ExchangeIdentity | None) -> bool:
    """Whether topic permissions may apply; a missing exchange may be declared as a topic exchange later."""
    return exchange is None or exchange.type_name == "topic"
