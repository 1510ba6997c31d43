"""From JSON to definitions; what is wrong becomes one line each, with the place in the file and what is allowed."""

import json
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from gateway.definitions.model import PARAMETER_KINDS, Definitions
from gateway.kernel.errors import ConfigurationError

_SHOWN_AT_MOST: Final = 60
_OUR_OWN: Final = "Value error, "
"""How pydantic begins what a validator of ours said."""


def read_definitions(file: Path) -> Definitions:
    """Read a definitions file.

    :raises ConfigurationError: when it cannot be read, or with one line for each thing that is wrong in it.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"{file}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{file}: not UTF-8: {error}") from None
    return parse_definitions(text, str(file))


def parse_definitions(text: str, source: str) -> Definitions:
    """Read definitions; ``source`` says in errors where they came from. Raises as ``read_definitions`` does."""
    try:
        document = json.loads(text or "{}")
    except (json.JSONDecodeError, RecursionError) as error:
        raise ConfigurationError(f"{source}: not JSON: {error}") from None
    try:
        return Definitions.model_validate(document)
    except ValidationError as errors:
        lines = [f"{source}: {_line(error['loc'], error['msg'], error['input'])}" for error in errors.errors()]
        raise ConfigurationError("\n".join(lines)) from None


def _line(loc: tuple[int | str, ...], message: str, value: Any) -> str:
    """Say where, what is allowed, and what is there."""
    place = ""
    for part in (part for part in loc if part not in PARAMETER_KINDS):
        place += f"[{part}]" if isinstance(part, int) else f".{part}" if place else part
    if message == "Field required":
        return f"{place}: is missing"
    if message.startswith(_OUR_OWN):
        return f"{place}: {message.removeprefix(_OUR_OWN)}"
    allowed = message.replace("Input should", "must")
    return f"{place or 'the document'}: {allowed}, not {_shown(place, value)}"


def _shown(place: str, value: Any) -> str:
    """Show a wrong value, shortened; never a password."""
    if "password" in place:
        return "what is there"
    shown = json.dumps(value)
    return shown if len(shown) <= _SHOWN_AT_MOST else f"{shown[: _SHOWN_AT_MOST - 3]}..."
