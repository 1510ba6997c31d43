"""The values by which lists of queues are usually sorted: those of the views, without making the whole view."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from gateway.kernel.queueing.queue_like import QueueLike
from gateway.kernel.vhosts.queue_stats import stats_of
from gateway.management.http.call import Call
from gateway.management.statistics.counts import counts_by_name
from gateway.management.statistics.subjects import key_of
from gateway.management.views.numbers import DELIVERIES
from gateway.management.views.queues import estimated_memory, queue_type

_VALUES: Final[Mapping[str, Callable[[QueueLike], Any]]] = {
    "auto_delete": lambda queue: queue.is_auto_delete,
    "consumers": lambda queue: len(queue.consumers),
    "durable": lambda queue: queue.is_durable,
    "exclusive": lambda queue: queue.owner is not None,
    "memory": lambda queue: estimated_memory(stats_of(queue)),
    "message_bytes": lambda queue: stats_of(queue).all.bytes,
    "message_bytes_ready": lambda queue: stats_of(queue).ready.bytes,
    "message_bytes_unacknowledged": lambda queue: stats_of(queue).unsettled.bytes,
    "message_bytes_ram": lambda queue: stats_of(queue).in_memory.bytes,
    "messages": lambda queue: len(queue) + queue.unsettled,
    "messages_persistent": lambda queue: stats_of(queue).persistent.count,
    "messages_ram": lambda queue: stats_of(queue).in_memory.count,
    "messages_ready": len,
    "messages_unacknowledged": lambda queue: queue.unsettled,
    "policy": lambda queue: queue.settings.policy.name if queue.settings.policy is not None else None,
    "type": queue_type,
    "vhost": lambda queue: queue.vhost_name,
}

_RATES: Final = {f"message_stats.{name}_details.rate": name for name in ("publish", *DELIVERIES)}


def sort_value(call: Call, field: str) -> Callable[[QueueLike], Any] | None:
    """Return the function of the value in a field of ``queue_view``; ``None`` for a field without one."""
    if call.is_set("disable_stats"):
        return None
    rate = _RATES.get(field)
    if rate is None:
        return _VALUES.get(field)

    def rate_of(queue: QueueLike) -> float | None:
        return call.trend(key_of(queue)).rate(rate) if any(counts_by_name(queue.counters).values()) else None

    return rate_of
