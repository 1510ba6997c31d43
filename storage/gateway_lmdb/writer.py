"""The writer thread: collects staged appends, commits them in one transaction, reports, and repeats.

While one transaction is being synced, the next batch is collected, so a single append waits for one sync and a burst
shares one. An error is either temporary (the disk is full), and the commit is retried, or final.
"""

from collections import deque
from collections.abc import Callable
from queue import Empty
from typing import Final

import lmdb

from gateway.kernel.errors import StorageError
from gateway.kernel.journal.changes import Lsn
from gateway_lmdb.batch import AT_ONCE, Batch, Written
from gateway_lmdb.batch_writer import BatchWriter
from gateway_lmdb.commit_times import CommitTimes
from gateway_lmdb.compaction import Compaction
from gateway_lmdb.environment import PASSING_ERRORS, RECORD_SEEN, TRANSACTION_SEEN, Environment
from gateway_lmdb.isolation import isolate
from gateway_lmdb.redo_log import ROOM, WINDOW_S, RedoLog
from gateway_lmdb.relay import Relay
from gateway_lmdb.reserve import MOST_WAITING, FreePageReserve
from gateway_lmdb.schema import highest_number
from gateway_lmdb.staged import Append
from gateway_lmdb.stream_batch import StreamBatch
from gateway_lmdb.threads import Queue

#: Commits, and bytes that they write, after which the writer renews the reserve and unmaps pages.
_MOST_UNTIDIED: Final = 16
_MOST_TOUCHED: Final = 2**20

#: Changes in the redo log that are written to the tables before their time: each touches a page in one transaction.
_MOST_PENDING: Final = 4096


class _ClosedWhileStalled(Exception):
    """The store was closed while it could not write."""


class Writer:
    """Commits appends in order.

    ``stage`` is called on any thread, ``stop`` on the kernel's; everything else, including the listener, on the
    writer's own. ``streams_committed`` is called there with committed stream changes. ``commit_times`` counts commits.
    """

    def __init__(
        self,
        environment: Environment,
        listener: Relay,
        retry_interval_s: float,
        streams_committed: Callable[[StreamBatch], None],
        redo: RedoLog | None = None,
    ) -> None:
        self._environment = environment
        self._listener = listener
        self._retry_interval_s = retry_interval_s
        threads = environment.threads
        self._staged: Queue[Append | None] = threads.queue()
        self._monotonic_s = threads.monotonic_s
        self._give_way = threads.give_way
        self._written_appends: deque[Append] = deque()  # large ones, no longer used
        self.commit_times = CommitTimes()
        self._stopping = threads.event()
        self._has_failed = False
        self._is_stalled = False
        self._reported = Lsn(0)
        self._batches = BatchWriter(environment.tables, environment.bursts)
        self._compaction: Compaction | None = None
        self._reserve = FreePageReserve(environment)
        self._touched = self._untidied = 0  # bytes and commits since ``_tidy`` did its work
        self._streams_committed = streams_committed
        if not environment.empty_spilled():
            self._reserve.release()
            environment.empty_spilled()
        self._redo = redo
        self._written = _written(environment)
        self._pending = Batch(self._written)  # what is in the redo log and not in the tables
        self._due_s: float | None = None  # when it is to be written to the tables
        self._thread = threads.start(self._run, "store-writer")

    def stage(self, append: Append) -> None:
        """Stage one append. Position 0 is for the engine's own changes, for which no caller waits."""
        if not self._has_failed:
            self._staged.put(append)

    def discard(self, append: Append) -> None:
        """Free an append that is durable, on the writer's thread if it is large. Called on the kernel's thread.

        Freeing the changes of a commit of 100,000 messages in one step would take 10 ms of a turn.
        """
        if len(append.changes) > AT_ONCE and not self._has_failed:
            self._written_appends.append(append)
            self.wake()

    def compact(self, compaction: Compaction) -> bool:
        """Start a compaction after the current batch; return ``False`` when one is in progress."""
        if self._compaction is not None or self._has_failed:
            return False
        self._compaction = compaction
        self.wake()
        return True

    def wake(self) -> None:
        """Make the thread run once more, even without changes to write. Called on any thread."""
        self.stage(Append(Lsn(0), ()))

    def stop(self) -> None:
        """Write the staged appends, and wait for the thread to end. A compaction in progress is cancelled."""
        self._stopping.set()
        self._staged.put(None)
        self._thread.join()
        if self._compaction is not None:
            self._compaction.cancel()

    def _run(self) -> None:
        try:
            while (batch := self._next_batch()) is not None:
                if not self._log(batch):
                    self._apply(batch)
                elif self._is_due():
                    self._apply(Batch(self._written))
            if self._due_s is not None:
                self._apply(Batch(self._written))
            self._end_era()
        except (_ClosedWhileStalled, lmdb.Error, StorageError) as error:
            self._fail(str(error))
        except Exception as error:  # the thread must report it, or the kernel would wait forever
            self._fail(f"{type(error).__name__}: {error}")
            raise

    # ---- The redo log -------------------------------------------------------------------------------------------

    def _log(self, batch: Batch) -> bool:
        """Write a small batch to the redo log, and report it durable; return ``False`` if it is to be applied at once.

        It is for the tables later, with what follows until then: a compaction and a stalled store need that now.
        """
        redo = self._redo
        if redo is None or self._compaction is not None or self._is_stalled or not redo.takes(batch):
            return False
        starts_s = self._monotonic_s()
        if len(batch):
            if not redo.append(batch):
                return False
            self.commit_times.add(self._monotonic_s() - starts_s, batch.size)
        if len(batch) or self._due_s is not None:
            if self._due_s is None:
                self._due_s = starts_s + WINDOW_S
            self._written = batch.written()
            self._pending.merge(batch)
            self._report(batch)
        else:
            self._report(batch, is_applied=True)
        self._tidy(batch)
        self._free(batch)
        return True

    def _is_due(self) -> bool:
        """Whether the changes in the redo log are to be written to the tables."""
        if self._due_s is None:
            return False
        return len(self._pending) >= _MOST_PENDING or self._monotonic_s() >= self._due_s

    def _end_era(self) -> None:
        """Leave a store that gateways without a redo log can read."""
        if self._redo is not None:
            self._redo.close()
            self._environment.end_era()

    def _apply(self, batch: Batch) -> None:
        """Write a batch to the tables, with the changes in the redo log, and report it.

        What is set aside is moved within the tables, so those changes must be there before.
        """
        if self._due_s is not None:
            if batch.asides:
                self._apply(Batch(self._written))
            else:
                self._pending.merge(batch)
                batch = self._pending
        redo = self._redo
        if redo is not None and (len(batch) or redo.is_nearly_full):
            batch.era = redo.next_era
        self._commit(batch)
        self._written = batch.written()
        self._pending, self._due_s = Batch(self._written), None
        if len(batch.streams):
            self._batches.committed()
            self._streams_committed(batch.streams)
        self._report(batch, is_applied=True)
        if redo is not None and batch.era:
            redo.begin(batch.era, has_room=self._environment.has_room(ROOM))
        self._tidy(batch)
        self._compact(batch)
        self._free(batch)

    def _report(self, batch: Batch, *, is_applied: bool = False) -> None:
        """Report what was left out, and that the batch is durable, and whether it is in the tables."""
        for refusal in batch.refusals:
            self._listener.on_refused(refusal)
        batch.refusals.clear()
        if batch.lsn:
            if is_applied:
                self._listener.on_applied(batch.lsn)
            if batch.lsn > self._reported:
                self._reported = batch.lsn
                self._listener.on_durable(batch.lsn)

    def _tidy(self, batch: Batch) -> None:
        """Renew the reserve and unmap pages, once for several small commits.

        The kernel's thread has just been told that the batch is durable, and must wait while this thread runs.
        """
        self._touched += batch.size + RECORD_SEEN * batch.deletes
        self._untidied += 1
        if self._untidied < _MOST_UNTIDIED and self._touched < _MOST_TOUCHED:
            return
        self._environment.count_read(self._touched + TRANSACTION_SEEN * self._untidied)
        self._touched = self._untidied = 0
        if not self._is_stalled:
            self._reserve.renew()
        self._environment.trim()

    def _free(self, batch: Batch) -> None:
        """Free written batches and appends that are large, a piece at a time."""
        if len(batch) > AT_ONCE and self._compaction is None:
            for _ in batch.emptying():
                self._give_way()
        while self._written_appends:
            changes = list(self._written_appends.popleft().changes)
            while changes:
                del changes[-AT_ONCE:]
                self._give_way()

    def _fail(self, reason: str) -> None:
        self._has_failed = True
        self._listener.on_failed(reason)

    # ---- Gathering ---------------------------------------------------------------------------------------------

    def _next_batch(self) -> Batch | None:
        """Wait for an append, and collect all that are staged; ``None`` once the store is closing.

        During a stall the batch may be empty: the disk may have space again without a change to write.
        """
        batch = Batch(self._written)
        try:
            first = self._staged.get(timeout=self._patience_s())
        except Empty:
            return batch
        if first is None:
            return None
        self._fold(batch, first)
        self._fold_staged(batch)
        return batch

    def _patience_s(self) -> float | None:
        """Return how long to wait for an append, in seconds."""
        if self._is_stalled:
            return self._retry_interval_s
        return None if self._due_s is None else max(0.0, self._due_s - self._monotonic_s())

    def _fold_staged(self, batch: Batch, *, beyond_bounds: bool = False) -> None:
        while beyond_bounds or not batch.is_full:
            try:
                append = self._staged.get_nowait()
            except Empty:
                return
            if append is None:
                self._staged.put(None)  # the last item: the next batch takes it again
                return
            self._fold(batch, append)

    def _fold(self, batch: Batch, append: Append) -> None:
        """Add an append to the batch, a piece at a time if it is large: the kernel's turns go on meanwhile."""
        changes = append.changes
        if len(changes) <= AT_ONCE:
            batch.fold(append)
            return
        for first in range(0, len(changes), AT_ONCE):
            batch.fold(Append(append.lsn, changes[first : first + AT_ONCE]))
            self._give_way()

    # ---- Committing --------------------------------------------------------------------------------------------

    def _commit(self, batch: Batch) -> None:
        """Write the batch, however long it takes.

        While the disk is full the batch collects all staged appends: messages acknowledged meanwhile need not be
        written, so a stall can end without more disk space. It ends when the next one has its reserve: else publishers
        would use the space of a few deletions, and then no deletion could be written.
        """
        reason = self._try(batch)
        if reason is not None and not self._is_stalled:
            self._is_stalled = True
            self._listener.on_stalled(reason)
        while reason is not None:
            is_last_try = self._stopping.wait(self._retry_interval_s)
            self._fold_staged(batch, beyond_bounds=True)
            if batch.deletes and batch.size <= MOST_WAITING:  # publishes alone would only fill the reserve
                self._reserve.release()
            reason = self._try(batch)
            if reason is not None and is_last_try:
                raise _ClosedWhileStalled(f"closed while the store could not write: {reason}")
        if self._is_stalled and self._reserve.is_back():
            self._is_stalled = False
            self._listener.on_resumed()

    def _try(self, batch: Batch) -> str | None:
        """Write the batch, or return why that is not possible for now. :raises lmdb.Error: for a final error.

        Changes that cannot be encoded are left out.
        """
        while True:
            try:
                if len(batch) or batch.era:
                    self._write(batch)
                return None
            except lmdb.MapFullError:
                return "the store has reached its maximum size"
            except MemoryError:
                return "out of memory"
            except lmdb.Error as error:
                if error.code in PASSING_ERRORS:
                    return str(error)
                raise
            except Exception:
                if not isolate(batch):
                    raise

    def _write(self, batch: Batch) -> None:
        starts_s = self._monotonic_s()
        with self._environment.write() as transaction:
            self._batches.write(transaction, batch)
        self.commit_times.add(self._monotonic_s() - starts_s, batch.size)

    # ---- Compacting --------------------------------------------------------------------------------------------

    def _compact(self, batch: Batch) -> None:
        """Pass a batch to a compaction in progress, and use the new file once it is ready."""
        compaction = self._compaction
        if compaction is not None and compaction.committed(batch):
            self._batches = BatchWriter(self._environment.tables, self._environment.bursts)
            self._compaction = None


def _written(environment: Environment) -> Written:
    tables = environment.tables
    with environment.read() as transaction:
        return Written(
            content=highest_number(transaction, tables.contents),
            enqueued=highest_number(transaction, tables.enqueued),
            spilled=highest_number(transaction, tables.spilled),
        )
