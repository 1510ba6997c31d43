"""JSON view of an explanation: the exchanges on the way, their bindings, policies and plugins, and the queues."""

from collections.abc import Generator
from typing import Final

from gateway.kernel.broker.broker import Broker
from gateway.kernel.features.interceptors import routing_type
from gateway.kernel.queueing.queue_like import QueueLike
from gateway.kernel.routing.binding import Binding
from gateway.kernel.routing.exchange import Exchange
from gateway.kernel.settings.effective_settings import EffectiveSettings
from gateway.kernel.vhosts.explanation import ExplainedVisit, Explanation
from gateway.management.http.routes import Fields
from gateway.management.views.queues import queue_type
from gateway.management.views.topology import binding_view

#: Items written between two readings of the clock, and queues that are listed.
_STEP: Final = 32
MOST_QUEUES: Final = 1000


def explanation_view(broker: Broker, explanation: Explanation) -> Generator[None, None, Fields]:
    """Return the steps that write an explanation."""
    message = explanation.message
    exchanges: list[Fields] = []
    for visit in explanation.visits:
        view = yield from _visit_view(broker, visit)
        exchanges.append(view)
    named = [queue for queue in explanation.queues if queue.name]
    queues: list[Fields] = []
    for number, queue in enumerate(named[:MOST_QUEUES]):
        refusal = None if queue.is_deleted else queue.refusal_of(message)
        queues.append(_queue_view(queue) | {"refusal": None if refusal is None else refusal.value})
        if number % _STEP == 0:
            yield
    return {
        "routing_keys": [message.routing_key, *message.header.sender_keys],
        "outcome": _outcome(explanation),
        "exchanges": exchanges,
        "queue_count": len(named),
        "queues": queues,
    }


def _outcome(explanation: Explanation) -> str:
    """Return what happens to the message as a whole."""
    if any(queue.name for queue in explanation.queues):
        return "routed"
    if not explanation.queues:
        return "unroutable"
    return "delayed" if explanation.duplicate_at is None else "duplicate"


def _visit_view(broker: Broker, explained: ExplainedVisit) -> Generator[None, None, Fields]:
    visit, exchange = explained.visit, explained.visit.exchange
    bindings: list[Fields] = []
    for number, (binding, matched) in enumerate(_listed(explained)):
        bindings.append(binding_view(binding) | {"matched": matched})
        if number % _STEP == 0:
            yield
    return {
        "name": exchange.name,
        "type": exchange.type_name,
        "plugin": _plugin_of(broker, exchange) or None,
        **_policies(exchange.settings),
        "alternate_exchange": exchange.alternate,
        "used_alternate": visit.used_alternate,
        "intercepted": _intercepted(explained),
        "inert": exchange.inert_reason or None,
        "fault": visit.fault or None,
        "bindings_tried": explained.tried_count,
        "bindings_matched": explained.matched_count,
        "bindings": bindings,
    }


def _listed(explained: ExplainedVisit) -> list[tuple[Binding, bool]]:
    return [(binding, True) for binding in explained.matched] + [(binding, False) for binding in explained.unmatched]


def _plugin_of(broker: Broker, exchange: Exchange) -> str:
    """Return the plugin that supplies the type of an exchange; empty for the default exchange."""
    if not exchange.name or exchange.inert_reason:
        return ""
    return broker.plugins_in_use.plugin_of(exchange.vhost_name, routing_type(exchange.type_name, exchange.arguments))


def _intercepted(explained: ExplainedVisit) -> str | None:
    """Return what the exchange does with the message instead of routing it; ``None`` if it routes it."""
    interceptor, taker = explained.visit.exchange.interceptor, explained.visit.taker
    if interceptor is None or taker is None:
        return None
    return "delayed" if taker is interceptor.waiting else "duplicate"


def _policies(settings: EffectiveSettings) -> Fields:
    return {
        "policy": None if settings.policy is None else settings.policy.name,
        "operator_policy": None if settings.operator_policy is None else settings.operator_policy.name,
    }


def _queue_view(queue: QueueLike) -> Fields:
    settings = queue.settings
    return {
        "name": queue.name,
        "type": queue_type(queue),
        "durable": queue.is_durable,
        "messages": len(queue),
        "consumers": queue.consumer_count,
        **_policies(settings),
        "effective_settings": {
            name: {"value": setting.value, "source": setting.source} for name, setting in settings.items()
        },
    }
