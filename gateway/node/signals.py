"""What signals do: stop, reload, and dump of what the process is at. A stop works while the reactor is stuck."""

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

#: How long the reactor may take to begin to stop, in seconds. Work that takes longer is not going to end soon.
GRACE_S: Final = 5.0

#: A second signal this long after the first ends a process whose reactor did not begin to stop, in seconds.
SECOND_S: Final = 1.0

_TOO_EARLY: Final = b"gateway: stopped before it was ready\n"


def stop_at_once() -> None:
    """Let SIGTERM and SIGINT end a process that has opened nothing yet; it has nothing to reload or dump either."""

    def on_signal(number: int, frame: object) -> None:
        os.write(2, _TOO_EARLY)
        os._exit(0)

    for number in STOP:
        signal.signal(number, on_signal)
    for number in (signal.SIGHUP, *DUMP):
        signal.signal(number, signal.SIG_IGN)


class Signals:
    """The signal handlers of a running broker.

    Handlers run between two bytecodes of the main thread, also while the reactor is in long work. ``stop`` and
    ``reload`` are called by the reactor; ``facts`` returns what a dump tells beside the stacks, and is called in a
    thread of its own. ``is_ready`` says that the broker has started: before, there is nothing to end in order.
    """

    def __init__(
        self,
        reactor: Any,  # Any: Twisted's interfaces are not types
        stop: Callable[[], None],
        reload: Callable[[], None],
        facts: Callable[[], dict[str, object]],
    ) -> None:
        self._reactor = reactor
        self._stop = stop
        self._reload = reload
        self._facts = facts
        self._asked_at_s = 0.0
        self._is_stopping = False
        self.is_ready = False

    def install(self) -> None:
        """Handle all signals from now on."""
        for number in STOP:
            signal.signal(number, self._on_stop)
        signal.signal(signal.SIGHUP, self._on_reload)
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        for number in DUMP:
            signal.signal(number, self._on_dump)
        self.dump_to_log()

    def dump_to_log(self) -> None:
        """Write the stacks of dumps to where the log goes now; called again when that changes.

        The stacks are written by the C handler, which works while Python does not.
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
            self._reactor.callFromThread(self._begin_to_stop)
            watchdog = threading.Timer(GRACE_S, self._end_if_stuck)
            watchdog.daemon = True
            watchdog.start()
        elif not self._is_stopping and now_s - self._asked_at_s > SECOND_S:
            self._end_at_once()

    def _on_reload(self, number: int, frame: object) -> None:
        self._reactor.callFromThread(self._reload)

    def _on_dump(self, number: int, frame: object) -> None:
        threading.Thread(target=self._tell_facts, daemon=True).start()

    # What follows

    def _begin_to_stop(self) -> None:
        self._is_stopping = True
        self._stop()

    def _end_if_stuck(self) -> None:
        if not self._is_stopping:
            self._end_at_once()

    def _end_at_once(self) -> None:
        """End without the reactor, which is stuck. What was confirmed is on disk: it is as after SIGKILL."""
        if not self.is_ready:
            os.write(2, _TOO_EARLY)
            os._exit(0)
        with suppress(OSError, ValueError):
            os.write(log_descriptor(), b"gateway: the reactor is stuck and does not stop, the process ends at once\n")
            faulthandler.dump_traceback(file=log_descriptor(), all_threads=True)
        os._exit(SOFTWARE)

    def _tell_facts(self) -> None:
        try:
            _log.info("dump", threads=len(sys._current_frames()), **self._facts())
        except Exception as error:  # a look from another thread at what the reactor's changes
            _log.info("dump", error=repr(error))
