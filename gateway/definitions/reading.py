"""From JSON to definitions; what is wrong becomes one line each, with the place in the file and what is allowed."""

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
"""Entries that are checked in one step."""
_SHOWN_AT_MOST: Final = 60
_OUR_OWN: Final = "Value error, "
"""How pydantic's message begins when a validator of ours refused a value."""
_IN_JSON: Final = {
    "Input should be a valid dictionary": "Input should be an object",
    "Input should be a valid list": "Input should be an array",
    "String should have at least 1 character": "Input should be at least 1 character long",
}
"""pydantic's words for Python's types, and ours for JSON's."""


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
        document = _finished(scan(text or "{}"))
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"{source}: not JSON: {error}") from None
    return _finished(check(document, source))


def check(document: object, source: str) -> Generator[None, None, Definitions]:
    """Check decoded JSON, some entries each time this is asked on; return the definitions that it holds.

    What has been checked is taken out of the document: to free all of a large one at the end would take long.

    :raises ConfigurationError: with one line for each thing that is wrong.
    """
    wrong: list[str] = []
    found: dict[str, Any] = {}
    for first, part in _parts(document):
        try:
            checked = Definitions.model_validate(part)
        except ValidationError as errors:
            wrong += [f"{source}: {_line(_moved(e['loc'], first), e['msg'], e['input'])}" for e in errors.errors()]
        else:
            _add(found, checked)
        _take_out(document, part, first)
        yield
    if wrong:
        raise ConfigurationError("\n".join(wrong))
    return Definitions.model_construct(**found)


def _parts(document: object) -> Iterator[tuple[int, object]]:
    """Cut a document into small ones; yield each with the number of its first entry in the whole."""
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
    """Let go of the entries of a part."""
    if isinstance(document, dict) and isinstance(part, dict):
        for category, entries in part.items():
            there = document.get(category)
            if isinstance(there, list) and isinstance(entries, list):
                there[first : first + len(entries)] = [None] * len(entries)


def _moved(loc: tuple[int | str, ...], first: int) -> tuple[int | str, ...]:
    """Return the place in the whole document of what stands at ``loc`` in a part of it."""
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


def _finished(steps: Generator[None, None, R]) -> R:
    """Take all steps at once; return what comes of them."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: R = end.value
            return result


def _line(loc: tuple[int | str, ...], message: str, value: Any) -> str:
    """Say where, what is allowed, and what is there."""
    place = ""
    for part in (part for part in loc if part not in PARAMETER_KINDS):
        place += f"[{part}]" if isinstance(part, int) else f".{part}" if place else part
    if message == "Field required":
        return f"{place}: is missing"
    if message.startswith(_OUR_OWN):
        return f"{place}: {message.removeprefix(_OUR_OWN)}"
    allowed = _IN_JSON.get(message.partition(" or instance of ")[0], message).replace("Input should", "must")
    return f"{place or 'the document'}: {allowed}, not {_shown(place, value)}"


def _shown(place: str, value: Any) -> str:
    """Show a wrong value, shortened; never a password."""
    if "password" in place:
        return "what is there"
    shown = json.dumps(value)
    return shown if len(shown) <= _SHOWN_AT_MOST else f"{shown[: _SHOWN_AT_MOST - 3]}..."
