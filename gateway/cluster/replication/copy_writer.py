"""Writes the records of a log into the copy of a node, in slices, and holds their reader back while there are many."""

from collections import deque
from collections.abc import Callable
from typing import Final

from gateway.cluster.gate import Gate
from gateway.cluster.log_replay import LogRecord
from gateway.cluster.queue_log import UNCLAIMED, Epoch
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
        self._unwritten: deque[tuple[Lsn, int, Epoch]] = deque()
        self._unwritten_bytes = 0
        #: The epoch of the last record that was applied, given to the store, and written by it.
        self._applied_epoch = self._staged_epoch = self._written_epoch = UNCLAIMED
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

    @property
    def epoch(self) -> Epoch:
        """The epoch of the log at which the store has the data; ``UNCLAIMED`` while that is not certain.

        The store has everything before that epoch, and nothing of a later one. It is not certain before the copy is
        complete, and while the steps of two epochs are being written.
        """
        is_certain = self._written_epoch == self._staged_epoch and self.failure is None
        return self._written_epoch if is_certain else UNCLAIMED

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
        elif self._window is None and (not self._folded.is_empty or self._next_epoch != self._staged_epoch):
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
        self._applied_epoch = record.epoch
        if self._folded.size >= _WINDOW_BYTES:
            self._write()

    @property
    def _next_epoch(self) -> Epoch:
        """The epoch at which the store will have the data once all that was applied is written."""
        return self._applied_epoch if self.applier.is_complete else UNCLAIMED

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
        if self.failure is not None:
            return
        epoch = self._staged_epoch = self._next_epoch
        if not folded.is_empty:
            self._unwritten.append((self._store.append(list(folded.changes())), folded.size, epoch))
            self._unwritten_bytes += folded.size
        elif self._unwritten:  # the records of the epoch have changed nothing so far
            self._unwritten.append((self._unwritten[-1][0], 0, epoch))
        else:
            self._written_epoch = epoch

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
            _, size, self._written_epoch = self._unwritten.popleft()
            self._unwritten_bytes -= size
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
