"""Where the log goes: chosen once, at the start."""

import logging
import sys
from contextlib import suppress
from typing import TextIO

from gateway.config.settings import LogSettings as LogSettings
from gateway.kernel.errors import ConfigurationError
from gateway.logs.handlers import DroppingFile, DroppingHandler
from gateway.logs.rate_limit import RateFilter
from gateway.logs.structured import JsonFormat, TextFormat


def start_logging(settings: LogSettings, stream: TextIO | None = None) -> None:
    """Write all entries, those of other libraries too, as the settings ask; ``stream`` is standard error if not given.

    Calling it again replaces what the last call set up.

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
    """Return the descriptor of the file that the log goes to; that of the standard error stream if there is none."""
    for handler in logging.getLogger().handlers:
        stream = getattr(handler, "stream", None)
        if isinstance(handler.formatter, TextFormat | JsonFormat) and stream is not None:
            try:
                return int(stream.fileno())
            except (OSError, ValueError, AttributeError):  # a stream that is no file
                break
    return 2


def stop_logging() -> None:
    """Close what ``start_logging`` opened."""
    root = logging.getLogger()
    for handler in [handler for handler in root.handlers if isinstance(handler.formatter, TextFormat | JsonFormat)]:
        root.removeHandler(handler)
        with suppress(OSError):  # what could not be written cannot be written now
            handler.close()


def _handler(settings: LogSettings, stream: TextIO | None) -> logging.Handler:
    if settings.file is None:
        return DroppingHandler(stream or sys.stderr)
    try:
        return DroppingFile(settings.file, encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"log.file: must be a file that can be written, not '{settings.file}'") from error
