"""A thread that appends lines to a file, so that a slow disk delays no message."""

import os
import threading
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Final

#: Bytes that may wait for the disk.
MAX_WAITING: Final = 8 * 2**20

#: The longest time that ``close`` waits for the disk, in seconds.
_PATIENCE_S: Final = 2.0


class LineWriter:
    """Appends to ``path`` up to a size of ``max_size`` bytes. Lines without room are left out and counted.

    ``put`` and ``close`` are called on the kernel's thread; each number is written by one thread only. ``error`` is
    that of the latest failed write.
    """

    def __init__(self, path: Path, max_size: int) -> None:
        """Open the file, readable by this user only. :raises OSError: if it cannot be opened."""
        self.lines = 0
        self.left_out = 0
        self.error = ""
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
        self._room = max(0, max_size - os.fstat(self._file).st_size)
        self._put_bytes = 0
        self._done_bytes = 0
        self._waiting: SimpleQueue[bytes | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._write_all, name="trace-file", daemon=True)
        self._thread.start()

    @property
    def waiting_bytes(self) -> int:
        """The bytes that wait for the disk."""
        return self._put_bytes - self._done_bytes

    def put(self, line: bytes) -> None:
        """Append a line, or leave it out."""
        size = len(line)
        if size > self._room or self.waiting_bytes + size > MAX_WAITING:
            self.left_out += 1
            return
        self.lines += 1
        self._room -= size
        self._put_bytes += size
        self._waiting.put(line)

    def close(self, *, waits: bool = False) -> None:
        """Write the lines that wait, then close the file; with ``waits``, return after that."""
        self._waiting.put(None)
        if waits:
            self._thread.join(_PATIENCE_S)

    def _write_all(self) -> None:
        """Write lines until the writer is closed. Runs in the thread."""
        while (line := self._waiting.get()) is not None:
            try:
                os.write(self._file, line)
            except OSError as error:  # such as a full disk
                self.error = error.strerror or str(error)
            self._done_bytes += len(line)
        with suppress(OSError):
            os.close(self._file)
