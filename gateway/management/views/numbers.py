"""Counts with their rates as RabbitMQ writes them: ``{"ack": 3, "ack_details": {"rate": 0.6}}``."""

from collections.abc import Iterable, Mapping
from typing import Final

from gateway.management.http.routes import Fields
from gateway.management.statistics.counts import message_counts
from gateway.management.statistics.history import Trend

#: What is shown of deliveries, everywhere.
DELIVERIES: Final = ("ack", "deliver", "deliver_get", "deliver_no_ack", "get", "get_empty", "get_no_ack", "redeliver")

#: What is shown of publishers, of a channel, a virtual host and the broker.
PUBLISHES: Final = ("confirm", "drop_unroutable", "publish", "return_unroutable")

#: The families of numbers, each with samples of its own.
LENGTHS: Final = "lengths"
MESSAGES: Final = "msg_rates"
OCTETS: Final = "data_rates"
NODE: Final = "node_stats"


def with_rates(names: Iterable[str], counts: Mapping[str, int], trend: Trend, family: str = MESSAGES) -> Fields:
    """Return each count with its rate, and with samples where the query asks for those of the family."""
    shown: Fields = {}
    for name in names:
        shown[name] = counts.get(name, 0)
        shown[f"{name}_details"] = trend.details(name, family)
    return shown


def message_totals(ready: int, unacknowledged: int, trend: Trend) -> Fields:
    """Return how many messages there are."""
    counts = message_counts(ready, unacknowledged)
    return with_rates(counts, counts, trend, LENGTHS)
