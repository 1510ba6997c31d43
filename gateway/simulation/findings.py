"""The findings of a run: each broken promise of the broker, with the virtual time at which it was noticed."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from gateway.logs.fields import fields_of
from gateway.simulation.world.world import World

#: The promises that a node keeps even if its disk lies.
HEALTH: Final = frozenset(
    {
        "a start succeeds",
        "a stop ends",
        "a turn ends within its budget",
        "no exception is contained",
        "no exception reaches the reactor",
        "no traceback in the log",
        "what the broker sends can be read",
    }
)

#: Findings kept of one run: the first ones are the interesting ones.
_MOST: Final = 20


@dataclass(frozen=True, slots=True)
class Finding:
    """A broken promise: its ``rule``, as docs/simulation.md lists it, and the details."""

    at_s: float
    rule: str
    details: str

    def __str__(self) -> str:
        return f"{self.at_s:10.6f} {self.rule}: {self.details}"


class Findings:
    """The findings of one run, the first ones of many."""

    def __init__(self, world: World) -> None:
        self.found: list[Finding] = []
        self._world = world
        self._is_limited = False

    def limit_to_health(self) -> None:
        """From now on, collect only findings about the node's health: the disk has broken its own promise."""
        self._is_limited = True

    def __bool__(self) -> bool:
        return bool(self.found)

    def add(self, rule: str, details: str) -> None:
        """Add a finding."""
        if len(self.found) < _MOST and (rule in HEALTH or not self._is_limited):
            self.found.append(Finding(self._world.now_s, rule, details))

    def require(self, holds: object, rule: str, details: str) -> None:
        """Add a finding unless the condition holds."""
        if not holds:
            self.add(rule, details)


class _LogCheck(logging.Handler):
    """Turns log records of errors into findings: a client's input must not cause one."""

    def __init__(self, findings: Findings, write: Callable[[str], None] | None) -> None:
        super().__init__()
        self._findings = findings
        self._write = write

    def emit(self, record: logging.LogRecord) -> None:
        """Check a record."""
        message = record.getMessage()
        error = record.exc_info[1] if record.exc_info else None
        if self._write is None and error is None:
            return
        fields = " ".join(f"{name}={value}" for name, value in fields_of(record).items())
        line = f"{record.name} {message} {fields}"
        if self._write is not None:
            self._write(line)
        if error is not None:
            self._findings.add("no traceback in the log", f"{line}: {type(error).__name__}: {error} {place_of(error)}")


def place_of(error: BaseException) -> str:
    """Return the file and line that raised an exception."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "" if trace is None else f"({trace.tb_frame.f_code.co_filename}:{trace.tb_lineno})"


@contextmanager
def checked_log(findings: Findings, write: Callable[[str], None] | None) -> Iterator[None]:
    """Add a finding for each traceback in the log, for the length of a run; pass each line to ``write``, if any."""
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    root.handlers = [_LogCheck(findings, write)]
    root.setLevel(logging.INFO)
    try:
        yield
    finally:
        root.handlers = handlers
        root.setLevel(level)
