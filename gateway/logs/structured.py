"""Structured logging: an event as text and its fields, formatted for people or for programs.

``StructuredLog("amqp").info("connection opened", peer="127.0.0.1:3456")`` becomes one line, whatever the values
are: control characters are escaped, so that no client can forge a line, and long values are cut. It is built on the
standard library's ``logging``, which other libraries use too. While the broker's handler is the only one, an entry
goes to it directly: the way of a record through the standard library costs as much as the line.
"""

import logging
from collections.abc import Mapping
from typing import Final

from gateway.logs.entry import Entry
from gateway.logs.formats import ROOT
from gateway.logs.handlers import DroppingHandler, only_handler

_DEBUG: Final = logging.DEBUG
_INFO: Final = logging.INFO
_WARNING: Final = logging.WARNING
_ERROR: Final = logging.ERROR


class StructuredLog:
    """Writes the log entries of one component; ``bind`` returns one that adds the same fields to every entry."""

    __slots__ = ("_fields", "_logger", "_name")

    def __init__(self, part: str, fields: Mapping[str, object] | None = None) -> None:
        self._logger = logging.getLogger(f"{ROOT}.{part}")
        self._name = self._logger.name
        self._fields = dict(fields or {})

    def bind(self, **fields: object) -> "StructuredLog":
        """Return a log that adds these fields after the fields already bound."""
        return StructuredLog(self._name.removeprefix(f"{ROOT}."), {**self._fields, **fields})

    @property
    def is_debugging(self) -> bool:
        """Whether details for debugging are written."""
        return self._logger.isEnabledFor(_DEBUG)

    def debug(self, event: str, **fields: object) -> None:
        """Log details for debugging."""
        if self._logger.isEnabledFor(_DEBUG):
            self._write(_DEBUG, event, fields)

    def info(self, event: str, **fields: object) -> None:
        """Log normal operation."""
        if self._logger.isEnabledFor(_INFO):
            self._write(_INFO, event, fields)

    def warning(self, event: str, **fields: object) -> None:
        """Log a condition that an operator should check."""
        if self._logger.isEnabledFor(_WARNING):
            self._write(_WARNING, event, fields)

    def error(self, event: str, *, exc_info: bool = False, **fields: object) -> None:
        """Log a failure of the broker, with the current exception if ``exc_info``."""
        if self._logger.isEnabledFor(_ERROR):
            self._write(_ERROR, event, fields, exc_info)

    def _write(self, level: int, event: str, fields: dict[str, object], exc_info: bool = False) -> None:
        if self._fields:
            fields = {**self._fields, **fields}
        handler: DroppingHandler | None = None if exc_info else only_handler(self._logger, level)
        if handler is not None:
            handler.put(self._name, level, event, fields)
        else:
            self._logger.handle(Entry(self._name, level, event, fields, exc_info))
