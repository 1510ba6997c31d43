"""A line on the terminal about work that takes longer than a second."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rich.status import Status

#: Time before the line is shown, in seconds.
DELAY_S: Final = 1.0


class Progress:
    """Shows one line on the standard error stream if it is a terminal, and removes it at the end of the work."""

    def __init__(self, is_wanted: bool) -> None:
        self._is_wanted = is_wanted
        self._text = ""
        self._depth = 0
        self._status: Status | None = None
        self._lock = threading.Lock()

    @contextmanager
    def during(self, text: str) -> Iterator[None]:
        """Show the line while the block runs. Inside another such block, that one's line stays."""
        self._depth += 1
        if self._depth == 1:
            self._begin(text)
        try:
            yield
        finally:
            self._depth -= 1
            if self._depth == 0:
                self._end()

    def say(self, text: str) -> None:
        """Change the line."""
        with self._lock:
            self._text = text
            if self._status is not None:
                self._status.update(_escaped(text))

    def _begin(self, text: str) -> None:
        self._text = text
        if self._is_wanted and sys.stderr.isatty():
            self._timer = threading.Timer(DELAY_S, self._show)
            self._timer.daemon = True
            self._timer.start()

    def _show(self) -> None:
        from rich.console import Console  # imported here because most verbs end sooner

        with self._lock:
            if self._depth:
                self._status = Console(stderr=True).status(_escaped(self._text))
                self._status.start()

    def _end(self) -> None:
        with self._lock:
            status, self._status = self._status, None
            if (timer := getattr(self, "_timer", None)) is not None:
                timer.cancel()
        if status is not None:
            status.stop()


def _escaped(text: str) -> str:
    """Return text without rich's markup."""
    return text.replace("[", "\\[")
