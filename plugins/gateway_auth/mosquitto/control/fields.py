"""The fields of a command, checked as they are read."""

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from gateway_auth.mosquitto.control.errors import CommandError

#: The longest string of MQTT, in bytes.
_LONGEST: Final = 65535

Fields: TypeAlias = Mapping[str, Any]
"""One command, or one element of a list in it."""


def name_in(fields: Fields, key: str) -> str:
    """Return a required name. :raises CommandError: if it is missing or invalid."""
    name = fields.get(key)
    if not isinstance(name, str) or not name:
        raise CommandError(f"Invalid/missing {key}")
    return _valid(key, name)


def text_in(fields: Fields, key: str) -> str | None:
    """Return a text; ``None`` if it is not given. :raises CommandError: if it is invalid."""
    text = fields.get(key)
    if text is None:
        return None
    if not isinstance(text, str):
        raise CommandError(f"Invalid/missing {key}")
    return _valid(key, text)


def list_in(fields: Fields, key: str) -> list[Fields] | None:
    """Return a list of objects; ``None`` if it is not given. :raises CommandError: if it is invalid."""
    found = fields.get(key)
    if found is None:
        return None
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise CommandError(f"Invalid/missing {key}")
    return found


def number_in(fields: Fields, key: str, default: int) -> int:
    """Return a whole number, or the default if it is not given or is no number, as Mosquitto does."""
    number = fields.get(key)
    return number if isinstance(number, int) and not isinstance(number, bool) else default


def priority_in(fields: Fields) -> dict[str, int]:
    """Return the entry ``priority``; empty if it is not given."""
    priority = number_in(fields, "priority", -1)
    return {} if priority == -1 else {"priority": priority}


def _valid(key: str, text: str) -> str:
    encoded = text.encode(errors="surrogatepass")
    if len(encoded) > _LONGEST or "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise CommandError(f"{key.capitalize()} not valid UTF-8")
    return text
