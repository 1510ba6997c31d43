"""Parts of long lists."""

from collections.abc import Callable

from gateway_auth.mosquitto.control.document import Entry
from gateway_auth.mosquitto.control.fields import Fields, number_in


def listed(fields: Fields, key: str, entries: dict[str, Entry], view: Callable[[str], Entry]) -> Entry:
    """Return the names that a command asks for, by ``offset`` and ``count``, or with ``verbose`` their views."""
    names = sorted(entries)
    offset, count = max(number_in(fields, "offset", 0), 0), number_in(fields, "count", -1)
    chosen = names[offset : offset + count] if count > 0 else names[offset:]
    shown = [view(name) for name in chosen] if fields.get("verbose") is True else chosen
    return {"totalCount": len(names), key: shown}
