"""The mark of a process, by which its successor on the same machine can tell that it has ended."""

import os
import re
from pathlib import Path
from typing import Final

_PROC: Final = Path("/proc")

#: The parts of a mark, and a process number in it.
_PARTS: Final = 4
_NUMBER: Final = re.compile(r"[1-9][0-9]{0,8}")

#: The states of a process that runs no more, but is still listed.
_ENDED: Final = ("Z", "X")

#: The places of state and start time after the name in ``/proc/PID/stat``, counted from 0.
_STATE: Final = 0
_STARTED: Final = 19


def own_mark() -> str:
    """Return the mark of this process; empty where the system does not tell.

    It has the start of the machine, the namespace of process numbers, the number, and when the process was started.
    """
    place, found = _place(), _fields_of(os.getpid())
    return f"{place}/{os.getpid()}/{found[_STARTED]}" if place and found else ""


def has_ended(mark: str) -> bool:
    """Return whether a process has certainly ended: one in the same namespace, since the last start of the machine."""
    parts = mark.split("/")
    if len(parts) != _PARTS or "/".join(parts[:2]) != _place() or not _NUMBER.fullmatch(parts[2]):
        return False
    number = int(parts[2])
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return True
    except OSError:
        pass  # it exists, and belongs to another user
    found = _fields_of(number)
    return bool(found) and (found[_STATE] in _ENDED or found[_STARTED] != parts[3])


def _place() -> str:
    """Return where a process number is valid: the start of the machine and the namespace; empty if unknown."""
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{(_PROC / 'self/ns/pid').stat().st_ino}"
    except OSError:
        return ""


def _fields_of(number: int) -> list[str]:
    """Return the fields after the name of a process; none if they cannot be read."""
    try:
        text = (_PROC / str(number) / "stat").read_text(errors="replace")
    except OSError:
        return []
    return text.rpartition(")")[2].split()
