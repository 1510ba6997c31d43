"""The start of a node in slices, with turns of the reactor in between."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from gateway.kernel.broker.recovery import Recovery
from gateway.logs import StructuredLog

_log: Final = StructuredLog("node")

#: Length of one slice of the start, in seconds.
_SLICE_S: Final = 0.02

#: How long a client waits for the start to complete before it is refused as not ready, in seconds.
_SOON_S: Final = 0.5

#: Seconds between two progress reports, and between two of them in the log.
_REPORT_S: Final = 1.0
_LOG_S: Final = 5.0


def progress_text(recovery: Recovery) -> str:
    """Return how far the recovery is, as clients and operators read it."""
    return f"the broker is starting, {recovery.done} of {recovery.total} records recovered; try again"


def progress_fields(recovery: Recovery) -> Mapping[str, object]:
    """Return how far the recovery is, as the HTTP API shows it."""
    return {"reason": progress_text(recovery), "recovered": recovery.done, "of": recovery.total}


class Start:
    """Runs the steps of a start, with turns of the reactor in between.

    ``on_slow`` is called once if the start takes longer than clients may wait for it, ``between`` after each slice.
    """

    def __init__(self, reactor: Any, recovery: Recovery, between: Callable[[], object]) -> None:  # Any: see Node
        self.on_slow: Callable[[], None] = lambda: None
        self.progress: Callable[[str], None] = lambda text: None
        self._reactor = reactor
        self._recovery = recovery
        self._between = between
        self._steps: Iterator[None] = iter(())
        self._next: Any = None
        self._reported_s = self._logged_s = 0.0
        self._is_slow = False

    def begin(self, steps: Iterator[None], ready: Callable[[], None], failed: Callable[[Exception], None]) -> None:
        """Run the steps; then call ``ready``, or ``failed`` with the exception that a step or ``ready`` raised."""
        self._steps, self._ready, self._failed = steps, ready, failed
        self._began_s = self._reported_s = self._logged_s = self._reactor.seconds()
        self._run_slice()

    def stop(self) -> None:
        """Run no more steps."""
        self._steps = iter(())
        if self._next is not None and self._next.active():
            self._next.cancel()

    def _run_slice(self) -> None:
        ends_s = self._reactor.seconds() + _SLICE_S
        try:
            if all(self._reactor.seconds() < ends_s for _ in self._steps):
                self._ready()
                return
            self._between()
            self._report(self._reactor.seconds())
        except Exception as error:  # any error must stop the reactor, which has no broker to serve
            self._failed(error)
            return
        self._next = self._reactor.callLater(0, self._run_slice)

    def _report(self, now_s: float) -> None:
        if not self._is_slow and now_s - self._began_s >= _SOON_S:
            self._is_slow = True
            self.on_slow()
        if now_s - self._reported_s >= _REPORT_S:
            self._reported_s = now_s
            self.progress(progress_text(self._recovery))
        if now_s - self._logged_s >= _LOG_S:
            self._logged_s = now_s
            _log.info("recovering", records=self._recovery.done, of=self._recovery.total)
