"""JSON values of the management API, and safe access to their members."""

import json

from gateway.cli.ctl.errors import Declined

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
JsonObject = dict[str, Json]


def parse_json(text: str) -> Json:
    """Parse a JSON value of the command line. :raises Declined: as in RabbitMQ, if it is not JSON."""
    try:
        value: Json = json.loads(text)
    except ValueError as error:
        raise Declined(f"JSON decoding error in {text!r}: {error}") from None
    except RecursionError:
        raise Declined("JSON decoding error: the value is nested too deeply") from None
    return value


def parse_object(text: str, what: str) -> JsonObject:
    """Parse a JSON object of the command line. :raises Declined: if it is not one."""
    value = parse_json(text)
    if not isinstance(value, dict):
        raise Declined(f"{what} must be a JSON object, not {text}")
    return value


def compact(value: Json) -> str:
    """Write a value on one line, without spaces, as RabbitMQ does."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def objects(value: Json) -> list[JsonObject]:
    """Return the objects of a list, without other items."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def part(value: Json, *path: str) -> Json:
    """Return the value at a path of nested objects, or ``None``."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def text(value: Json, *path: str) -> str:
    """Return the string at a path, or the empty string."""
    found = part(value, *path)
    return found if isinstance(found, str) else ""


def number(value: Json, *path: str) -> int:
    """Return the whole number at a path, or 0."""
    found = part(value, *path)
    return found if isinstance(found, int) else 0
