"""Export of definitions in RabbitMQ's format, which ``gateway.definitions`` reads.

The export is made in small steps because it may be large. Predeclared exchanges and exclusive queues are not exported.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Final

from gateway.definitions import secrets
from gateway.kernel.broker.broker import Broker
from gateway.kernel.journal.records.access import UserRecord
from gateway.kernel.messages.message import Value
from gateway.kernel.queueing.queue_like import QueueLike
from gateway.kernel.routing.binding import Binding
from gateway.kernel.routing.exchange import Exchange
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.management.http.routes import Fields, Pieces
from gateway.management.views.json import encode
from gateway.management.views.metadata import metadata_view
from gateway.management.views.policies import policy_view, rule_view
from gateway.management.views.queues import queue_type
from gateway.version import RABBITMQ_VERSION, VERSION

_RESERVED: Final = "amq."

#: Entries written in one step.
_BATCH_SIZE: Final = 50


def export(broker: Broker, *, with_secrets: bool) -> Pieces:
    """Yield the definitions of the whole broker in pieces; without secrets, passwords in URIs are replaced."""
    shown = _unchanged if with_secrets else secrets.shown
    directory, vhosts = broker.directory, list(broker.vhost_by_name.values())
    vhosts_with_fields = [(vhost, {"vhost": vhost.name}) for vhost in vhosts]
    head = {
        "rabbit_version": RABBITMQ_VERSION,
        "rabbitmq_version": RABBITMQ_VERSION,
        "product_name": "gateway",
        "product_version": VERSION,
    }
    return _document(
        head,
        {
            "users": map(_user, list(directory.user_by_name.values())),
            "vhosts": map(_vhost, vhosts),
            "permissions": (each.to_fields() for each in list(directory.permissions)),
            "topic_permissions": (each.to_fields() for each in list(directory.topic_permissions)),
            "parameters": (each for vhost in vhosts for each in _parameters(broker, vhost, shown)),
            "global_parameters": (
                {"name": each.name, "value": shown(each.value)}
                for each in list(broker.parameters.values())
                if not each.vhost
            ),
            "policies": (policy_view(each) for each in list(broker.policies.values()) if not each.is_operator),
            **_topology(vhosts_with_fields),
        },
    )


def export_vhost(broker: Broker, vhost: VirtualHost, *, with_secrets: bool) -> Pieces:
    """Yield the definitions of one virtual host without its name, so that another can import them."""
    shown = _unchanged if with_secrets else secrets.shown
    policies = [each for each in broker.policies.values() if each.vhost == vhost.name and not each.is_operator]
    return _document(
        {"rabbit_version": RABBITMQ_VERSION},
        {
            "parameters": _parameters(broker, vhost, shown),
            "policies": map(policy_view, policies),
            **_topology([(vhost, {})]),
        },
    )


def _document(head: Fields, categories: Mapping[str, Iterable[Fields]]) -> Pieces:
    """Yield a document with long categories in pieces."""
    yield encode(head)[:-1]
    for category, entries in categories.items():
        yield b"," + encode(category) + b":["
        source, comma = iter(entries), b""
        while batch := list(islice(source, _BATCH_SIZE)):
            yield comma + b",".join(map(encode, batch))
            comma = b","
        yield b"]"
    yield b"}"


def _topology(vhosts_with_fields: Sequence[tuple[VirtualHost, Fields]]) -> dict[str, Iterable[Fields]]:
    return {
        "queues": (
            _queue(queue, vhost_fields)
            for vhost, vhost_fields in vhosts_with_fields
            for queue in list(vhost.queue_by_name.values())
            if queue.owner is None
        ),
        "exchanges": (
            _exchange(exchange, vhost_fields)
            for vhost, vhost_fields in vhosts_with_fields
            for exchange in list(vhost.exchange_by_name.values())
            if exchange.name and not exchange.name.startswith(_RESERVED)
        ),
        "bindings": (
            _binding(binding, vhost_fields)
            for vhost, vhost_fields in vhosts_with_fields
            for binding in list(vhost.bindings)
            if getattr(binding.destination, "owner", None) is None
        ),
    }


def _user(user: UserRecord) -> Fields:
    """Return a user; RabbitMQ ignores ``scram_sha_256``."""
    credential = {"scram_sha_256": user.scram_sha_256} if user.scram_sha_256 else {}
    return {
        "name": user.name,
        "password_hash": user.password_hash,
        "hashing_algorithm": user.hashing_algorithm,
        **credential,
        "tags": list(user.tags),
        "limits": dict(user.limits),
    }


def _queue(queue: QueueLike, vhost_fields: Fields) -> Fields:
    return {
        "name": queue.name,
        **vhost_fields,
        "type": queue_type(queue),  # as rabbitmqctl exports it: the virtual host may have another default type
        "durable": queue.is_durable,
        "auto_delete": queue.is_auto_delete,
        "arguments": dict(queue.arguments),
    }


def _exchange(exchange: Exchange, vhost_fields: Fields) -> Fields:
    return {
        "name": exchange.name,
        **vhost_fields,
        "type": exchange.type_name,
        "durable": exchange.is_durable,
        "auto_delete": exchange.is_auto_delete,
        "internal": exchange.is_internal,
        "arguments": dict(exchange.arguments),
    }


def _binding(binding: Binding, vhost_fields: Fields) -> Fields:
    return {
        "source": binding.source.name,
        **vhost_fields,
        "destination": binding.destination.name,
        "destination_type": "exchange" if isinstance(binding.destination, Exchange) else "queue",
        "routing_key": binding.routing_key,
        "arguments": dict(binding.arguments),
    }


def _vhost(vhost: VirtualHost) -> Fields:
    metadata = metadata_view(vhost)
    tracing = {"tracing": vhost.record.tracing}
    if vhost.record.trace_table:  # RabbitMQ has no such key
        tracing["trace_table"] = True
    return {"name": vhost.name, **metadata, **tracing, "metadata": metadata}


def _parameters(broker: Broker, vhost: VirtualHost, shown: Callable[[Value], Value]) -> list[Fields]:
    """Return the parameters of a virtual host, which include operator policies and limits as in RabbitMQ."""
    found = [
        {"vhost": each.vhost, "component": each.component, "name": each.name, "value": shown(each.value)}
        for each in broker.parameters.values()
        if each.vhost == vhost.name
    ]
    found += [
        {"vhost": each.vhost, "component": "operator_policy", "name": each.name, "value": rule_view(each)}
        for each in broker.policies.values()
        if each.vhost == vhost.name and each.is_operator
    ]
    if vhost.record.limits:
        limits = dict(vhost.record.limits)
        found.append({"vhost": vhost.name, "component": "vhost-limits", "name": "limits", "value": limits})
    return found


def _unchanged(value: Value) -> Value:
    return value
