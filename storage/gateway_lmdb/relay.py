"""A relay of reports from the writer thread to the kernel's thread, in order."""

from collections import deque
from collections.abc import Callable
from typing import TypeAlias

from gateway.kernel.journal.changes import Lsn, SetAside
from gateway.kernel.journal.store import StoreListener

Report: TypeAlias = Callable[[StoreListener], None]


class Relay:
    """A ``StoreListener`` for the writer thread, which calls its listeners on the kernel's thread.

    :param applied: called there when everything up to a position is in the tables.
    """

    def __init__(self, call_in_kernel: Callable[[Callable[[], None]], None], applied: Callable[[Lsn], None]) -> None:
        self._call_in_kernel = call_in_kernel
        self._applied = applied
        self._listeners: list[StoreListener] = []
        self._reports: deque[Report | Lsn] = deque()
        self._watermark = Lsn(0)

    def listen(self, listener: StoreListener) -> None:
        """Add a listener after the existing ones."""
        self._listeners.append(listener)

    def deliver(self) -> None:
        """Pass on all reports so far. Called on the kernel's thread, once per report or at any time."""
        while self._reports:
            report = self._reports.popleft()
            if isinstance(report, int):
                self._applied(report)
                continue
            for listener in self._listeners:
                report(listener)

    def on_applied(self, watermark: Lsn) -> None:
        """Relay that everything up to a position is in the tables; with the next watermark, if that follows at once."""
        self._reports.append(watermark)
        if watermark <= self._watermark:
            self._call_in_kernel(self.deliver)

    def on_durable(self, watermark: Lsn) -> None:
        """Relay the watermark."""
        self._watermark = watermark
        self._pass(lambda listener: listener.on_durable(watermark))

    def on_refused(self, reason: str) -> None:
        """Relay a refused change."""
        self._pass(lambda listener: listener.on_refused(reason))

    def on_set_aside(self, aside: SetAside) -> None:
        """Relay a record that was set aside."""
        self._pass(lambda listener: listener.on_set_aside(aside))

    def on_stalled(self, reason: str) -> None:
        """Relay a stall."""
        self._pass(lambda listener: listener.on_stalled(reason))

    def on_resumed(self) -> None:
        """Relay the end of a stall."""
        self._pass(lambda listener: listener.on_resumed())

    def on_failed(self, reason: str) -> None:
        """Relay a failure."""
        self._pass(lambda listener: listener.on_failed(reason))

    def _pass(self, report: Report) -> None:
        self._reports.append(report)
        self._call_in_kernel(self.deliver)
