"""Setup of the log's destination, at the start of the broker."""

import logging
import sys
from contextlib import suppress
from typing import TextIO

from gateway.config.settings import LogSettings as LogSettings
from gateway.kernel.errors import ConfigurationError
from gateway.logs.formats import JsonFormat, TextFormat
from gateway.logs.handlers import DroppingFile, DroppingHandler
from gateway.logs.rate_limit import RateFilter


def start_logging(settings: LogSettings, stream: TextIO | None = None) -> None:
    """Configure logging for all libraries from the settings; ``stream`` defaults to standard error.

    A second call replaces the first configuration.

    :raises ConfigurationError: when the file cannot be opened.
    """
    handler = _handler(settings, stream)
    handler.setFormatter(JsonFormat() if settings.format == "json" else TextFormat())
    if settings.lines_per_s:
        handler.addFilter(RateFilter(settings.lines_per_s))
    root = logging.getLogger()
    stop_logging()
    root.addHandler(handler)
    root.setLevel(settings.level.upper())


def log_descriptor() -> int:
    """Return the descriptor of the log file, or of standard error if there is none."""
    for handler in logging.getLogger().handlers:
        stream = getattr(handler, "stream", None)
        if isinstance(handler.formatter, TextFormat | JsonFormat) and stream is not None:
            try:
                return int(stream.fileno())
            except (OSError, ValueError, AttributeError):  # the stream has no descriptor
                break
    return 2


def stop_logging() -> None:
    """Close the handlers that ``start_logging`` opened."""
    root = logging.getLogger()
    for handler in [handler for handler in root.handlers if isinstance(handler.formatter, TextFormat | JsonFormat)]:
        root.removeHandler(handler)
        with suppress(OSError):  # lines that could not be written before cannot be written now
            handler.close()


def _handler(settings: LogSettings, stream: TextIO | None) -> logging.Handler:
    if settings.file is None:
        return DroppingHandler(stream or sys.stderr)
    try:
        return DroppingFile(settings.file, encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"log.file: must be a file that can be written, not '{settings.file}'") from error
