"""Structured logging: an event as text and its fields, formatted for people or for programs.

``StructuredLog("amqp").info("connection opened", peer="127.0.0.1:3456")`` becomes one line, whatever the values
are: control characters are escaped, so that no client can forge a line, and long values are cut. It is built on the
standard library's ``logging``, which other libraries use too; their records get the same format, without fields.
"""

import json
import logging
import re
import time
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from gateway.logs.entry import Entry
from gateway.logs.fields import fields_of
from gateway.logs.line_bounds import MOST_TRACEBACK_LINES, bounded

ROOT: Final = "gateway"

_SECRET: Final = re.compile(r"pass(word|wd|phrase)?$|secret|token|credential", re.IGNORECASE)
_PLAIN: Final = re.compile(r"[^\s\"'=\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


class StructuredLog:
    """Writes the log entries of one component; ``bind`` returns one that adds the same fields to every entry."""

    __slots__ = ("_fields", "_logger")

    def __init__(self, part: str, fields: Mapping[str, object] | None = None) -> None:
        self._logger = logging.getLogger(f"{ROOT}.{part}")
        self._fields = dict(fields or {})

    def bind(self, **fields: object) -> "StructuredLog":
        """Return a log that adds these fields after the fields already bound."""
        part = self._logger.name.removeprefix(f"{ROOT}.")
        return StructuredLog(part, {**self._fields, **fields})

    def debug(self, event: str, **fields: object) -> None:
        """Log details for debugging."""
        self._write(logging.DEBUG, event, fields)

    def info(self, event: str, **fields: object) -> None:
        """Log normal operation."""
        self._write(logging.INFO, event, fields)

    def warning(self, event: str, **fields: object) -> None:
        """Log a condition that an operator should check."""
        self._write(logging.WARNING, event, fields)

    def error(self, event: str, *, exc_info: bool = False, **fields: object) -> None:
        """Log a failure of the broker, with the current exception if ``exc_info``."""
        self._write(logging.ERROR, event, fields, exc_info)

    def _write(self, level: int, event: str, fields: Mapping[str, object], exc_info: bool = False) -> None:
        if self._logger.isEnabledFor(level):
            self._logger.handle(Entry(self._logger.name, level, event, {**self._fields, **fields}, exc_info))


class TextFormat(logging.Formatter):
    """``2026-01-02 03:04:05.678 info connection authenticated peer=127.0.0.1:3456 user=guest vhost=/``."""

    #: The last second that was formatted, as text: connections write three lines each. One tuple, as threads share it.
    _second: tuple[int, str] = (0, "")

    def format(self, record: logging.LogRecord) -> str:
        """Format a record as one line, followed by the indented lines of its traceback, if any."""
        clock = self._clock(int(record.created))
        head = f"{clock}.{int(record.msecs):03d} {record.levelname.lower()} {escape(bounded(record.getMessage()))}"
        fields = [f"{name}={_text(name, value)}" for name, value in fields_of(record).items()]
        line = " ".join([head, *fields])
        return "\n".join([line, *_traceback(self, record)]) if record.exc_info else line

    def _clock(self, second: int) -> str:
        formatted, text = self._second
        if formatted != second:
            text = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(second))
            self._second = second, text
        return text


class JsonFormat(logging.Formatter):
    """One JSON object per line: ``time`` (UTC, ISO 8601), ``level``, ``part``, ``event``, and the fields."""

    def format(self, record: logging.LogRecord) -> str:
        """Format a record as one line."""
        clock = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        entry: dict[str, object] = {
            "time": f"{clock}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "part": record.name.removeprefix(f"{ROOT}."),
            "event": bounded(record.getMessage()),
        }
        for name, value in fields_of(record).items():
            entry.setdefault(name, "(hidden)" if _is_secret(name) else _json_value(value))
        if record.exc_info:
            entry["exception"] = "\n".join(_traceback_lines(self, record))
        return json.dumps(entry, default=str)


def escape(text: str) -> str:
    """Make text fit for one line: control characters and line separators become ``\\n``, ``\\x1b`` and the like."""
    return text if text.isprintable() else _CONTROL.sub(lambda match: repr(match[0])[1:-1], text)


@lru_cache(1024)
def _is_secret(name: str) -> bool:
    """Return whether a field of this name is not to be shown."""
    return _SECRET.search(name) is not None


def _text(name: str, value: object) -> str:
    """Format a value: bare where that is unambiguous, otherwise quoted as in JSON. Secrets are replaced by a mask."""
    if _is_secret(name):
        return "(hidden)"
    text = bounded(str(value))
    if _PLAIN.fullmatch(text):
        return text
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return escape(json.dumps(text, ensure_ascii=False))


def _json_value(value: object) -> object:
    """Return a value for JSON: numbers as they are, everything else as text of bounded length."""
    return value if value is None or isinstance(value, bool | int | float) else bounded(str(value))


def _traceback_lines(format: logging.Formatter, record: logging.LogRecord) -> list[str]:
    """Return the lines of a traceback; the middle of a long one is omitted."""
    assert record.exc_info
    lines = format.formatException(record.exc_info).split("\n")
    if len(lines) > MOST_TRACEBACK_LINES:
        half = MOST_TRACEBACK_LINES // 2
        lines = [*lines[:half], f"... ({len(lines) - 2 * half} more lines)", *lines[-half:]]
    return [bounded(line) for line in lines]


def _traceback(format: logging.Formatter, record: logging.LogRecord) -> list[str]:
    """Return the lines of a traceback, indented so that none can be mistaken for an entry."""
    if not record.exc_info:
        return []
    return [f"    {escape(line)}" for line in _traceback_lines(format, record)]


def log_line(record: logging.LogRecord) -> str:
    """Return a log record as a line of text."""
    return TextFormat().format(record)
