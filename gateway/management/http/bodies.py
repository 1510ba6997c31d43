"""What is sent to the API: JSON objects, read field by field, with RabbitMQ's words for what is wrong."""

import json
import re
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Mapping
from math import isfinite
from typing import Any, Final

from gateway.management.http.errors import bad_request
from gateway.management.http.routes import Fields

#: Objects and lists inside each other.
MAX_LEVELS: Final = 64
_CONTAINERS: Final = frozenset({dict, list})
_TOO_DEEP: Final = f"not_json: more than {MAX_LEVELS} objects and lists inside each other"

#: Values in a body that is longer than most requests may be. Shorter ones cannot hold many more.
MAX_VALUES: Final = 100_000
_SHORT: Final = 256 * 1024

#: A string. One without an end takes in all that follows, so no character is visited twice.
_STRING: Final = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)

_DIGITS: Final = re.compile(r"-?[0-9]{1,19}")
_MAX_DIGITS: Final = 20  # digits of 2**64, and a sign


def parse_object(content: bytes) -> Fields:
    """Read a body; an empty one is an empty object. :raises HttpError: when it is not a JSON object of UTF-8 text."""
    if not content.strip():
        return {}
    try:
        text = content.decode()
        _require_few_values(text)
        fields = json.loads(text, parse_constant=_no_number, parse_int=_integer, parse_float=_number)
    except RecursionError:
        raise bad_request(_TOO_DEEP) from None
    except ValueError:
        raise bad_request("not_json") from None
    if not isinstance(fields, dict):
        raise bad_request("not_json")
    _require_shallow(fields)
    if "\\u" in text:
        require_text(fields)
    return fields


def require_text(value: object) -> None:
    """Insist that all text in a value can be written as UTF-8. :raises HttpError: where half a character stands."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise bad_request("not_utf8: an escape such as \\ud800 is half a character") from None


def _require_few_values(text: str) -> None:
    """Limit the values of a long body before any of them takes memory; most of it may be one long string."""
    if len(text) <= _SHORT:
        return
    has_many = text.count('"') - text.count('\\"') > 4 * MAX_VALUES
    if has_many or (_separators(text) > MAX_VALUES and _separators(_STRING.sub("", text)) > MAX_VALUES):
        raise bad_request(f"not_json: more than {MAX_VALUES} values")


def _separators(text: str) -> int:
    return text.count(",") + text.count("[") + text.count("{")


def _require_shallow(value: object) -> None:
    """Limit the nesting of a value. Goes level by level: one pass over 80,000 objects takes about 5 ms."""
    level: list[Any] = [value]
    for _ in range(MAX_LEVELS):
        inside = [each.values() if isinstance(each, dict) else each for each in level]
        level = [item for items in inside for item in items if type(item) in _CONTAINERS]
        if not level:
            return
    raise bad_request(_TOO_DEEP)


def _integer(digits: str) -> int:
    if len(digits) > _MAX_DIGITS or abs(int(digits)) >= 2**64:
        raise bad_request("not_json: a number of more than 64 bits")
    return int(digits)


def _number(digits: str) -> float:
    number = float(digits)
    if not isfinite(number):
        raise bad_request("not_json: a number of more than 64 bits")
    return number


def _no_number(name: str) -> float:
    raise bad_request(f"not_json: {name} is no number")


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
    if isinstance(value, bool):
        return value
    if value not in ("true", "false"):
        raise bad_request(["not_boolean", value])
    return bool(value == "true")


def integer(value: object, name: str) -> int:
    """Read a whole number, also from a string of digits."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and _DIGITS.fullmatch(value):
        return int(value)
    raise bad_request(["not_int", name])


def digits(value: str) -> int | None:
    """Return the number that a part of a path or query stands for, ``None`` when it is none."""
    return int(value) if _DIGITS.fullmatch(value) else None


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
