"""JSON views of queues."""

from collections.abc import Generator
from typing import Final

from gateway.kernel.queueing.queue_like import QueueLike
from gateway.kernel.streams.stream import Stream
from gateway.kernel.vhosts.queue_stats import QueueStats, stats_of
from gateway.management.http.call import Call
from gateway.management.http.routes import Fields
from gateway.management.statistics.counts import counts_by_name, disk_counts, message_counts
from gateway.management.statistics.subjects import key_of
from gateway.management.views.channels import consumer_view
from gateway.management.views.collection import garbage_collection
from gateway.management.views.numbers import DELIVERIES, message_totals, with_rates
from gateway.management.views.policies import policy_fields
from gateway.management.views.replicas import replica_fields
from gateway.management.views.splits import collect, deliveries_from, routes_to
from gateway.management.views.streams import stream_fields
from gateway.management.views.times import timestamp

#: Memory of a queue and of a message without its body, in bytes, for the estimate in ``memory``.
_QUEUE_SIZE: Final = 3_000
_MESSAGE_SIZE: Final = 400


def basic_view(call: Call, queue: QueueLike) -> Fields:
    """Return the fields that do not change with traffic; ``inert`` only if settings have no effect."""
    vhost, node = call.broker.vhost_by_name.get(queue.vhost_name), call.broker.node
    inert = vhost.queue_features.inert_reason(queue) if vhost is not None else ""
    return (
        ({"inert": inert} if inert else {})
        | replica_fields(call, queue)
        | {
            "arguments": dict(queue.arguments),
            "auto_delete": queue.is_auto_delete,
            "durable": queue.is_durable,
            "exclusive": queue.owner is not None,
            "name": queue.name,
            "node": node,
            "state": "running",
            "type": queue_type(queue),
            "vhost": queue.vhost_name,
        }
    )


def list_item_view(call: Call, queue: QueueLike) -> Fields:
    """Return the view of a queue in a list: all fields, or fewer if the query requests it."""
    if not call.is_set("disable_stats"):
        return queue_view(call, queue)
    fields = basic_view(call, queue)
    policy = policy_fields(queue)["policy"]
    if policy is not None:
        fields["policy"] = policy
    if call.is_set("enable_queue_totals"):
        fields |= message_counts(len(queue), queue.unsettled)
    return fields


def queue_view(call: Call, queue: QueueLike) -> Fields:
    """Return all fields but the details of consumers, channels and exchanges."""
    trend, counts = call.trend(key_of(queue)), counts_by_name(queue.counters)
    fields = basic_view(call, queue) | policy_fields(queue)
    fields |= message_totals(len(queue), queue.unsettled, trend)
    fields |= _stats(queue) | _activity(call, queue) | disk_counts(queue)
    if isinstance(queue, Stream):
        fields |= stream_fields(call, queue)
    fields |= {
        "consumers": len(queue.consumers),
        "exclusive_consumer_tag": next((each.tag for each in queue.consumers if each.is_exclusive), None),
        "garbage_collection": garbage_collection(call.context.statistics.collections),
        "messages_delayed": queue.delayed_count,
        "recoverable_slaves": None,
        "single_active_consumer_tag": _active_tag(queue),
    }
    if any(counts.values()):
        fields["message_stats"] = with_rates(("publish", *DELIVERIES), counts, trend)
    if queue.owner is not None and (owner := getattr(queue.owner, "name", None)):
        fields["owner_pid_details"] = {"name": owner}
    return fields


def detailed_view(call: Call, queue: QueueLike) -> Generator[None, None, Fields]:
    """Return all fields in steps: with consumers, channels and exchanges."""
    incoming = yield from collect(routes_to(call, queue))
    deliveries = yield from collect(deliveries_from(call, queue))
    consumers = [consumer_view(call.context, consumer) for consumer in queue.consumers]
    return {"consumer_details": consumers, "incoming": incoming, "deliveries": deliveries} | queue_view(call, queue)


def _stats(queue: QueueLike) -> Fields:
    """Return the message and byte counts by location; without a message the timestamp of the head is ``None``."""
    stats = stats_of(queue)
    return {
        "head_message_timestamp": stats.head_timestamp_s,
        "memory": estimated_memory(stats),
        "message_bytes": stats.all.bytes,
        "message_bytes_paged_out": stats.paged_out.bytes,
        "message_bytes_persistent": stats.persistent.bytes,
        "message_bytes_ram": stats.in_memory.bytes,
        "message_bytes_ready": stats.ready.bytes,
        "message_bytes_unacknowledged": stats.unsettled.bytes,
        "messages_paged_out": stats.paged_out.count,
        "messages_persistent": stats.persistent.count,
        "messages_ram": stats.in_memory.count,
        "messages_ready_ram": stats.ready_in_memory.count,
        "messages_unacknowledged_ram": stats.unsettled.count,
    }


def estimated_memory(stats: QueueStats) -> int:
    """Return the estimated memory of a queue with these messages, in bytes."""
    return _QUEUE_SIZE + _MESSAGE_SIZE * stats.in_memory.count + stats.in_memory.bytes


def _activity(call: Call, queue: QueueLike) -> Fields:
    """Return the consumer capacity and, for an idle queue, the time since when it is idle."""
    statistics = call.context.statistics
    capacity = round(statistics.capacity(queue), 3)
    fields: Fields = {"consumer_capacity": capacity, "consumer_utilisation": capacity}
    idle_since_ms = statistics.idle_since_ms(key_of(queue))
    if idle_since_ms is not None:
        fields["idle_since"] = timestamp(max(idle_since_ms, queue.used_at_ms))
    return fields


def queue_type(queue: QueueLike) -> str:
    """Return the declared type of a queue."""
    return str(queue.arguments.get("x-queue-type", "classic"))


def _active_tag(queue: QueueLike) -> str | None:
    """Return the tag of the active consumer of a single-active-consumer queue."""
    if queue.arguments.get("x-single-active-consumer") is not True:
        return None
    return next((consumer.tag for consumer in queue.consumers if queue.consumers.is_active(consumer)), None)
