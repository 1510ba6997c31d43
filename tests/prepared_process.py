"""A process that has imported the broker, and forks one for each start: 0.1 s of processor time instead of 1.3 s.

The test process talks to it over a socket pair. A request is a JSON list: the arguments of the command ``gateway``, and
the environment; with it come the descriptors of the standard streams. Each answer is a JSON list: ``["started", PID]``
for the request, later ``["ended", PID, CODE]``. ``tests/running.py`` selects this way of starting, or
``python -m gateway``.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from functools import cache
from pathlib import Path
from queue import Queue
from typing import IO, Final, Protocol

_ROOT: Final = Path(__file__).parent.parent

#: The time limit for a fork; the first one waits for the imports.
_FORK_TIMEOUT_S: Final = 60.0

#: More bytes than any answer has.
_ANSWER_SIZE: Final = 1 << 10


class Child(Protocol):
    """The part of ``subprocess.Popen`` that tests use."""

    pid: int

    @property
    def returncode(self) -> int | None: ...

    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def send_signal(self, sig: int) -> None: ...
    def kill(self) -> None: ...


class ForkedChild:
    """A broker that was forked. It has the exit code of ``subprocess``: negative for a signal."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._ended = threading.Event()

    def end(self, code: int) -> None:
        """Record the exit code."""
        self.returncode = code
        self._ended.set()

    def poll(self) -> int | None:
        """Return the exit code, or ``None`` while the process runs."""
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the exit code. :raises subprocess.TimeoutExpired: if it takes longer than ``timeout`` seconds."""
        if not self._ended.wait(timeout):
            raise subprocess.TimeoutExpired(f"gateway, process {self.pid}", timeout or 0)
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, sig: int) -> None:
        """Send a signal, unless the process has ended."""
        if self.returncode is None:
            with suppress(ProcessLookupError):  # it has ended, and its exit code is on the way
                os.kill(self.pid, sig)

    def kill(self) -> None:
        """Send SIGKILL, unless the process has ended."""
        self.send_signal(signal.SIGKILL)


class PreparedProcess:
    """The process that has imported the broker. It ends when the test process does."""

    def __init__(self) -> None:
        self._socket, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with its:
            command = [sys.executable, "-m", "tests.prepared_main", str(its.fileno())]
            self._process = subprocess.Popen(command, cwd=_ROOT, stdin=subprocess.DEVNULL, pass_fds=[its.fileno()])
        self._started: Queue[ForkedChild | None] = Queue()
        self._one_at_a_time = threading.Lock()
        threading.Thread(target=self._read, daemon=True).start()

    def start(self, arguments: list[str], *streams: IO[bytes]) -> ForkedChild:
        """Start ``gateway`` with these arguments and standard streams: input, output, errors."""
        request = json.dumps([arguments, dict(os.environ)]).encode()
        with self._one_at_a_time:
            socket.send_fds(self._socket, [request], [stream.fileno() for stream in streams])
            started = self._started.get(timeout=_FORK_TIMEOUT_S)
        assert started is not None, f"the prepared process ended with code {self._process.wait()}"
        return started

    def _read(self) -> None:
        children: dict[int, ForkedChild] = {}
        while answer := self._socket.recv(_ANSWER_SIZE):
            match json.loads(answer):
                case ["started", pid]:
                    children[pid] = ForkedChild(pid)
                    self._started.put(children[pid])
                case ["ended", pid, code]:
                    children.pop(pid).end(code)
        self._started.put(None)


@cache
def prepared_process() -> PreparedProcess:
    """Return the prepared process of this test session, started on first use."""
    return PreparedProcess()
