"""A queue as the API shows it."""

from collections.abc import Mapping
from typing import Final

from gateway.kernel.queue import Queue
from gateway.management.routes import Fields
from gateway.management.scope import Surroundings
from gateway.management.statistics import counted
from gateway.management.views.channels import consumer_view
from gateway.management.views.numbers import DELIVERIES, message_totals, with_rates
from gateway.management.views.policies import policy_fields

#: Bytes that a queue and a waiting message take, and how many messages are in memory: for the estimate in ``memory``.
_QUEUE_SIZE: Final = 3_000
_MESSAGE_SIZE: Final = 400
_RESIDENT: Final = 2048


def basic_view(surroundings: Surroundings, queue: Queue) -> Fields:
    """Return what does not change with traffic."""
    return {
        "arguments": dict(queue.arguments),
        "auto_delete": queue.is_auto_delete,
        "durable": queue.is_durable,
        "exclusive": queue.owner is not None,
        "name": queue.name,
        "node": surroundings.broker.node,
        "state": "running",
        "type": queue_type(queue),
        "vhost": queue.vhost_name,
    }


def listed_view(surroundings: Surroundings, queue: Queue, query: Mapping[str, str]) -> Fields:
    """Return a queue in a list: everything, or less where the query asks for less."""
    if query.get("disable_stats") != "true":
        return queue_view(surroundings, queue)
    fields = basic_view(surroundings, queue)
    policy = policy_fields(queue)["policy"]
    if policy is not None:
        fields["policy"] = policy
    if query.get("enable_queue_totals") == "true":
        fields |= {
            "messages": len(queue) + queue.unsettled,
            "messages_ready": len(queue),
            "messages_unacknowledged": queue.unsettled,
        }
    return fields


def queue_view(surroundings: Surroundings, queue: Queue) -> Fields:
    """Return everything but the details of consumers."""
    rates = surroundings.statistics.rates(queue)
    counts = counted(queue.counters)
    ready, unacknowledged = len(queue), queue.unsettled
    fields = basic_view(surroundings, queue) | policy_fields(queue)
    fields |= message_totals(ready, unacknowledged, rates)
    fields |= {
        "consumer_capacity": 1 if len(queue.consumers) else 0,
        "consumer_utilisation": 1 if len(queue.consumers) else 0,
        "consumers": len(queue.consumers),
        "exclusive_consumer_tag": next((each.tag for each in queue.consumers if each.is_exclusive), None),
        "memory": _QUEUE_SIZE + _MESSAGE_SIZE * min(ready, _RESIDENT),
        "message_bytes_ready": queue.ready.bytes,
        "single_active_consumer_tag": _active_tag(queue),
    }
    if any(counts.values()):
        fields["message_stats"] = with_rates(("publish", *DELIVERIES), counts, rates)
    return fields


def detailed_view(surroundings: Surroundings, queue: Queue) -> Fields:
    """Return everything, consumers too."""
    consumers = [consumer_view(surroundings, consumer) for consumer in queue.consumers]
    return {"consumer_details": consumers} | queue_view(surroundings, queue)


def queue_type(queue: Queue) -> str:
    """Return the type a queue was declared with."""
    return str(queue.arguments.get("x-queue-type", "classic"))


def _active_tag(queue: Queue) -> str | None:
    """Return the tag of the consumer that a single-active-consumer queue serves."""
    if queue.arguments.get("x-single-active-consumer") is not True:
        return None
    return next((consumer.tag for consumer in queue.consumers if queue.consumers.is_active(consumer)), None)
