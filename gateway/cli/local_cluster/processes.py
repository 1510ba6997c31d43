"""A child process with a log, which is started and stopped by its number."""

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

_STOP_S: Final = 15.0
_POLL_S: Final = 0.1


class ChildProcess:
    """One process. It does not get the signals of the terminal, so that the cluster ends in order.

    ``environment`` is added to that of this process.
    """

    def __init__(
        self, name: str, command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self.command = list(command)
        self.log = log
        self.environment = {**os.environ, **(environment or {})}
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it. The log of an earlier one is replaced."""
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                self.command,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """The number of the process."""
        assert self._process is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    @property
    def last_words(self) -> str:
        """The last line of its log."""
        lines = self.log.read_text(errors="replace").split("\n") if self.log.exists() else []
        return next((line for line in reversed(lines) if line.strip()), "")

    def ask_to_stop(self) -> None:
        """Send it SIGTERM, unless it has ended."""
        if self.is_running and self._process is not None:
            self._process.terminate()

    def wait(self) -> None:
        """Wait until it has ended; kill it if that takes too long."""
        if self._process is None:
            return
        try:
            self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(_STOP_S)


def until(deadline_s: float) -> bool:
    """Pause for a moment; return whether there is time left."""
    time.sleep(_POLL_S)
    return time.monotonic() < deadline_s
