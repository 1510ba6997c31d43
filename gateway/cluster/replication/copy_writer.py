"""Writes the records of a log into the copy of a node, in slices, and holds their reader back while there are many."""

from collections import deque
from collections.abc import Callable
from typing import Final

from gateway.cluster.gate import Gate
from gateway.cluster.log_replay import LogRecord
from gateway.cluster.replication.folded_steps import FoldedSteps, InLog
from gateway.cluster.replication.replaying import RecordApplier
from gateway.kernel.clock import SLICE_S, Clock, Timer
from gateway.kernel.errors import GatewayError, StorageError
from gateway.kernel.journal.changes import Change, Lsn, SetAside
from gateway.kernel.journal.store import Store

#: The gate is closed while so many bytes of records wait, and opens again at half of it.
_MOST_WAITING: Final = 2 * 1024 * 1024

#: No record is applied while so many bytes wait for the store's thread.
_MOST_UNWRITTEN: Final = 4 * 1024 * 1024

#: The steps of so many bytes, or of so long a time, are written as one: what comes and goes meanwhile is not written.
_WINDOW_BYTES: Final = 512 * 1024
_WINDOW_S: Final = 0.25


class CopyWriter:
    """Writes into an empty store without a listener. Owns the records that are not applied yet.

    ``failed`` is called once if the copy cannot be written or a record cannot be read, and never from inside ``take``.
    A full disk is no failure before ``hurry``: the store goes on once there is room, and the reader waits
    behind ``gate``.
    """

    def __init__(self, store: Store, clock: Clock, failed: Callable[[str], None]) -> None:
        self.gate = Gate()
        self.failure: GatewayError | None = None
        self.applier = RecordApplier(self._fold)
        self._store = store
        self._clock = clock
        self._failed = failed
        self._waiting: deque[LogRecord] = deque()
        self._waiting_bytes = 0
        #: The records that were taken.
        self.taken = 0
        self._folded = FoldedSteps(InLog(0, 0))
        self._unwritten: deque[tuple[Lsn, int]] = deque()
        self._unwritten_bytes = 0
        self._stalled = ""
        self._is_urgent = False
        self._is_scheduled = False
        self._window: Timer | None = None
        self._finished: Callable[[], None] | None = None
        store.listen(self)

    @property
    def backlog(self) -> int:
        """The records that wait to be applied."""
        return len(self._waiting)

    def take(self, record: LogRecord) -> None:
        """Take the next record."""
        if self.failure is not None:
            return
        self.taken += 1
        self._waiting.append(record)
        self._waiting_bytes += len(record.payload)
        if self._waiting_bytes >= _MOST_WAITING:
            self.gate.close()
        self._work_soon()

    def hurry(self) -> None:
        """Fail from now on if the disk is full: another node, which may have room on its disk, waits to lead."""
        self._is_urgent = True
        self._fail_if_stalled()

    def finish(self, finished: Callable[[], None]) -> None:
        """Call ``finished`` once all that was taken is written, or cannot be: ``failure`` has the reason then."""
        self._finished = finished
        self._work_soon()

    def close(self) -> None:
        """Apply nothing more, and make no more calls."""
        self._waiting.clear()
        self._finished = None
        self._failed = lambda reason: None
        self.failure = self.failure or StorageError("the copy was closed")
        if self._window is not None:
            self._window.cancel()

    # ---- Applying ------------------------------------------------------------------------------------------------

    def _work_soon(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            self._clock.call_later(0, self._work)

    def _work(self) -> None:
        """Apply records for one slice."""
        self._is_scheduled = False
        ends_s = self._clock.monotonic_s() + SLICE_S
        while self._waiting and self._may_apply:
            self._apply(self._waiting.popleft())
            if self._clock.monotonic_s() >= ends_s:
                break
        if self._waiting_bytes <= _MOST_WAITING // 2 and self.failure is None:
            self.gate.open()
        if self._waiting:
            if self._may_apply:
                self._work_soon()
        elif self._finished is not None:
            self._end()
        elif self._window is None and not self._folded.is_empty:
            self._window = self._clock.call_later(_WINDOW_S, self._window_ended)

    @property
    def _may_apply(self) -> bool:
        return self.failure is None and self._unwritten_bytes < _MOST_UNWRITTEN

    def _apply(self, record: LogRecord) -> None:
        self._waiting_bytes -= len(record.payload)
        try:
            self.applier.take(record)
        except GatewayError as error:
            self._fail(error)
            return
        if self._folded.size >= _WINDOW_BYTES:
            self._write()

    def _fold(self, changes: list[Change]) -> None:
        self._folded.fold(Lsn(0), changes)

    def _window_ended(self) -> None:
        self._window = None
        self._write()

    def _write(self) -> None:
        """Write what was folded as one step."""
        folded, self._folded = self._folded, FoldedSteps(self._folded.in_log())
        if folded.refusals:
            self._fail(StorageError(folded.refusals[0]))
        elif not folded.is_empty and self.failure is None:
            self._unwritten.append((self._store.append(list(folded.changes())), folded.size))
            self._unwritten_bytes += folded.size

    def _end(self) -> None:
        """Write the rest, and report the end once it is written."""
        if self.failure is None:
            self.applier.finish()
            self._write()
        if self.failure is not None or not self._unwritten:
            finished, self._finished = self._finished, None
            if finished is not None:
                finished()

    def _fail_if_stalled(self) -> None:
        if self._stalled and self._is_urgent:
            self._fail(StorageError(self._stalled))

    def _fail(self, error: GatewayError) -> None:
        """Fail, and let the reader come through the gate and find out."""
        if self.failure is None:
            self.failure = error
            self._waiting.clear()
            self._waiting_bytes = 0
            self._clock.call_later(0, self.gate.open)
            self._clock.call_later(0, lambda: self._failed(str(error)))
            self._work_soon()

    # ---- Reports of the store ------------------------------------------------------------------------------------

    def on_durable(self, watermark: Lsn) -> None:
        """Note how far it is written."""
        while self._unwritten and self._unwritten[0][0] <= watermark:
            self._unwritten_bytes -= self._unwritten.popleft()[1]
        if self._waiting or self._finished is not None:
            self._work_soon()

    def on_refused(self, reason: str) -> None:
        """Fail: the leader could write it."""
        self._fail(StorageError(reason))

    def on_set_aside(self, aside: SetAside) -> None:
        """Do nothing: the next start reports it."""

    def on_stalled(self, reason: str) -> None:
        """Wait for room; after ``hurry``, fail."""
        self._stalled = reason
        self._fail_if_stalled()

    def on_resumed(self) -> None:
        """Go on."""
        self._stalled = ""

    def on_failed(self, reason: str) -> None:
        """Fail."""
        self._fail(StorageError(reason))
