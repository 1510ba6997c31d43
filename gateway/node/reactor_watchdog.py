"""A thread that logs which code blocks the reactor."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Final

from gateway.logs import StructuredLog

#: A reactor that does not answer for this time is blocked, in seconds.
BLOCKED_S: Final = 1.0

#: Time between an answer of the reactor and the next question, in seconds: a question costs an idle broker 50 us.
_INTERVAL_S: Final = 1.0

_log: Final = StructuredLog("node")


class ReactorWatchdog:
    """Asks the reactor for an answer once a second, and logs the code that it runs if it gives none.

    ``ask`` lets the reactor's thread make a call. ``plugin_at`` returns the plugin of a file and module, or ``""``. The
    turn watch reports a long turn too, but only once it has ended. ``sample`` is called once a second.
    """

    def __init__(
        self,
        ask: Callable[[Callable[[], None]], object],
        plugin_at: Callable[[str, str], str],
        blocked_s: float,
        sample: Callable[[], None],
    ) -> None:
        self._ask = ask
        self._sample = sample
        self._plugin_at = plugin_at
        self._blocked_s = blocked_s
        self._reactor_thread = threading.get_ident()
        self._stopped = threading.Event()

    def start(self) -> None:
        """Start the thread. Call it on the reactor's thread."""
        self._reactor_thread = threading.get_ident()
        threading.Thread(target=self._watch, name="reactor watchdog", daemon=True).start()

    def stop(self) -> None:
        """End the thread soon."""
        self._stopped.set()

    def _watch(self) -> None:
        while not self._stopped.wait(_INTERVAL_S):
            self._sample()
            answered, asked_at_s = threading.Event(), time.monotonic()
            self._ask(answered.set)
            if answered.wait(self._blocked_s) or self._stopped.is_set():
                continue
            frame = sys._current_frames().get(self._reactor_thread)
            if frame is not None and not answered.is_set():
                self._log_blocker(list(_stack(frame)))
                answered.wait()
                _log.warning("the reactor goes on", blocked_s=round(time.monotonic() - asked_at_s, 1))

    def _log_blocker(self, stack: list[tuple[str, str, int, str]]) -> None:
        """Log the innermost code of a plugin, or the innermost of all if no plugin is at work."""
        by_plugin = [(self._plugin_at(file, module), file, line, name) for file, module, line, name in stack]
        plugin, file, line, name = next((each for each in by_plugin if each[0]), by_plugin[0])
        _log.error("the reactor is blocked", plugin=plugin, function=name, place=f"{file}:{line}")


def _stack(frame: FrameType | None) -> Iterator[tuple[str, str, int, str]]:
    """Yield file, module, line and function of each frame, the innermost first."""
    while frame is not None:
        code, module = frame.f_code, str(frame.f_globals.get("__name__", ""))
        yield code.co_filename, module, frame.f_lineno, code.co_qualname
        frame = frame.f_back
