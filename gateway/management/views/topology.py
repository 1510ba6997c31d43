"""JSON views of exchanges and bindings."""

import json
from base64 import urlsafe_b64encode
from collections.abc import Generator
from urllib.parse import quote_plus
from zlib import crc32

from gateway.kernel.messages.json_values import plain
from gateway.kernel.messages.message import Arguments
from gateway.kernel.queueing.queue_like import QueueLike
from gateway.kernel.routing.binding import Binding
from gateway.kernel.routing.exchange import Exchange
from gateway.management.http.call import Call
from gateway.management.http.routes import Fields
from gateway.management.statistics.counts import exchange_counts
from gateway.management.statistics.subjects import key_of
from gateway.management.views.numbers import with_rates
from gateway.management.views.splits import collect, publishes_to, routes_from

#: Name of the default exchange in paths.
DEFAULT_EXCHANGE = "amq.default"


def exchange_view(call: Call, exchange: Exchange) -> Fields:
    """Return the view of an exchange."""
    fields: Fields = {
        "arguments": dict(exchange.arguments),
        "auto_delete": exchange.is_auto_delete,
        "durable": exchange.is_durable,
        "internal": exchange.is_internal,
        "name": exchange.name,
        "type": exchange.type_name,
        "user_who_performed_action": "rmq-internal",
        "vhost": exchange.vhost_name,
    }
    settings = getattr(exchange, "settings", None)
    if settings is not None and settings.policy is not None:
        fields["policy"] = settings.policy.name
    if exchange.inert_reason:
        fields["inert"] = exchange.inert_reason
    waiting = exchange.interceptor.waiting if exchange.interceptor is not None else None
    if waiting is not None:
        fields["messages_delayed"] = waiting.delayed_count
    counts = exchange_counts(exchange)
    if any(counts.values()):
        fields["message_stats"] = with_rates(counts, counts, call.trend(key_of(exchange)))
    return fields


def detailed_exchange_view(call: Call, exchange: Exchange) -> Generator[None, None, Fields]:
    """Return the view of an exchange in steps, with its traffic by channel and queue."""
    incoming = yield from collect(publishes_to(call, exchange))
    outgoing = yield from collect(routes_from(call, exchange))
    return {"incoming": incoming, "outgoing": outgoing} | exchange_view(call, exchange)


def binding_view(binding: Binding) -> Fields:
    """Return the view of a binding."""
    destination = binding.destination
    return {
        "source": binding.source.name,
        "vhost": binding.source.vhost_name,
        "destination": destination.name,
        "destination_type": "exchange" if isinstance(destination, Exchange) else "queue",
        "routing_key": binding.routing_key,
        "arguments": dict(binding.arguments),
        "properties_key": properties_key(binding.routing_key, binding.arguments),
    }


def default_binding_view(queue: QueueLike) -> Fields:
    """Return the view of a queue's implicit binding to the default exchange."""
    return {
        "source": "",
        "vhost": queue.vhost_name,
        "destination": queue.name,
        "destination_type": "queue",
        "routing_key": queue.name,
        "arguments": {},
        "properties_key": properties_key(queue.name, {}),
    }


def properties_key(routing_key: str, arguments: Arguments) -> str:
    """Return the key that distinguishes bindings between two ends; ``~`` for an empty routing key without arguments.

    RabbitMQ hashes an Erlang term, so the part after ``~`` differs from RabbitMQ's; tools only pass it back.
    """
    if not routing_key and not arguments:
        return "~"
    key = quote_plus(routing_key, safe="", errors="surrogatepass")  # old bindings may contain lone surrogates
    if not arguments:
        return key
    written = json.dumps(plain(dict(arguments)), sort_keys=True).encode()
    digest = urlsafe_b64encode(crc32(written).to_bytes(4, "big")).decode()
    return f"{key}~{digest.rstrip('=')}"
