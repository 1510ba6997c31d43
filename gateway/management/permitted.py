"""The permissions that changes through the API take: those that AMQP asks for the same."""

from typing import Final

from gateway.access import Operation, Permissions
from gateway.kernel.errors import AccessRefused, PreconditionFailed
from gateway.kernel.exchange import Exchange
from gateway.kernel.message import Message
from gateway.kernel.vhost import VirtualHost
from gateway.management.call import Call

_IMPERSONATOR: Final = "impersonator"


def require_declarable(permissions: Permissions, kind: str, name: str, further: object) -> None:
    """Insist on what declaring takes; ``further`` is an exchange that an argument names. Raises ``AccessRefused``."""
    permissions.require(Operation.CONFIGURE, kind, name)
    if isinstance(further, str):
        permissions.require(Operation.READ, kind, name)
        permissions.require(Operation.WRITE, "exchange", further)


def require_bindable(permissions: Permissions, kind: str, destination: str, source: Exchange, routing_key: str) -> None:
    """Insist on what binding and unbinding take. :raises AccessRefused: if it is missing."""
    permissions.require(Operation.WRITE, kind, destination)
    permissions.require(Operation.READ, "exchange", source.name)
    if source.type_name == "topic":
        permissions.require_topic(Operation.READ, source.name, routing_key)


def require_publishable(call: Call, vhost: VirtualHost, exchange: Exchange, message: Message) -> None:
    """Insist on what publishing takes. :raises Refused: if it is missing, or the message is not acceptable."""
    permissions = call.permissions(vhost)
    permissions.require(Operation.WRITE, "exchange", exchange.name)
    if exchange.is_internal:
        raise AccessRefused(f"cannot publish to internal exchange '{exchange.name}' in vhost '{vhost.name}'")
    exchange.require_working()
    if exchange.type_name == "topic":
        permissions.require_topic(Operation.WRITE, exchange.name, message.routing_key)
    user, principal = message.properties.user_id, call.principal
    if user not in (None, principal.name) and _IMPERSONATOR not in principal.tags:
        raise PreconditionFailed(f"user_id property set to '{user}' but authenticated user was '{principal.name}'")
    limit = call.surroundings.max_message_size
    if len(message.body) > limit:
        raise PreconditionFailed(f"message size {len(message.body)} is larger than configured max size {limit}")
