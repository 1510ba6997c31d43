"""Where lines go, and what becomes of those that cannot be written: they are dropped and counted.

A disk that is full, or a pipe nobody reads, must neither stop the broker nor fill another place with complaints.
"""

import logging
from logging.handlers import WatchedFileHandler
from typing import Any


class DroppingHandler(logging.StreamHandler[Any]):
    """A handler that counts the lines it cannot write, and says how many there were once it can again."""

    dropped = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line, after one about those that could not be written."""
        missing, self.dropped = self.dropped, 0
        if missing:
            self._write(_lost(missing))
            if self.dropped:  # still not
                self.dropped += missing
                return
        self._write(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the standard library's name
        """Count a line that could not be written; called by the standard library."""
        self.dropped += 1

    def _write(self, record: logging.LogRecord) -> None:
        try:
            super().emit(record)
        except OSError:  # a file that was moved away, and that cannot be opened anew
            self.dropped += 1


class DroppingFile(DroppingHandler, WatchedFileHandler):
    """The same for a file, which is opened anew when it was moved away, as logrotate does."""


def _lost(count: int) -> logging.LogRecord:
    event = f"{count} lines of the log could not be written"
    return logging.LogRecord("gateway.log", logging.ERROR, "", 0, event, None, None)
