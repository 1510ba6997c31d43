"""The thread that commits: takes what is staged, writes one transaction, reports, and starts again at once.

Self-clocking: while one transaction is being synced, the next batch gathers, so a lone append waits for one sync and
a burst shares one. What goes wrong is either waited out (the disk is full) or final; nothing in between.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable
from errno import EDQUOT, EFBIG, EIO, ENOMEM, ENOSPC
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Final, TypeVar

import lmdb

from gateway.kernel.contents import ContentWriter
from gateway.kernel.ports import StoreListener
from gateway.kernel.writable import encode_entity
from gateway_lmdb.batch import Batch, TableBatch, Written
from gateway_lmdb.environment import RECORD_SEEN, TRANSACTION_SEEN, Environment
from gateway_lmdb.isolation import isolate
from gateway_lmdb.quarantine import set_aside
from gateway_lmdb.records import encode_enqueued
from gateway_lmdb.schema import Transaction, highest_number, pack_number
from gateway_lmdb.staged import Append
from gateway_lmdb.stream_batch import StreamBatch
from gateway_lmdb.stream_writer import StreamWriter

#: Failures of the system that pass: the transaction is gone without a trace and can be written again. LMDB reports a
#: short write, the usual first sign of a full disk, as EIO; and a failed sync of data pages is harmless to retry,
#: because a retry writes every page anew instead of trusting what the failed attempt left in the page cache.
PASSING_ERRORS: Final = frozenset({ENOSPC, EDQUOT, EFBIG, EIO, ENOMEM})

T = TypeVar("T")


class _GivenUp(Exception):
    """The store was closed while it could not write."""


class Writer:
    """Commits appends in order.

    ``stage`` is called on any thread, ``stop`` on the kernel's; all else, and the listener, on the writer's own, where
    ``streams_committed`` is told what happened to streams once it is on disk.
    """

    def __init__(
        self,
        environment: Environment,
        listener: StoreListener,
        retry_interval_s: float,
        streams_committed: Callable[[StreamBatch], None],
    ) -> None:
        self._environment = environment
        self._listener = listener
        self._retry_interval_s = retry_interval_s
        self._staged: SimpleQueue[Append | None] = SimpleQueue()
        self._stopping = Event()
        self._has_failed = False
        self._encode_content = ContentWriter().encode
        self._streams = StreamWriter(environment.tables)
        self._streams_committed = streams_committed
        self._written = _written(environment)
        self._thread = Thread(target=self._run, name="store-writer", daemon=True)
        self._thread.start()

    def stage(self, append: Append) -> None:
        """Hand over one append. Position 0 is for the engine's own changes, which nobody waits for."""
        if not self._has_failed:
            self._staged.put(append)

    def stop(self) -> None:
        """Write what is staged, and wait for the thread to end."""
        self._stopping.set()
        self._staged.put(None)
        self._thread.join()

    def _run(self) -> None:
        try:
            while (batch := self._next_batch()) is not None:
                self._commit(batch)
                self._written = batch.written()
                for refusal in batch.refusals:
                    self._listener.on_refused(refusal)
                if len(batch.streams):
                    self._streams.committed()
                    self._streams_committed(batch.streams)
                if batch.lsn:
                    self._listener.on_durable(batch.lsn)
                self._environment.saw(TRANSACTION_SEEN + batch.size + RECORD_SEEN * batch.deletes)
                self._environment.trim()
        except (_GivenUp, lmdb.Error) as error:
            self._fail(str(error))
        except Exception as error:  # the seam of the thread: else the kernel would wait for it for ever
            self._fail(f"{type(error).__name__}: {error}")
            raise

    def _fail(self, reason: str) -> None:
        self._has_failed = True
        self._listener.on_failed(reason)

    # ---- Gathering ---------------------------------------------------------------------------------------------

    def _next_batch(self) -> Batch | None:
        """Wait for an append, and take all that is staged by then; ``None`` once the store is closing."""
        batch = Batch(self._written)
        first = self._staged.get()
        if first is None:
            return None
        batch.fold(first)
        self._fold_staged(batch)
        return batch

    def _fold_staged(self, batch: Batch, *, beyond_bounds: bool = False) -> None:
        while beyond_bounds or not batch.is_full:
            try:
                append = self._staged.get_nowait()
            except Empty:
                return
            if append is None:
                self._staged.put(None)  # it is the last: found again by the next batch
                return
            batch.fold(append)

    # ---- Committing --------------------------------------------------------------------------------------------

    def _commit(self, batch: Batch) -> None:
        """Write the batch, however long it takes.

        While the disk is full the batch gathers all there is: what is acknowledged meanwhile need not be written, so a
        stall can end by itself.
        """
        reason = self._try(batch)
        if reason is None:
            return
        self._listener.on_stalled(reason)
        while reason is not None:
            is_last_try = self._stopping.wait(self._retry_interval_s)
            self._fold_staged(batch, beyond_bounds=True)
            reason = self._try(batch)
            if reason is not None and is_last_try:
                raise _GivenUp(f"closed while the store could not write: {reason}")
        self._listener.on_resumed()

    def _try(self, batch: Batch) -> str | None:
        """Write the batch, or return why that is not possible for now. :raises lmdb.Error: when it never will be.

        What cannot be encoded is left out, and everything else is written.
        """
        while True:
            try:
                if len(batch):
                    self._write(batch)
                return None
            except lmdb.MapFullError:
                return "the store has reached its largest size"
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
        tables = self._environment.tables
        with self._environment.write() as transaction:
            for aside in batch.asides:
                set_aside(transaction, tables, aside)
            for key, put in batch.entities.items():
                if put is None:
                    transaction.delete(key, db=tables.entities)
                else:
                    transaction.put(key, put.record or encode_entity(put.entity), db=tables.entities)
            _write_table(transaction, tables.contents, batch.contents, self._encode_content)
            _write_table(transaction, tables.spilled, batch.spilled, self._encode_content)
            _write_table(transaction, tables.enqueued, batch.enqueued, encode_enqueued)
            self._streams.write(transaction, batch.streams)


def _write_table(
    transaction: Transaction, table: lmdb._Database, batch: TableBatch[T], encode: Callable[[T], bytes]
) -> None:
    """Delete in key order, then put: new numbers rise above all others, so they append to the last page.

    Both matter: appended pages are full instead of half full, and deleting in random order costs ten times as much.
    """
    with transaction.cursor(table) as cursor:
        for key in map(pack_number, sorted(batch.deletes)):
            if cursor.set_key(key):
                cursor.delete()
        rising = sorted(batch.puts)
        old = bisect_right(rising, batch.written)
        records = batch.puts
        cursor.putmulti(_encoded(rising[:old], records, encode))
        cursor.putmulti(_encoded(rising[old:], records, encode), append=True)


def _encoded(numbers: list[int], records: dict[int, T], encode: Callable[[T], bytes]) -> Iterable[tuple[bytes, bytes]]:
    """Encode one record at a time: a batch is never in memory twice, and other threads get their turn in between."""
    return ((pack_number(number), encode(records[number])) for number in numbers)


def _written(environment: Environment) -> Written:
    tables = environment.tables
    with environment.read() as transaction:
        return Written(
            content=highest_number(transaction, tables.contents),
            enqueued=highest_number(transaction, tables.enqueued),
            spilled=highest_number(transaction, tables.spilled),
        )
