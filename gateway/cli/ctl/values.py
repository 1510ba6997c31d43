"""JSON as the management API speaks it, and careful ways to look into it."""

import json

from gateway.cli.ctl.errors import Declined

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
JsonObject = dict[str, Json]


def parse_json(text: str) -> Json:
    """Read a value that was written on the command line. :raises Declined: as RabbitMQ does, when it is not JSON."""
    try:
        value: Json = json.loads(text)
    except ValueError as error:
        raise Declined(f"JSON decoding error in {text!r}: {error}") from None
    return value


def parse_object(text: str, what: str) -> JsonObject:
    """Read a JSON object that was written on the command line. :raises Declined: when it is not one."""
    value = parse_json(text)
    if not isinstance(value, dict):
        raise Declined(f"{what} must be a JSON object, not {text}")
    return value


def compact(value: Json) -> str:
    """Write a value on one line, without spaces, as RabbitMQ does."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def objects(value: Json) -> list[JsonObject]:
    """The objects of a list; what is not one is left out."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def part(value: Json, *path: str) -> Json:
    """What stands at a path within nested objects; ``None`` if nothing does."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def text(value: Json, *path: str) -> str:
    """What stands at a path, if it is a string; else the empty string."""
    found = part(value, *path)
    return found if isinstance(found, str) else ""


def number(value: Json, *path: str) -> int:
    """What stands at a path, if it is a whole number; else 0."""
    found = part(value, *path)
    return found if isinstance(found, int) else 0
