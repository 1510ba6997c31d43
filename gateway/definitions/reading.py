"""Parse definitions from JSON; each error is one line with its place in the file and the allowed values."""

import json
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import ValidationError

from gateway.definitions.model import PARAMETER_KINDS, Definitions
from gateway.definitions.scanning import scan
from gateway.kernel.errors import ConfigurationError

R = TypeVar("R")

_AT_ONCE: Final = 50
"""Number of entries checked in one step."""
_SHOWN_AT_MOST: Final = 60
_VALIDATOR_PREFIX: Final = "Value error, "
"""Prefix of pydantic's message if one of our validators refused a value."""
_IN_JSON: Final = {
    "Input should be a valid dictionary": "Input should be an object",
    "Input should be a valid list": "Input should be an array",
    "String should have at least 1 character": "Input should be at least 1 character long",
}
"""pydantic's texts with Python's types, and ours with JSON's."""


def read_definitions(file: Path) -> Definitions:
    """Read a definitions file.

    :raises ConfigurationError: if it cannot be read, or with one line for each error in it.
    """
    return checked(read_document(file), str(file))


def read_document(file: Path) -> object:
    """Return the JSON of a definitions file. Raises the errors of ``read_definitions``, but for those of its form."""
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"{file}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{file}: not UTF-8: {error}") from None
    return _decoded(text, str(file))


def parse_definitions(text: str, source: str) -> Definitions:
    """Parse definitions; ``source`` is their origin in errors. Raises the errors of ``read_definitions``."""
    return checked(_decoded(text, source), source)


def checked(document: object, source: str) -> Definitions:
    """Check decoded JSON at once, without steps; see ``check``, also for the errors."""
    return _run(check(document, source))


def _decoded(text: str, source: str) -> object:
    try:
        return _run(scan(text or "{}"))
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"{source}: not JSON: {error}") from None


def check(document: object, source: str) -> Generator[None, None, Definitions]:
    """Check decoded JSON, a batch of entries per step; return its definitions.

    Checked entries are removed from the document, because freeing a large one at the end would block for long.

    :raises ConfigurationError: with one line for each error.
    """
    wrong: list[str] = []
    found: dict[str, Any] = {}
    for first, part in _parts(document):
        try:
            checked = Definitions.model_validate(part)
        except ValidationError as errors:
            wrong += [
                f"{source}: {_line(_in_whole_document(e['loc'], first), e['msg'], e['input'])}" for e in errors.errors()
            ]
        else:
            _add(found, checked)
        _take_out(document, part, first)
        yield
    if wrong:
        raise ConfigurationError("\n".join(wrong))
    return Definitions.model_construct(**found)


def _parts(document: object) -> Iterator[tuple[int, object]]:
    """Split a document into small ones; yield each with the index of its first entry in the whole document."""
    if not isinstance(document, dict):
        yield 0, document
        return
    for category in Definitions.model_fields:
        entries = document.get(category, [])
        if isinstance(entries, list):
            for first in range(0, len(entries), _AT_ONCE):
                yield first, {category: entries[first : first + _AT_ONCE]}
        else:
            yield 0, {category: entries}


def _take_out(document: object, part: object, first: int) -> None:
    """Remove the entries of a part from the document."""
    if isinstance(document, dict) and isinstance(part, dict):
        for category, entries in part.items():
            there = document.get(category)
            if isinstance(there, list) and isinstance(entries, list):
                there[first : first + len(entries)] = [None] * len(entries)


def _in_whole_document(loc: tuple[int | str, ...], first: int) -> tuple[int | str, ...]:
    """Convert the location ``loc`` in a part to that in the whole document."""
    if len(loc) < 2 or not isinstance(loc[1], int):
        return loc
    return (loc[0], loc[1] + first, *loc[2:])


def _add(found: dict[str, Any], part: Definitions) -> None:
    for category in part.model_fields_set:
        value = getattr(part, category)
        if isinstance(value, list):
            found.setdefault(category, []).extend(value)
        else:
            found[category] = value


def _run(steps: Generator[None, None, R]) -> R:
    """Run all steps and return their result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: R = end.value
            return result


def _line(loc: tuple[int | str, ...], message: str, value: Any) -> str:
    """Describe an error: location, allowed values, actual value."""
    place = ""
    for part in (part for part in loc if part not in PARAMETER_KINDS):
        place += f"[{part}]" if isinstance(part, int) else f".{part}" if place else part
    if message == "Field required":
        return f"{place}: is missing"
    if message.startswith(_VALIDATOR_PREFIX):
        return f"{place}: {message.removeprefix(_VALIDATOR_PREFIX)}"
    allowed = _IN_JSON.get(message.partition(" or instance of ")[0], message).replace("Input should", "must")
    return f"{place or 'the document'}: {allowed}, not {_shown(place, value)}"


def _shown(place: str, value: Any) -> str:
    """Format a wrong value, shortened; never a password."""
    if "password" in place:
        return "the given value"
    shown = json.dumps(value)
    return shown if len(shown) <= _SHOWN_AT_MOST else f"{shown[: _SHOWN_AT_MOST - 3]}..."
