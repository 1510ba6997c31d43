"""Signal handlers: stop, reload, and dump of the process's state. A stop works even while the reactor is blocked."""

import faulthandler
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from gateway.cli.exits import SOFTWARE
from gateway.logs import StructuredLog
from gateway.logs.setup import log_descriptor

_log: Final = StructuredLog("signals")

STOP: Final = (signal.SIGTERM, signal.SIGINT)
DUMP: Final = (signal.SIGUSR1, signal.SIGUSR2)

#: Time for the reactor to begin stopping, in seconds, before the process is ended.
GRACE_S: Final = 5.0

#: A second stop signal this long after the first ends a process whose reactor is blocked, in seconds.
SECOND_S: Final = 1.0

_TOO_EARLY: Final = b"gateway: stopped before it was ready\n"


def stop_at_once() -> None:
    """Let SIGTERM and SIGINT end a process that has opened nothing yet; ignore the reload and dump signals."""

    def on_signal(number: int, frame: object) -> None:
        os.write(2, _TOO_EARLY)
        os._exit(0)

    for number in STOP:
        signal.signal(number, on_signal)
    for number in (signal.SIGHUP, *DUMP):
        signal.signal(number, signal.SIG_IGN)


class Signals:
    """The signal handlers of a running broker.

    Handlers run between two bytecodes of the main thread, also while the reactor is in long work. The reactor calls
    ``stop`` and ``reload``; ``state`` returns the state for a dump beside the stacks, and runs in its own thread.
    ``is_ready`` is set once the broker has started; before that, no orderly stop is needed.
    """

    def __init__(
        self,
        reactor: Any,  # Any: Twisted's interfaces are not types
        stop: Callable[[], None],
        reload: Callable[[], None],
        state: Callable[[], dict[str, object]],
    ) -> None:
        self._reactor = reactor
        self._stop = stop
        self._reload = reload
        self._state = state
        self._asked_at_s = 0.0
        self._is_stopping = False
        self.is_ready = False

    def install(self) -> None:
        """Install all handlers."""
        for number in STOP:
            signal.signal(number, self._on_stop)
        signal.signal(signal.SIGHUP, self._on_reload)
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        for number in DUMP:
            signal.signal(number, self._on_dump)
        self.dump_to_log()

    def dump_to_log(self) -> None:
        """Direct stack dumps to the current log file; called again when it changes.

        The stacks are written by the C handler, which works while Python is blocked.
        """
        descriptor = log_descriptor()
        for number in DUMP:
            with suppress(OSError, ValueError):  # there may be no standard error stream
                faulthandler.register(number, file=descriptor, all_threads=True, chain=True)

    # Handlers

    def _on_stop(self, number: int, frame: object) -> None:
        now_s = time.monotonic()
        if not self._asked_at_s:
            self._asked_at_s = now_s
            self._reactor.callFromThread(self._begin_stop)
            watchdog = threading.Timer(GRACE_S, self._end_if_blocked)
            watchdog.daemon = True
            watchdog.start()
        elif not self._is_stopping and now_s - self._asked_at_s > SECOND_S:
            self._end_at_once()

    def _on_reload(self, number: int, frame: object) -> None:
        self._reactor.callFromThread(self._reload)

    def _on_dump(self, number: int, frame: object) -> None:
        threading.Thread(target=self._log_state, daemon=True).start()

    # Consequences

    def _begin_stop(self) -> None:
        self._is_stopping = True
        self._stop()

    def _end_if_blocked(self) -> None:
        if not self._is_stopping:
            self._end_at_once()

    def _end_at_once(self) -> None:
        """End the process without the blocked reactor. Confirmed changes are on disk, as after SIGKILL."""
        if not self.is_ready:
            os.write(2, _TOO_EARLY)
            os._exit(0)
        with suppress(OSError, ValueError):
            os.write(log_descriptor(), b"gateway: the reactor is blocked and does not stop; ending the process\n")
            faulthandler.dump_traceback(file=log_descriptor(), all_threads=True)
        os._exit(SOFTWARE)

    def _log_state(self) -> None:
        try:
            _log.info("dump", threads=len(sys._current_frames()), **self._state())
        except Exception as error:  # another thread reads data that the reactor may be changing
            _log.info("dump", error=repr(error))
