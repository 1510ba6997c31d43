"""One line of the log for people: the time, the level, the event, and the fields.

Each connection writes two of them, so what repeats from line to line is kept: the texts of a second and of a field.
"""

import json
import re
import time
from collections.abc import Mapping
from typing import Final

from gateway.kernel.caches import remember
from gateway.logs.line_bounds import bounded

_SECRET: Final = re.compile(r"pass(word|wd|phrase)?$|secret|token|credential", re.IGNORECASE)
_PLAIN: Final = re.compile(r"[^\s\"'=\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")

#: Names of fields, texts of fields and of events that are kept.
_MOST_KEPT: Final = 1024

#: Longer texts are not kept: few of them repeat.
_LONGEST_KEPT: Final = 100

_SECRECY_BY_NAME: Final[dict[str, bool]] = {}
_FIELD_BY_NAME_AND_TEXT: Final[dict[tuple[str, str], str]] = {}
_EVENTS: Final[dict[str, str]] = {}


class LineClock:
    """The time of lines as text."""

    __slots__ = ("_second",)

    def __init__(self) -> None:
        #: The last second that was formatted, and its text. One tuple, as threads share it.
        self._second: tuple[int, str] = (0, "")

    def text(self, created_s: float) -> str:
        """Return a Unix time as local time, to the millisecond."""
        second, known = int(created_s), self._second
        if known[0] != second:
            self._second = known = second, time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(second))
        return f"{known[1]}.{int(created_s % 1 * 1000):03d}"


def text_line(clock: str, level: str, event: str, fields: Mapping[str, object]) -> str:
    """Return a line: ``2026-01-02 03:04:05.678 info connection in use user=guest vhost=/``."""
    shown = _EVENTS.get(event)
    if shown is None:
        shown = escape(bounded(event))
        if len(event) <= _LONGEST_KEPT:
            remember(_EVENTS, event, shown, _MOST_KEPT)
    line = [clock, level, shown]
    for name, value in fields.items():
        line.append(_field(name, value))
    return " ".join(line)


def escape(text: str) -> str:
    """Make text fit for one line: control characters and line separators become ``\\n``, ``\\x1b`` and the like."""
    return text if text.isprintable() else _CONTROL.sub(lambda match: repr(match[0])[1:-1], text)


def is_secret(name: str) -> bool:
    """Return whether a field of this name is not to be shown."""
    known = _SECRECY_BY_NAME.get(name)
    if known is None:
        known = remember(_SECRECY_BY_NAME, name, _SECRET.search(name) is not None, _MOST_KEPT)
    return known


def _field(name: str, value: object) -> str:
    """Return a field with its value; secrets are replaced by a mask."""
    if type(value) is not str:  # the text of a member of an enumeration of texts is another one
        return f"{name}={'(hidden)' if is_secret(name) else _quoted(str(value))}"
    key = name, value
    field = _FIELD_BY_NAME_AND_TEXT.get(key)
    if field is None:
        if is_secret(name):
            return f"{name}=(hidden)"
        field = f"{name}={_quoted(value)}"
        if len(value) <= _LONGEST_KEPT:
            remember(_FIELD_BY_NAME_AND_TEXT, key, field, _MOST_KEPT)
    return field


def _quoted(text: str) -> str:
    """Return a value: bare where that is unambiguous, otherwise quoted as in JSON."""
    text = bounded(text)
    if _PLAIN.fullmatch(text):
        return text
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return escape(json.dumps(text, ensure_ascii=False))
