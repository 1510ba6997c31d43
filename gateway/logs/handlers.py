"""Log handlers that drop and count lines that cannot be written.

A full disk or a blocked pipe must neither stop the broker nor flood another output with errors.
"""

import logging
from logging.handlers import WatchedFileHandler
from typing import Any

from gateway.logs.recent import RECENT


class DroppingHandler(logging.StreamHandler[Any]):
    """A handler that counts the lines it cannot write and reports the number once writing succeeds again."""

    dropped = 0

    def format(self, record: logging.LogRecord) -> str:
        """Format a record, and keep the line in memory too."""
        line = super().format(record)
        RECENT.add(line)
        return line

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line, preceded by a report of the lines that were dropped."""
        missing, self.dropped = self.dropped, 0
        if missing:
            self._write(_lost(missing))
            if self.dropped:  # still not writable
                self.dropped += missing
                return
        self._write(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the standard library's name
        """Count a line that could not be written; called by the standard library."""
        self.dropped += 1

    def _write(self, record: logging.LogRecord) -> None:
        try:
            super().emit(record)
        except OSError:  # the file was moved and cannot be opened again
            self.dropped += 1


class DroppingFile(DroppingHandler, WatchedFileHandler):
    """The same for a file, which is reopened after it was moved, as logrotate does."""


def _lost(count: int) -> logging.LogRecord:
    event = f"{count} log lines could not be written and were dropped"
    return logging.LogRecord("gateway.log", logging.ERROR, "", 0, event, None, None)
