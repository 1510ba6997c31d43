"""Counts and rates as RabbitMQ writes them: ``{"ack": 3, "ack_details": {"rate": 0.6}}``."""

from collections.abc import Iterable, Mapping
from typing import Final

from gateway.management.routes import Fields

#: What is shown of deliveries, everywhere.
DELIVERIES: Final = ("ack", "deliver", "deliver_get", "deliver_no_ack", "get", "get_empty", "get_no_ack", "redeliver")

#: What is shown of publishers, of a channel, a virtual host and the broker.
PUBLISHES: Final = ("confirm", "drop_unroutable", "publish", "return_unroutable")


def with_rates(names: Iterable[str], counts: Mapping[str, int], rates: Mapping[str, float]) -> Fields:
    """Return each count with its rate; ``deliver_get`` is the sum of all four ways out."""
    shown: Fields = {}
    for name in names:
        shown[name] = _of(name, counts)
        shown[f"{name}_details"] = {"rate": round(_of(name, rates), 3) * 1.0}
    return shown


def message_totals(ready: int, unacknowledged: int, rates: Mapping[str, float]) -> Fields:
    """Return how many messages there are."""
    counts = {
        "messages": ready + unacknowledged,
        "messages_ready": ready,
        "messages_unacknowledged": unacknowledged,
    }
    return with_rates(counts, counts, rates)


def _of(name: str, numbers: Mapping[str, int] | Mapping[str, float]) -> int | float:
    if name == "deliver_get":
        return sum(numbers.get(way, 0) for way in ("deliver", "deliver_no_ack", "get", "get_no_ack"))
    return numbers.get(name, 0)
