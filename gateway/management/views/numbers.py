"""JSON views of counts with rates, as in RabbitMQ: ``{"ack": 3, "ack_details": {"rate": 0.6}}``."""

from collections.abc import Iterable, Mapping
from typing import Final

from gateway.management.http.routes import Fields
from gateway.management.statistics.counts import message_counts
from gateway.management.statistics.history import Trend

#: Counts of deliveries.
DELIVERIES: Final = ("ack", "deliver", "deliver_get", "deliver_no_ack", "get", "get_empty", "get_no_ack", "redeliver")

#: Counts of publishes, for channels, virtual hosts and the broker.
PUBLISHES: Final = ("confirm", "drop_unroutable", "publish", "return_unroutable")

#: Families of counts, each with samples of its own.
LENGTHS: Final = "lengths"
MESSAGES: Final = "msg_rates"
OCTETS: Final = "data_rates"
NODE: Final = "node_stats"


def with_rates(names: Iterable[str], counts: Mapping[str, int], trend: Trend, family: str = MESSAGES) -> Fields:
    """Return each count with its rate, and with samples if the query requests those of the family."""
    shown: Fields = {}
    for name in names:
        shown[name] = counts.get(name, 0)
        shown[f"{name}_details"] = trend.details(name, family)
    return shown


def message_totals(ready: int, unacknowledged: int, trend: Trend) -> Fields:
    """Return message counts with rates."""
    counts = message_counts(ready, unacknowledged)
    return with_rates(counts, counts, trend, LENGTHS)
