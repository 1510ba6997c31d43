"""What is sent to the API: JSON objects, read field by field, with RabbitMQ's words for what is wrong."""

import json
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Mapping
from typing import Any

from gateway.management.errors import bad_request
from gateway.management.routes import Fields


def parse(content: bytes) -> Fields:
    """Read a body; an empty one is an empty object. :raises HttpError: when it is not a JSON object."""
    if not content.strip():
        return {}
    try:
        fields = json.loads(content)
    except (ValueError, RecursionError):
        raise bad_request("not_json") from None
    if not isinstance(fields, dict):
        raise bad_request("not_json")
    return fields


def require(fields: Mapping[str, Any], *names: str) -> list[Any]:
    """Return the fields of these names. :raises HttpError: naming all that are missing."""
    if absent := [name for name in names if name not in fields]:
        raise bad_request("[" + ",".join(f"{{key_missing,{name}}}" for name in absent) + "]")
    return [fields[name] for name in names]


def boolean(fields: Mapping[str, Any], name: str, default: bool = False) -> bool:
    """Read a flag, which older tools write as a string."""
    value = fields.get(name, default)
    if value in (None, ""):
        return default
    flags = {True: True, False: False, "true": True, "false": False}
    if not isinstance(value, bool | str) or value not in flags:
        raise bad_request(["not_boolean", value])
    return flags[value]


def integer(value: object, name: str) -> int:
    """Read a whole number, also from a string of digits."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lstrip("-").isdigit():
        return int(value)
    raise bad_request(["not_int", name])


def text(fields: Mapping[str, Any], name: str, default: str = "") -> str:
    """Read a string."""
    value = fields.get(name, default)
    if not isinstance(value, str):
        raise bad_request(["not_string", name])
    return value


def arguments(fields: Mapping[str, Any], name: str = "arguments") -> dict[str, Any]:
    """Read a table; an empty list stands for an empty one, as Erlang writes it."""
    value = fields.get(name) or {}
    if not isinstance(value, dict):
        raise bad_request(["not_object", name])
    return value


def tags(value: object) -> list[str]:
    """Read tags: a list, or one string with commas. :raises HttpError: for anything else."""
    if isinstance(value, str):
        return [tag.strip() for tag in value.split(",") if tag.strip()]
    if isinstance(value, list) and all(isinstance(tag, str) for tag in value):
        return value
    raise bad_request(["not_tags", value])


def base64(value: str) -> bytes:
    """Decode base64. :raises HttpError: when it is none."""
    try:
        return b64decode(value, validate=True)
    except (NotBase64, ValueError):
        raise bad_request(["not_base64", value]) from None
