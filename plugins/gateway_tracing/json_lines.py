"""tracing-json-lines: writes each publish and delivery as a line of JSON to a file, which is rotated by size.

A thread writes the lines, so a slow disk delays no message. Lines beyond ``max_waiting`` are counted and left out.
"""

import json
import random
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from logging import LogRecord
from logging.handlers import RotatingFileHandler
from pathlib import Path
from queue import Full, Queue, SimpleQueue
from time import time_ns
from typing import Final, TypeAlias
from urllib.parse import quote

from pydantic import Field

from gateway.api import ConfigurationError, Message, Origin, PluginSettings, TracedVhost, Tracer, hookimpl

Row: TypeAlias = "dict[str, object]"

#: The longest time that ``close`` waits for the disk, in seconds.
_PATIENCE_S: Final = 2.0


class JsonLinesSettings(PluginSettings):
    """The settings of ``tracing-json-lines``."""

    path: str = Field(min_length=1)
    """The file. ``{vhost}`` is replaced by the name of the virtual host, percent-encoded."""

    sample: float = Field(default=1.0, gt=0, le=1)
    """The fraction of publishes and deliveries that is written, chosen at random."""

    max_bytes: int = Field(default=100_000_000, ge=10_000)
    """The size at which the file is renamed to ``path.1`` and a new one begins."""

    files: int = Field(default=5, ge=1, le=1000)
    """Earlier files that are kept."""

    max_waiting: int = Field(default=10_000, ge=1, le=10_000_000)
    """Lines that may wait for the disk; further ones are left out, and their number is written later."""


class LineFile(RotatingFileHandler):
    """A rotated file of lines. ``failures`` counts lines that could not be written."""

    failures = 0

    def handleError(self, record: LogRecord) -> None:  # noqa: N802 - a method of logging.Handler
        """Count a line that could not be written."""
        self.failures += 1


class JsonLines:
    """Passes rows to a thread that writes them. ``left_out`` counts the rows for which there was no room."""

    def __init__(
        self, settings: JsonLinesSettings, file: LineFile, chance: Callable[[], float] = random.random
    ) -> None:
        self.left_out = 0
        self._sample = settings.sample
        self._chance = chance
        self._file = file
        self._rows: Queue[Row | None] = Queue(settings.max_waiting)
        self._ended: SimpleQueue[None] = SimpleQueue()
        self._thread = threading.Thread(target=self._write_all, name="tracing-json-lines", daemon=True)
        self._thread.start()

    def published(self, message: Message, queues: Sequence[str], origin: Origin) -> None:
        """Note a publish and its queues."""
        if self._sample >= 1 or self._chance() < self._sample:
            self._put("publish", message, origin, {"queues": list(queues)})

    def delivered(self, message: Message, queue: str, redelivered: bool, origin: Origin) -> None:
        """Note a delivery."""
        if self._sample >= 1 or self._chance() < self._sample:
            self._put("deliver", message, origin, {"queue": queue, "redelivered": redelivered})

    def close(self) -> None:
        """Write what waits, and close the file; a disk that hangs is not waited for."""
        self._ended.put(None)
        with suppress(Full):  # then the thread looks at ``_ended`` after the rows that wait
            self._rows.put_nowait(None)
        self._thread.join(_PATIENCE_S)

    def _put(self, event: str, message: Message, origin: Origin, more: Row) -> None:
        row: Row = {
            "event": event,
            "time_ns": time_ns(),
            "exchange": message.exchange,
            "routing_key": message.routing_key,
            "message_id": message.properties.message_id,
            "body_size": len(message.body),
            **more,
            "protocol": origin.protocol_in_traces,
            "connection": origin.connection,
            "user": origin.user,
        }
        try:
            self._rows.put_nowait(row)
        except Full:
            self.left_out += 1

    def _write_all(self) -> None:
        """Write rows until the tracer is closed. Runs in the thread."""
        reported = 0
        while True:
            row = self._rows.get()
            if row is not None:
                self._write(row)
            if (left_out := self.left_out) != reported:
                self._write({"event": "left-out", "time_ns": time_ns(), "lines": left_out - reported})
                reported = left_out
            if self._rows.empty() and not self._ended.empty():
                with suppress(OSError):  # a full disk; the lines are counted
                    self._file.close()
                return

    def _write(self, row: Row) -> None:
        line = json.dumps(row, separators=(",", ":"))
        self._file.handle(LogRecord("trace", 0, "", 0, line, None, None))


@hookimpl
def gateway_settings_model() -> type[PluginSettings]:
    """Describe file, sampling and rotation."""
    return JsonLinesSettings


@hookimpl
def gateway_tracers(vhost: TracedVhost, settings: JsonLinesSettings) -> Sequence[Tracer]:
    """Offer the tracer. :raises ConfigurationError: if the file cannot be opened."""
    path = Path(settings.path.replace("{vhost}", quote(vhost.name, safe="")))
    try:
        file = LineFile(path, maxBytes=settings.max_bytes, backupCount=settings.files, encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"path: cannot write {path}: {error.strerror or error}") from None
    return [JsonLines(settings, file)]
