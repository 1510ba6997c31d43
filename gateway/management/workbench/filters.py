"""Filters and places of searches in requests."""

from collections.abc import Collection, Mapping
from dataclasses import fields
from typing import Any, Final

from gateway.kernel.messages.message import Properties
from gateway.kernel.workbench.filters import DELAYED, READY, STATES, UNACKNOWLEDGED, Matches, MessageFilter
from gateway.kernel.workbench.found import Found, Place
from gateway.management.http.bodies import integer
from gateway.management.http.errors import bad_request
from gateway.patterns import compile_search, containing

_FIELDS: Final = frozenset({"states", "key", "exchange", "headers", "properties", "body"})
_PROPERTIES: Final = tuple(field.name for field in fields(Properties) if field.name != "headers")

#: Conditions of one kind in a filter.
_MOST_CONDITIONS: Final = 20

#: Ids in a request.
_MOST_IDS: Final = 1000

#: The longest text of a condition, in characters.
_LONGEST_TEXT: Final = 4096


def filter_of(value: object, allowed: Collection[str] = STATES, default: Collection[str] = (READY,)) -> MessageFilter:
    """Return the filter of a request; a missing one takes all messages in the default states.

    :raises HttpError: if it is invalid, with the name of the field.
    :raises PreconditionFailed: if a pattern is.
    """
    given = {} if value is None else value
    if not isinstance(given, dict):
        raise bad_request("filter: must be an object")
    require_known("filter", given, _FIELDS)
    exchange = given.get("exchange")
    if exchange is not None and not isinstance(exchange, str):
        raise bad_request("filter.exchange: must be a string")
    return MessageFilter(
        _states(given.get("states"), allowed, default),
        _matches("filter.key", given.get("key")),
        exchange,
        _conditions("filter.headers", given.get("headers")),
        _conditions("filter.properties", given.get("properties"), _PROPERTIES),
        _matches("filter.body", given.get("body")),
    )


def require_known(name: str, given: Mapping[str, Any], known: Collection[str]) -> None:
    """Refuse fields that would have no effect. :raises HttpError: naming the first one."""
    for field in given:
        if field not in known:
            raise bad_request(f"{name}.{field[:100]}: unknown; known are {', '.join(sorted(known))}")


def ids_of(value: object) -> list[int] | None:
    """Return the ids in a request, ``None`` for none. :raises HttpError: if they are not a list of numbers."""
    if value is None:
        return None
    if not isinstance(value, list) or not value:
        raise bad_request("ids: must be a list of ids of messages")
    if len(value) > _MOST_IDS:
        raise bad_request(f"ids: {len(value)} ids are more than {_MOST_IDS}; use a filter")
    numbers = [integer(each, "ids") for each in value]
    if not all(0 < number < 1 << 64 for number in numbers):
        raise bad_request("ids: must be positive numbers")
    return numbers


def place_of(value: object) -> Place:
    """Return where a search continues. :raises HttpError: if the cursor is not one that a search returned."""
    if value is None:
        return Place(STATES[0], 0, -1)
    try:
        state, row, key = str(value).split(":")
        place = Place(state, int(row), int(key, 16))
    except ValueError:
        raise bad_request("cursor: is not the cursor of a search") from None
    if state not in STATES or place.row < 0 or place.key < -1:
        raise bad_request("cursor: is not the cursor of a search")
    return place


def cursor_of(found: Found) -> str:
    """Return the cursor that continues after a message."""
    return f"{found.state}:{found.row}:{found.key:x}"


def _states(value: object, allowed: Collection[str], default: Collection[str]) -> tuple[str, ...]:
    if value is None:
        return tuple(default)
    if not isinstance(value, list) or not value or not all(isinstance(each, str) for each in value):
        raise bad_request("filter.states: must be a list of states")
    for state in value:
        if state not in allowed:
            belongs = ": an unacknowledged message belongs to its consumer" if state == UNACKNOWLEDGED else ""
            reason = f"'{state[:40]}' is not allowed here{belongs}; allowed are {', '.join(allowed)}"
            raise bad_request(f"filter.states: {reason}")
    return tuple(value)


def _conditions(
    name: str, value: object, known: Collection[str] | None = None
) -> tuple[tuple[str, Matches | None], ...]:
    if value is None:
        return ()
    if not isinstance(value, dict):
        raise bad_request(f"{name}: must be an object of names with conditions")
    if len(value) > _MOST_CONDITIONS:
        raise bad_request(f"{name}: at most {_MOST_CONDITIONS} are allowed")
    if known is not None:
        require_known(name, value, known)
    return tuple((each, _matches(f"{name}.{each[:100]}", condition)) for each, condition in value.items())


def _matches(name: str, value: object) -> Matches | None:
    """Return a condition: a text, ``{"contains": text}`` or ``{"pattern": pattern}``; ``None`` for none."""
    if value is None:
        return None
    if isinstance(value, str):
        value = {"contains": value}
    if not isinstance(value, dict) or len(value) != 1 or not isinstance(next(iter(value.values())), str):
        raise bad_request(f'{name}: must be a text, {{"contains": text}} or {{"pattern": pattern}}')
    ((kind, text),) = value.items()
    if len(text) > _LONGEST_TEXT:
        raise bad_request(f"{name}: {len(text)} characters are more than {_LONGEST_TEXT}")
    if kind == "contains":
        return containing(text)
    if kind == "pattern":
        return compile_search(text)
    raise bad_request(f"{name}.{kind[:40]}: unknown; known are contains, pattern")


#: States of messages that an action can remove from their queue.
REMOVABLE: Final = (READY, DELAYED)
