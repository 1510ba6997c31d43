"""The file of a recording, and the thread that writes it, so that neither the disk nor the masking delays a client."""

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Final

from gateway.recording.lines import head_line
from gateway.recording.writer import RecordingWriter
from gateway.version import VERSION

#: Bytes that may wait for the thread; a connection that would exceed them is not recorded further.
MAX_WAITING: Final = 16 * 2**20

#: What an event counts for besides its bytes.
_EVENT_SIZE: Final = 200

#: The longest time that ``close`` waits for the thread, in seconds.
_PATIENCE_S: Final = 5.0

_Event = Callable[[RecordingWriter], None]


class _Full(Exception):
    """The file has no room for a line."""


class RecordingFile:
    """A file of at most ``max_size`` bytes. ``put`` and ``close`` are called on the kernel's thread.

    ``is_over``: nothing is written any more, because the file is full (``is_full``) or because of ``error``. Each
    number is written by one thread only.
    """

    def __init__(self, path: Path, max_size: int, started_at: str, *, hides_bodies: bool) -> None:
        """Create the file, readable by this user only. :raises OSError: if it cannot be created."""
        self.path = path
        self.size = 0
        self.error = ""
        self.is_full = False
        self.is_over = False
        self._max_size = max_size
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        self._put_bytes = self._done_bytes = 0
        self._waiting: SimpleQueue[tuple[_Event, int] | None] = SimpleQueue()
        self._writer = RecordingWriter(self._write, hides_bodies=hides_bodies)
        self._write(head_line(VERSION, started_at, hides_bodies=hides_bodies))
        self._thread = threading.Thread(target=self._write_all, name="recording", daemon=True)
        self._thread.start()

    def has_room(self, size: int) -> bool:
        """Return whether an event with so many bytes may wait for the thread."""
        return not self.is_over and self._put_bytes - self._done_bytes + size <= MAX_WAITING

    def put(self, event: _Event, size: int = 0) -> None:
        """Let the thread write an event that holds ``size`` bytes."""
        counted = size + _EVENT_SIZE
        self._put_bytes += counted
        self._waiting.put((event, counted))

    def close(self, *, waits: bool = False) -> None:
        """Write the events that wait, then close the file; with ``waits``, return after that."""
        self._waiting.put(None)
        if waits:
            self._thread.join(_PATIENCE_S)

    # In the thread

    def _write_all(self) -> None:
        while (item := self._waiting.get()) is not None:
            event, counted = item
            if not self.is_over:
                self._write_one(event)
            self._done_bytes += counted
        with suppress(OSError):
            os.close(self._file)

    def _write_one(self, event: _Event) -> None:
        try:
            event(self._writer)
        except _Full:
            self.is_full = self.is_over = True
        except OSError as error:
            self.error = error.strerror or str(error)
            self.is_over = True
        except Exception as error:  # an error of a grammar must not end the thread: the queue would grow
            self.error = f"{type(error).__name__} in the recorder"
            self.is_over = True

    def _write(self, line: bytes) -> None:
        if self.size + len(line) > self._max_size:
            raise _Full
        self.size += len(line)
        while line:
            line = line[os.write(self._file, line) :]
