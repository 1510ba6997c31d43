"""/deprecated-features: RabbitMQ's deprecated features that this broker has."""

from collections.abc import Generator
from typing import Final

from gateway.management.http.access_levels import AccessLevel
from gateway.management.http.call import Call
from gateway.management.http.routes import Fields, LongTask, Routes
from gateway.management.queue_search import any_queue

routes = Routes()

TRANSIENT: Final = "transient_nonexcl_queues"
GLOBAL_QOS: Final = "global_qos"

_DESCRIPTIONS: Final = {
    TRANSIENT: "Queues that are neither durable nor exclusive",
    GLOBAL_QOS: "A prefetch limit shared by the consumers of a channel (basic.qos with global)",
}


@routes.get("/deprecated-features", level=AccessLevel.ADMINISTRATOR)
def features(call: Call) -> list[Fields]:
    """List the deprecated features."""
    return [_view(call, name) for name in _DESCRIPTIONS]


@routes.get("/deprecated-features/used", level=AccessLevel.ADMINISTRATOR)
def used_features(call: Call) -> LongTask:
    """List the deprecated features in use; the use of ``global_qos`` is not known."""
    return LongTask(_used(call))


def _used(call: Call) -> Generator[None, None, list[Fields]]:
    has_transient = yield from any_queue(call.broker, lambda queue: not queue.is_durable and queue.owner is None)
    return [_view(call, TRANSIENT)] if has_transient else []


def _view(call: Call, name: str) -> Fields:
    is_permitted = name != TRANSIENT or call.broker.queue_rules.permits_transient
    return {
        "name": name,
        "desc": _DESCRIPTIONS[name],
        "doc_url": "",
        "deprecation_phase": "permitted_by_default",
        "state": "permitted" if is_permitted else "denied",
        "provided_by": "rabbit",
    }
