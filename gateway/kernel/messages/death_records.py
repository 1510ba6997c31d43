"""Death records of dead letters: the ``x-death`` header and its companions (R107-R111)."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from enum import Enum
from typing import Final

from gateway.kernel.messages.long import Long
from gateway.kernel.messages.message import Header, Message, Value


class DeathReason(Enum):
    """The reason for which a message was removed or refused without being consumed, by its wire name (R100).

    ``wire_name`` is the value. Unlike ``value``, which Python computes, it is read as fast as any attribute.
    """

    wire_name: str

    REJECTED = "rejected"
    EXPIRED = "expired"
    MAXLEN = "maxlen"
    DELIVERY_LIMIT = "delivery_limit"


for _reason in DeathReason:
    _reason.wire_name = _reason.value

#: Looked up once, for each message: access to an enumeration's member is slow where the source is interpreted.
REJECTED: Final = DeathReason.REJECTED
MAXLEN: Final = DeathReason.MAXLEN


#: The largest count; a greater one restarts at 0, because one more would not fit into 64 bits.
_MOST: Final = 2**63 - 1

_REJECTED_NAME: Final = REJECTED.wire_name
_COMPANIONS: Final = ("reason", "queue", "exchange")


def deaths_of(headers: Mapping[str, Value]) -> list[Value]:
    """Return the entries of ``x-death``. A client may have written them, so some may be invalid."""
    entries = headers.get("x-death")
    return entries if isinstance(entries, list) else []


def shows_no_death(header: Header) -> bool:
    """Return whether a header surely has no death, no further routing keys and no expiration.

    Then ``headers_after_death`` depends on the address of its message alone. Every format keeps the names of headers as
    they are, so one that does not occur in the bytes is not there.
    """
    raw = header.raw
    has_keys = header.sender_keys or b"CC" in raw  # a plugin may have added them, or turned them off
    return header.expiration_ms is None and not has_keys and b"x-death" not in raw


def headers_after_death(message: Message, queue_name: str, reason: DeathReason, at_s: int) -> dict[str, Value]:
    """Return the headers that change when a message dies in a queue; ``at_s`` is Unix time."""
    headers = message.headers
    death = {"reason": reason.wire_name, "queue": queue_name, "exchange": message.exchange}
    earlier = deaths_of(headers)
    entry, others = _entry_for(death, earlier)
    if not entry:
        entry = {
            "count": Long(0),
            "reason": reason.wire_name,
            "queue": queue_name,
            "time": datetime.fromtimestamp(at_s, UTC),
            "exchange": message.exchange,
            "routing-keys": [message.routing_key, *carbon_copies(headers)],
        }
        if message.properties.expiration is not None:
            entry["original-expiration"] = message.properties.expiration
    deaths: list[Value] = [{**entry, "count": Long(_count(entry) + 1)}, *map(_with_long_count, others)]
    changed: dict[str, Value] = {"x-death": deaths}
    for name in _COMPANIONS:
        if not earlier:
            changed[f"x-first-death-{name}"] = death[name]
        changed[f"x-last-death-{name}"] = death[name]
    return changed


def is_cycle(deaths: Iterable[Value], queue_name: str) -> bool:
    """Return whether a message returns to a queue it died in, without a rejection by a consumer since (R111).

    An entry that is no table was written by a client, so there is no automatic cycle.
    """
    for death in deaths:
        if not isinstance(death, dict):
            return False
        if death.get("reason") == _REJECTED_NAME:
            return False
        if death.get("queue") == queue_name:
            return True
    return False


def last_reason(headers: Mapping[str, Value]) -> DeathReason:
    """Return the reason of a dead letter's last death."""
    return next((reason for reason in DeathReason if reason.wire_name == headers.get("x-last-death-reason")), REJECTED)


def carbon_copies(headers: Mapping[str, Value]) -> list[Value]:
    """Return the further routing keys that consumers see (R29)."""
    keys = headers.get("CC")
    return [key for key in keys if isinstance(key, str)] if isinstance(keys, list) else []


def _entry_for(death: Mapping[str, str], earlier: list[Value]) -> tuple[dict[str, Value], list[Value]]:
    """Return the entry of this queue and reason, empty if there is none, and the other entries.

    If a client sent several entries of one queue and reason, only the first is kept; if it has no count, their number
    is its count, as in RabbitMQ.
    """
    number_by_cause: dict[tuple[str, str], int] = {}
    for entry in earlier:
        if isinstance(entry, dict):
            cause = _cause_of(entry)
            number_by_cause[cause] = number_by_cause.get(cause, 0) + 1
    found: dict[str, Value] = {}
    others: list[Value] = []
    for entry in earlier:
        if isinstance(entry, dict):
            number = number_by_cause.pop(_cause_of(entry), 0)
            if not number:
                continue
            if "count" not in entry and number > 1:
                entry = {**entry, "count": Long(number)}
            if entry.get("queue") == death["queue"] and entry.get("reason") == death["reason"]:
                found = entry
                continue
        others.append(entry)
    return found, others


def _with_long_count(entry: Value) -> Value:
    """Return an entry whose count is encoded in 64 bits; the kernel's values have no width."""
    if not isinstance(entry, dict) or type(count := entry.get("count")) is not int:
        return entry
    return {**entry, "count": Long(count)}


def _cause_of(entry: Mapping[str, Value]) -> tuple[str, str]:
    """Return queue and reason as text, since a client may have sent any type."""
    return repr(entry.get("queue")), repr(entry.get("reason"))


def _count(entry: Mapping[str, Value]) -> int:
    count = entry.get("count", 0)
    return count if isinstance(count, int) and not isinstance(count, bool) and 0 <= count < _MOST else 0
