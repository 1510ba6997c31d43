"""Headers and binding arguments of federation, with RabbitMQ's names: the way of a message, and of a binding."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

#: The header with an entry for each upstream that a message came from, the latest first.
RECEIVED_FROM: Final = "x-received-from"

#: The argument with an entry for each broker that a binding came from, the latest first.
BOUND_FROM: Final = "x-bound-from"

Table = Mapping[str, Any]
"""An AMQP table as the client library decodes it."""


def entries_of(table: Table | None, name: str) -> list[Table]:
    """Return the entries of a header or argument; none if it is missing, or not a list of tables."""
    value = (table or {}).get(name)
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def was_at(entries: Sequence[Table], node: str, vhost: str) -> bool:
    """Return whether one of the entries is this virtual host of this node."""
    return any((entry.get("cluster-name"), entry.get("vhost")) == (node, vhost) for entry in entries)


def may_come(headers: Table | None, max_hops: int, node: str, vhost: str) -> bool:
    """Return whether a message may come to a virtual host: it made fewer hops, and was not there before."""
    entries = entries_of(headers, RECEIVED_FROM)
    return len(entries) < max_hops and not was_at(entries, node, vhost)


def arrived(headers: Table | None, entry: Table) -> dict[str, Any]:
    """Return the headers of a message with one more entry, that of the upstream it came from."""
    return {**(headers or {}), RECEIVED_FROM: [entry, *entries_of(headers, RECEIVED_FROM)]}


def queue_headers(headers: Table | None, exchange: str, routing_key: str, entry: Table) -> dict[str, Any]:
    """Return the headers of a message that moves between federated queues.

    They tell how it was published first, and how often it came from the same upstream.
    """
    been = entries_of(headers, RECEIVED_FROM)
    known = ("uri", "virtual_host", "queue")
    same = [each for each in been if all(each.get(key) == entry.get(key) for key in known)]
    others = [each for each in been if each not in same]
    changed = {("x-original-cc" if key == "CC" else key): value for key, value in (headers or {}).items()}
    if not been:
        changed |= {"x-original-exchange": exchange, "x-original-routing-key": routing_key}
    count = same[0].get("visit-count", 0) if same else 0
    visits = count + 1 if isinstance(count, int) else 1
    return {**changed, RECEIVED_FROM: [{**entry, "visit-count": visits}, *others]}


def bound_onward(
    arguments: Table, max_hops: int, here: tuple[str, str, str], upstream: tuple[str, str]
) -> dict[str, Any] | None:
    """Return the arguments of a binding at the upstream for one here; ``None`` if it goes no further.

    A binding travels against the messages, as far as they would come. ``here`` is node, virtual host and exchange,
    ``upstream`` node and virtual host.
    """
    entries = entries_of(arguments, BOUND_FROM)
    hops = max_hops
    if entries:
        left = entries[0].get("hops", 0)
        hops = min(left - 1, max_hops) if isinstance(left, int) else 0
    if hops < 1 or was_at(entries, *upstream):
        return None
    entry = {"cluster-name": here[0], "vhost": here[1], "exchange": here[2], "hops": hops}
    return {**arguments, BOUND_FROM: [entry, *entries]}
