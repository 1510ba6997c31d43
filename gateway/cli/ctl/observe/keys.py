"""Keys of a terminal, one by one and without echo."""

import os
import re
import select
import sys
import termios
import tty
from types import TracebackType
from typing import Final, Self

#: A key that a terminal sends as several bytes; a lone escape is one byte.
_SEQUENCE: Final = re.compile(rb"\x1b(\[[0-9;]*[A-Za-z~]|O[A-Za-z])?")

#: The names of special keys.
_NAMES: Final = {
    b"\x1b[A": "up",
    b"\x1b[B": "down",
    b"\x1bOA": "up",
    b"\x1bOB": "down",
    b"\x1b[5~": "page up",
    b"\x1b[6~": "page down",
    b"\x1b[H": "home",
    b"\x1b[1~": "home",
    b"\x1bOH": "home",
    b"\t": "tab",
}


class Keys:
    """Reads keys while the block runs, and restores the terminal at its end."""

    def __enter__(self) -> Self:
        self._descriptor = sys.stdin.fileno()
        self._before = termios.tcgetattr(self._descriptor)
        self._typed = b""
        tty.setcbreak(self._descriptor)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        termios.tcsetattr(self._descriptor, termios.TCSADRAIN, self._before)

    def wait(self, timeout_s: float) -> str:
        """Return the next key, or an empty string after a time. Unknown sequences are empty too."""
        if not self._typed:
            ready, _, _ = select.select([self._descriptor], [], [], timeout_s)
            if not ready:
                return ""
            self._typed = os.read(self._descriptor, 1024)
            if not self._typed:
                return "q"  # the terminal is gone
        key, self._typed = first_key(self._typed)
        return key


def first_key(typed: bytes) -> tuple[str, bytes]:
    """Return the first key of what was typed, and the rest."""
    if (sequence := _SEQUENCE.match(typed)) is not None:
        return _NAMES.get(sequence[0], ""), typed[sequence.end() :]
    return _NAMES.get(typed[:1]) or typed[:1].decode("ascii", "replace"), typed[1:]
