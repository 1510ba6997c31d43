"""One sample of the broker, as a screen shows it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from gateway.cli.ctl.api import ApiClient
from gateway.cli.ctl.errors import CommandFailed
from gateway.cli.ctl.values import Json, JsonObject, number, objects, part, text
from gateway.cli.ctl.verbs.status import alarm_lines

#: Rows of a list that are fetched: more than the longest terminal shows.
_MOST_ROWS: Final = 200

#: Orders of the lists by their names on the screen, with RabbitMQ's fields.
QUEUE_ORDERS: Final[Mapping[str, str]] = {
    "depth": "messages",
    "ready": "messages_ready",
    "unacked": "messages_unacknowledged",
    "in": "message_stats.publish_details.rate",
    "out": "message_stats.deliver_get_details.rate",
    "name": "name",
}
CONNECTION_ORDERS: Final[Mapping[str, str]] = {
    "received": "recv_oct_details.rate",
    "sent": "send_oct_details.rate",
    "channels": "channels",
    "name": "name",
}

#: Rates of the whole broker: the name on the screen, and RabbitMQ's name.
RATES: Final = (
    ("published", "publish"),
    ("confirmed", "confirm"),
    ("delivered", "deliver_get"),
    ("acknowledged", "ack"),
    ("redelivered", "redeliver"),
    ("unroutable", "return_unroutable"),
)


@dataclass(frozen=True, slots=True)
class ShownList:
    """The list in view, and its order."""

    view: str = "queues"
    order: str = "depth"


@dataclass(frozen=True, slots=True)
class BrokerSnapshot:
    """The answers of the API at one moment; ``error`` is the reason why there are none."""

    overview: Json = None
    node: Json = None
    rows: tuple[JsonObject, ...] = ()
    count: int = 0
    alarms: tuple[str, ...] = ()
    error: str = ""
    question: ShownList = field(default_factory=ShownList)

    def rate(self, name: str) -> float:
        """Return a rate of the whole broker, in messages a second."""
        return rate(self.overview, "message_stats", f"{name}_details")


def take_snapshot(api: ApiClient, question: ShownList) -> BrokerSnapshot:
    """Ask the broker. An error becomes part of the snapshot."""
    try:
        overview = api.get("overview")
        node = api.get("nodes", text(overview, "node"))
        found = _rows(api, question)
    except CommandFailed as error:
        return BrokerSnapshot(error=str(error), question=question)
    rows = tuple(objects(part(found, "items")))
    count = number(found, "filtered_count") or len(rows)
    return BrokerSnapshot(overview, node, rows, count, tuple(alarm_lines(node)), question=question)


def _rows(api: ApiClient, question: ShownList) -> Json:
    """Return the first page of the list in view."""
    if question.view == "turns":
        return {}
    orders = QUEUE_ORDERS if question.view == "queues" else CONNECTION_ORDERS
    query = {"page": "1", "page_size": str(_MOST_ROWS), "sort": orders[question.order]}
    if question.order != "name":
        query["sort_reverse"] = "true"
    return api.get(question.view, query=query)


def rate(value: Json, *path: str) -> float:
    """Return the rate at a path of nested objects, 0 if there is none."""
    found = part(value, *path, "rate")
    return float(found) if isinstance(found, int | float) else 0.0
