"""Log handlers that drop and count lines that cannot be written.

A full disk or a blocked pipe must neither stop the broker nor flood another output with errors.
"""

import logging
import time
from collections.abc import Mapping
from logging.handlers import WatchedFileHandler
from typing import Any

from gateway.logs.formats import LineFormat
from gateway.logs.rate_limit import RateFilter
from gateway.logs.recent import RECENT


class DroppingHandler(logging.StreamHandler[Any]):
    """A handler that counts the lines it cannot write and reports the number once writing succeeds again."""

    dropped = 0

    def may_put(self, level: int) -> bool:
        """Return whether ``put`` may be called for this level: the format and the filter are those of the broker."""
        if level < self.level or not isinstance(self.formatter, LineFormat):
            return False
        filters = self.filters
        return not filters or (len(filters) == 1 and isinstance(filters[0], RateFilter))

    def put(self, logger: str, level: int, event: str, fields: Mapping[str, object]) -> None:
        """Write an entry of the broker without a record, as ``handle`` does with one. ``only_handler`` permits it."""
        created_s = time.time()
        if self.filters:
            rate: Any = self.filters[0]
            left_out = rate.passes(logger, level, event, fields, created_s)
            if left_out is None:
                return
            if left_out:
                fields = {**fields, "left_out": left_out}
        lock: Any = self.lock
        format: Any = self.formatter
        with lock:
            try:
                line = format.line(created_s, logger, level, event, fields)
            except Exception:  # the text of a value fails
                self.dropped += 1
            else:
                self._report_and_write(line)

    def emit(self, record: logging.LogRecord) -> None:
        """Write the line of a record; called by the standard library, which holds the lock."""
        try:
            line = self.format(record)
        except Exception:  # a record whose arguments do not fit its text
            self.handleError(record)
        else:
            self._report_and_write(line)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the standard library's name
        """Count a line that could not be written; called by the standard library."""
        self.dropped += 1

    def _report_and_write(self, line: str) -> None:
        """Write a line, preceded by a report of the lines that were dropped."""
        missing, self.dropped = self.dropped, 0
        if missing:
            self._write(self.format(_lost(missing)))
            if self.dropped:  # still not writable
                self.dropped += missing
                return
        self._write(line)

    def _write(self, line: str) -> None:
        """Write a line, and keep it in memory too."""
        RECENT.add(line)
        try:
            self._prepare()
            stream = self.stream
            stream.write(line + self.terminator)
            stream.flush()
        except Exception:  # no space is left, or the file was moved and cannot be opened again
            self.dropped += 1

    def _prepare(self) -> None:
        """Prepare the stream for a line."""


class DroppingFile(DroppingHandler, WatchedFileHandler):
    """The same for a file, which is reopened after it was moved, as logrotate does."""

    def _prepare(self) -> None:
        self.reopenIfNeeded()
        if self.stream is None:
            self.stream = self._open()


def only_handler(logger: logging.Logger, level: int) -> DroppingHandler | None:
    """Return the handler of the broker's log if a record of this logger and level would reach it and no other.

    ``None`` also if a filter has to see the record, or another format is set.
    """
    if logger.filters:
        return None
    above = logger.parent
    while above is not None:
        if logger.handlers or not logger.propagate:
            return None
        logger, above = above, above.parent
    handlers = logger.handlers
    handler = handlers[0] if len(handlers) == 1 else None
    return handler if isinstance(handler, DroppingHandler) and handler.may_put(level) else None


def _lost(count: int) -> logging.LogRecord:
    event = f"{count} log lines could not be written and were dropped"
    return logging.LogRecord("gateway.log", logging.ERROR, "", 0, event, None, None)
