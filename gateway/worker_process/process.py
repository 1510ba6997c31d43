"""A process beside the broker that answers requests, for work that would block the reactor.

It starts with the first request, ends after a long idle time, and is restarted when it dies. Requests under way at
that time are repeated once; a request that kills the process twice fails.
"""

import os
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from twisted.internet.protocol import Factory, Protocol

from gateway.kernel.errors import ProtocolViolation
from gateway.logs.structured import StructuredLog
from gateway.worker_process.framing import FrameReader, Head, encode_frame

_log: Final = StructuredLog("worker")

#: Requests sent to the process at a time, so that it finds the next one without waiting.
_MOST_UNDER_WAY: Final = 2

_IDLE_S: Final = 300.0

#: Delays before a restart after a death, in seconds; they grow while the process dies immediately.
_RESTART_S: Final = 0.1
_LONGEST_RESTART_S: Final = 10.0

_TRIES: Final = 2


class WorkerAnswer(NamedTuple):
    """The answer to a request. ``error`` is the reason of a failure as text, otherwise ``None``."""

    head: Head
    payload: bytes
    error: str | None


class _Request:
    __slots__ = ("head", "on_answer", "payload", "tries")

    def __init__(self, head: Head, payload: bytes, on_answer: Callable[[WorkerAnswer], None]) -> None:
        self.head = head
        self.payload = payload
        self.on_answer = on_answer
        self.tries = 0


class WorkerProcess:
    """The worker process, which runs ``module``. Owns the waiting requests.

    Requests are answered in order, urgent ones first; none is answered after ``stop``.
    """

    def __init__(self, reactor: Any, module: str) -> None:  # Any: Twisted's interfaces are not types
        self._reactor = reactor
        self._module = module
        self._urgent: deque[_Request] = deque()
        self._background: deque[_Request] = deque()
        self._under_way: deque[_Request] = deque()
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: _Connection | None = None
        self._timer: Any = None
        self._restart_s = _RESTART_S
        self._is_stopped = False

    @property
    def process_id(self) -> int | None:
        """The id of the process while it runs."""
        return None if self._process is None else self._process.pid

    @property
    def requests(self) -> int:
        """The number of unanswered requests."""
        return len(self._urgent) + len(self._background) + len(self._under_way)

    def ask(
        self, head: Head, payload: bytes, on_answer: Callable[[WorkerAnswer], None], *, is_urgent: bool = False
    ) -> None:
        """Send a request; ``on_answer`` is called once, in a later turn."""
        (self._urgent if is_urgent else self._background).append(_Request(head, payload, on_answer))
        self._send_next()

    def stop(self) -> None:
        """Kill the process and drop all requests."""
        self._is_stopped = True
        self._urgent.clear()
        self._background.clear()
        self._under_way.clear()
        self._cancel_timer()
        self._end()

    # The process

    def _send_next(self) -> None:
        """Send the next requests, up to the limit; start the process if needed and allowed."""
        if self._connection is None:
            if self._timer is None and not self._is_stopped and self.requests:
                self._start()
            return
        while len(self._under_way) < _MOST_UNDER_WAY and (waiting := self._urgent or self._background):
            request = waiting.popleft()
            self._under_way.append(request)
            self._connection.send(encode_frame(request.head, request.payload))
        self._cancel_timer()
        if not self._under_way:
            self._timer = self._reactor.callLater(_IDLE_S, self._stop_if_idle)

    def _start(self) -> None:
        """Start the process with one end of a socket pair; the reactor polls the other end."""
        ours, theirs = socket.socketpair()
        command = [sys.executable, "-m", self._module]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        with ours, theirs:
            end = theirs.fileno()
            self._process = subprocess.Popen(command, stdin=end, stdout=end, env=environment)
            ours.setblocking(False)
            self._connection = _Connection(self)
            self._reactor.adoptStreamConnection(ours.fileno(), socket.AF_UNIX, _ConnectionFactory(self._connection))
        _log.debug("started", module=self._module, pid=self._process.pid)
        self._send_next()

    def _stop_if_idle(self) -> None:
        self._timer = None
        if not self.requests:
            self._end()

    def _end(self) -> None:
        """Kill the process: its work is repeatable."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _restart(self) -> None:
        self._timer = None
        self._send_next()

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # Callbacks of the connection

    def on_frame(self, connection: "_Connection", head: Head, payload: bytes) -> None:
        """Complete the oldest request under way."""
        if connection is not self._connection:
            return
        self._restart_s = _RESTART_S
        request = self._under_way.popleft()
        self._send_next()
        request.on_answer(WorkerAnswer(head, payload, head.get("error")))

    def on_lost(self, connection: "_Connection") -> None:
        """The process died: repeat its requests after a delay, in a new process."""
        if connection is not self._connection:
            return
        self._end()
        _log.warning("died", module=self._module, requests=len(self._under_way))
        self._timer = self._reactor.callLater(self._restart_s, self._restart)
        self._restart_s = min(self._restart_s * 2, _LONGEST_RESTART_S)
        again = list(self._under_way)
        self._under_way.clear()
        failed = None
        if again:
            again[0].tries += 1
            if again[0].tries >= _TRIES:
                failed = again.pop(0)
        self._urgent.extendleft(reversed(again))
        if failed is not None:
            failed.on_answer(WorkerAnswer({}, b"", "the worker process died twice while it processed this request"))


class _Connection(Protocol):
    """The connection to the process."""

    transport: Any  # Twisted's interfaces are not types

    def __init__(self, worker: WorkerProcess) -> None:
        self._worker = worker
        self._reader = FrameReader()

    def send(self, frame: bytes) -> None:
        self.transport.write(frame)

    def close(self) -> None:
        self.transport.abortConnection()

    def dataReceived(self, data: bytes) -> None:
        try:
            for frame in self._reader.feed(data):
                self._worker.on_frame(self, frame.head, frame.payload)
        except ProtocolViolation as violation:
            _log.warning("sent an invalid frame", reason=str(violation))
            self.close()  # as when the process dies

    def connectionLost(self, reason: object = None) -> None:
        self._worker.on_lost(self)


class _ConnectionFactory(Factory):
    def __init__(self, connection: _Connection) -> None:
        self._connection = connection

    def buildProtocol(self, addr: object) -> _Connection:
        return self._connection
