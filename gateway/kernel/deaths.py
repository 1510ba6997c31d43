"""What a dead letter says of its deaths: the ``x-death`` header and its companions (R107-R111)."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Final, TypeAlias

from gateway.kernel.features.base import Reason
from gateway.kernel.long import Long
from gateway.kernel.message import Message, Value

Deaths: TypeAlias = list[dict[str, Value]]
"""The entries of ``x-death``, newest first: one for each queue and reason."""

_COMPANIONS: Final = ("reason", "queue", "exchange")


def deaths_of(headers: Mapping[str, Value]) -> Deaths:
    """Return the deaths a message has died; what is not an entry, since clients may write anything, is passed over."""
    entries = headers.get("x-death")
    return [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []


def headers_after_death(message: Message, queue_name: str, reason: Reason, at_s: int) -> dict[str, Value]:
    """Return the headers that change when a message dies in a queue at a second of Unix time."""
    headers = message.headers
    death = {"reason": reason.value, "queue": queue_name, "exchange": message.exchange}
    earlier = deaths_of(headers)
    entry, others = _entry_for(death, earlier)
    if not entry:
        entry = {
            "count": Long(0),
            "reason": reason.value,
            "queue": queue_name,
            "time": datetime.fromtimestamp(at_s, UTC),
            "exchange": message.exchange,
            "routing-keys": [message.routing_key, *carbon_copies(headers)],
        }
        if message.properties.expiration is not None:
            entry["original-expiration"] = message.properties.expiration
    deaths: list[Value] = [{**entry, "count": Long(_count(entry) + 1)}, *_with_long_counts(others)]
    changed: dict[str, Value] = {"x-death": deaths}
    for name in _COMPANIONS:
        if not earlier:
            changed[f"x-first-death-{name}"] = death[name]
        changed[f"x-last-death-{name}"] = death[name]
    return changed


def is_cycle(deaths: Iterable[Mapping[str, Value]], queue_name: str) -> bool:
    """Tell whether a message comes back to a queue it died in, and no consumer rejected it since (R111)."""
    for death in deaths:
        if death.get("reason") == Reason.REJECTED.value:
            return False
        if death.get("queue") == queue_name:
            return True
    return False


def last_reason(headers: Mapping[str, Value]) -> Reason:
    """Return why a dead letter died last."""
    return next((reason for reason in Reason if reason.value == headers.get("x-last-death-reason")), Reason.REJECTED)


def carbon_copies(headers: Mapping[str, Value]) -> list[Value]:
    """Return the further routing keys that consumers may see (R29)."""
    keys = headers.get("CC")
    return [key for key in keys if isinstance(key, str)] if isinstance(keys, list) else []


def _entry_for(death: Mapping[str, str], earlier: Deaths) -> tuple[dict[str, Value], Deaths]:
    """Return the entry of this queue and reason, empty if there is none, and the others."""
    for entry in earlier:
        if entry.get("queue") == death["queue"] and entry.get("reason") == death["reason"]:
            return entry, [other for other in earlier if other is not entry]
    return {}, earlier


def _with_long_counts(deaths: Deaths) -> Deaths:
    """Return entries whose counts keep their width: protocols tell it, the kernel's values do not."""
    return [{**entry, "count": Long(_count(entry))} if "count" in entry else entry for entry in deaths]


def _count(entry: Mapping[str, Value]) -> int:
    count = entry.get("count", 0)
    return count if isinstance(count, int) else 0
