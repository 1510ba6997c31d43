"""Permission checks of changes over HTTP, the same as those of AMQP."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from gateway.access import Operation, Permissions
from gateway.access.indirect_publishing import require_alternate, require_dead_letters, require_sender_topics
from gateway.kernel.errors import AccessRefused, PreconditionFailed
from gateway.kernel.messages.bounds import require_sender_keys
from gateway.kernel.messages.message import Arguments, Message
from gateway.kernel.messages.native_header import NATIVE
from gateway.kernel.routing.exchange import Exchange
from gateway.kernel.routing.exchange_identity import ExchangeIdentity
from gateway.kernel.settings.arguments import type_name
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.management.http.call import Call
from gateway.management.http.errors import busy

IMPERSONATOR: Final = "impersonator"


def require_no_alarm(call: Call) -> None:
    """Check that publishers are not blocked. :raises HttpError: 503 while an alarm blocks them."""
    alarms = call.broker.alarms
    if alarms:
        raise busy(f"publishers are blocked: {alarms.reason}")


def require_declarable_queue(call: Call, vhost: VirtualHost, name: str, arguments: Arguments) -> None:
    """Check the permissions for declaring a queue. :raises AccessRefused: if one is missing."""
    permissions = call.permissions(vhost)
    permissions.require(Operation.CONFIGURE, "queue", name)
    require_dead_letters(permissions, name, arguments, _exchange_named(vhost, arguments.get("x-dead-letter-exchange")))


def require_declarable_exchange(call: Call, vhost: VirtualHost, name: str, arguments: Arguments) -> None:
    """Check the permissions for declaring an exchange. :raises AccessRefused: if one is missing."""
    permissions = call.permissions(vhost)
    permissions.require(Operation.CONFIGURE, "exchange", name)
    require_alternate(permissions, name, arguments, _exchange_named(vhost, arguments.get("alternate-exchange")))


def _exchange_named(vhost: VirtualHost, name: object) -> Exchange | None:
    return vhost.exchange_by_name.get(name) if isinstance(name, str) else None


def require_bindable(
    permissions: Permissions, kind: str, destination: str, source: ExchangeIdentity, routing_key: str
) -> None:
    """Check the permissions for binding and unbinding. :raises AccessRefused: if one is missing."""
    permissions.require(Operation.WRITE, kind, destination)
    permissions.require(Operation.READ, "exchange", source.name)
    if source.type_name == "topic":
        permissions.require_topic(Operation.READ, source.name, routing_key)


def require_publishable(call: Call, vhost: VirtualHost, exchange: Exchange, message: Message) -> None:
    """Check the permissions for publishing. :raises Refused: if one is missing, or the message is not acceptable."""
    for check in publish_checks(call.permissions(vhost), exchange, message).values():
        check()
    user, principal = message.properties.user_id, call.principal
    if user not in (None, principal.name) and IMPERSONATOR not in principal.tags:
        raise PreconditionFailed(f"user_id property set to '{user}' but authenticated user was '{principal.name}'")
    limit = call.context.max_message_size
    if len(message.body) > limit:
        raise PreconditionFailed(f"message size {len(message.body)} is larger than configured max size {limit}")


def publish_checks(
    permissions: Permissions, exchange: Exchange, message: Message, variables: Mapping[str, str] = MappingProxyType({})
) -> dict[str, Callable[[], None]]:
    """Return the checks of a publish by their names; each raises ``Refused`` if it does not allow the publish.

    ``variables`` are those of ``Permissions.may_use_topic``.
    """
    return {
        "write": lambda: permissions.require(Operation.WRITE, "exchange", exchange.name),
        "not_internal": lambda: _require_not_internal(exchange),
        "type_available": exchange.require_working,
        "sender_keys": lambda: _require_sender_keys(message),
        "topic_write": lambda: require_sender_topics(permissions, exchange, message, variables),
    }


def _require_not_internal(exchange: Exchange) -> None:
    if exchange.is_internal:
        raise AccessRefused(f"cannot publish to internal exchange '{exchange.name}' in vhost '{exchange.vhost_name}'")


def _require_sender_keys(message: Message) -> None:
    """Check that ``CC`` and ``BCC`` are lists, as AMQP does. :raises PreconditionFailed: with AMQP's text."""
    headers = NATIVE.properties(message.header.stored_raw).headers
    for name in ("CC", "BCC"):
        keys = headers.get(name, [])
        if not isinstance(keys, list):
            kind = type_name(keys)
            raise PreconditionFailed(f'invalid message: {{unacceptable_type_in_header,"{name}",{kind}}}')
    require_sender_keys(message.header.sender_keys)
