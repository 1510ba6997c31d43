"""The formats of a line: text for people, JSON for programs. Records of other libraries get them too."""

import json
import logging
import time
from collections.abc import Mapping
from typing import Final

from gateway.logs.fields import fields_of
from gateway.logs.line_bounds import MOST_TRACEBACK_LINES, bounded
from gateway.logs.text_line import LineClock, escape, is_secret, text_line

#: The logger that all loggers of the broker are below.
ROOT: Final = "gateway"

_LEVELS: Final[dict[int, str]] = {level: logging.getLevelName(level).lower() for level in range(10, 51, 10)}


class LineFormat(logging.Formatter):
    """A format of the broker's log, which needs no record for an entry of the broker."""

    def line(self, created_s: float, logger: str, level: int, event: str, fields: Mapping[str, object]) -> str:
        """Return the line of an entry without an exception; ``created_s`` is its Unix time."""
        raise NotImplementedError


class TextFormat(LineFormat):
    """``2026-01-02 03:04:05.678 info connection authenticated peer=127.0.0.1:3456 user=guest vhost=/``."""

    def __init__(self) -> None:
        super().__init__()
        self._clock = LineClock()

    def line(self, created_s: float, logger: str, level: int, event: str, fields: Mapping[str, object]) -> str:
        """Return the line of an entry."""
        return text_line(self._clock.text(created_s), _LEVELS.get(level) or _name_of(level), event, fields)

    def format(self, record: logging.LogRecord) -> str:
        """Format a record as one line, followed by the indented lines of its traceback, if any."""
        line = self.line(record.created, record.name, record.levelno, record.getMessage(), fields_of(record))
        return "\n".join([line, *_traceback(self, record)]) if record.exc_info else line


class JsonFormat(LineFormat):
    """One JSON object per line: ``time`` (UTC, ISO 8601), ``level``, ``part``, ``event``, and the fields."""

    def line(self, created_s: float, logger: str, level: int, event: str, fields: Mapping[str, object]) -> str:
        """Return the line of an entry."""
        return json.dumps(self._object(created_s, logger, level, event, fields), default=str)

    def format(self, record: logging.LogRecord) -> str:
        """Format a record as one line."""
        shown = self._object(record.created, record.name, record.levelno, record.getMessage(), fields_of(record))
        if record.exc_info:
            shown["exception"] = "\n".join(_traceback_lines(self, record))
        return json.dumps(shown, default=str)

    def _object(
        self, created_s: float, logger: str, level: int, event: str, fields: Mapping[str, object]
    ) -> dict[str, object]:
        clock = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(created_s))
        shown: dict[str, object] = {
            "time": f"{clock}.{int(created_s % 1 * 1000):03d}Z",
            "level": _LEVELS.get(level) or _name_of(level),
            "part": logger.removeprefix(f"{ROOT}."),
            "event": bounded(event),
        }
        for name, value in fields.items():
            shown.setdefault(name, "(hidden)" if is_secret(name) else _json_value(value))
        return shown


def log_line(record: logging.LogRecord) -> str:
    """Return a log record as a line of text."""
    return TextFormat().format(record)


def _name_of(level: int) -> str:
    return logging.getLevelName(level).lower()


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
