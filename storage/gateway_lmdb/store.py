"""The LMDB store: stages changes on the kernel's thread, commits them on its own, and reports back.

Guarantees: what was reported survives a crash. The changes of one append survive together or not at all. ``append``
accesses no file, whatever the disk does.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import lmdb

from gateway.kernel.compiling import mypyc_attr
from gateway.kernel.errors import StorageError, UnreadableRecord
from gateway.kernel.journal.changes import (
    Appended,
    Change,
    Changes,
    Enqueued,
    Lsn,
    Put,
    Recovered,
    Sealed,
    Stored,
    StreamSegment,
    Truncated,
)
from gateway.kernel.journal.enqueued_run import EnqueuedRun
from gateway.kernel.journal.store import StoreListener
from gateway.kernel.journal.stored_changes import appended
from gateway.kernel.messages.chunks import entries
from gateway.kernel.messages.contents import ContentDecoder
from gateway.kernel.messages.stored_message import StoredMessage
from gateway_lmdb import recovery, stream_recovery
from gateway_lmdb.append_group import AppendGroup
from gateway_lmdb.commit_times import CommitTimes
from gateway_lmdb.compaction import Compaction, CompactionProgress, remove_unfinished
from gateway_lmdb.disk import SYSTEM_DISK, Disk
from gateway_lmdb.environment import DEFAULT_MAP_SIZE, RECORD_SEEN, Environment, Usage
from gateway_lmdb.quarantine import Quarantined, unreadable_message
from gateway_lmdb.recovery import FoundEntities
from gateway_lmdb.redo_log import RedoLog
from gateway_lmdb.relay import Relay
from gateway_lmdb.schema import Transaction, highest_number, pack_number
from gateway_lmdb.sealer import Sealer
from gateway_lmdb.segment_files import DIRECTORY, SegmentFiles
from gateway_lmdb.staged import Append, Staged, content_key
from gateway_lmdb.stream_batch import Filed, StreamBatch
from gateway_lmdb.stream_tables import chunks_from, first_of_stream, segment_at, segments_of_stream
from gateway_lmdb.threads import SYSTEM_THREADS, Threads
from gateway_lmdb.writer import Writer

#: The size of a piece in which the messages of a stream are read, in bytes.
_STREAM_BYTES: Final = 512 * 1024

#: The position of the engine's own changes, for which no caller waits.
_OUR_OWN: Final = Lsn(0)


@mypyc_attr(allow_interpreted_subclasses=True)
class LmdbStore:
    """A ``Store`` in a directory. Every method is called on the kernel's thread.

    ``orphans`` are the changes by which recovery removed messages of queues and streams that do not exist.

    :param path: the directory, created if missing; only one store at a time can open it.
    :param call_in_kernel: schedules a call on the kernel's thread, in order; called from any thread. With Twisted,
    ``reactor.callFromThread``.
    :param retry_interval_s: the time between attempts to write when the disk is full, in seconds.
    :param map_size: the maximum size of the file, in bytes. It uses address space only.
    :param on_compaction: called with each new state of a compaction, on the kernel's thread.
    :param call_later: for a copy whose changes are durable elsewhere: it is written in groups, see ``AppendGroup``.
    :param disk: the disk that it uses; a simulation passes its own, and ``threads`` with it.
    :raises StorageError: when the directory is in use or unusable, or a newer gateway wrote it.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        call_in_kernel: Callable[[Callable[[], None]], None],
        retry_interval_s: float = 0.5,
        map_size: int = DEFAULT_MAP_SIZE,
        on_compaction: Callable[[CompactionProgress], None] = lambda progress: None,
        call_later: Callable[[float, Callable[[], None]], object] | None = None,
        disk: Disk = SYSTEM_DISK,
        threads: Threads = SYSTEM_THREADS,
    ) -> None:
        self._environment = Environment(Path(path), map_size, disk=disk, threads=threads)
        remove_unfinished(Path(path), disk)
        self._staged = Staged(lambda append: self._writer.discard(append))
        self._relay = Relay(call_in_kernel, self._staged.applied)
        self._appended = Lsn(0)
        self._is_closed = False
        self.orphans: list[Change] = []
        self._unreadable_ids: set[int] = set()
        self._decoder = ContentDecoder()
        self._call_in_kernel = call_in_kernel
        self._on_compaction = on_compaction
        self._compaction: Compaction | None = None
        try:
            self._highest_ids = self._read_highest_ids()
        except StorageError:
            self._environment.close()
            raise
        self._files = SegmentFiles(Path(path) / DIRECTORY, disk)
        redo = RedoLog(Path(path), disk) if disk.is_synced and call_later is None else None
        self._writer = Writer(self._environment, self._relay, retry_interval_s, self._streams_committed, redo)
        self._group = None if call_later is None else AppendGroup(self._writer.stage, call_later)
        self._sealer = Sealer(self._environment, self._files, self._filed, retry_interval_s)

    def listen(self, listener: StoreListener) -> None:
        """Set the listener. Called once, before the first ``append``."""
        self._relay.listen(listener)

    def append(self, changes: Changes) -> Lsn:
        """Stage ``changes`` as one step; the caller must not modify them afterwards."""
        lsn = self._appended = Lsn(self._appended + 1)
        self._stage(Append(lsn, changes))
        return lsn

    @property
    def commit_times(self) -> CommitTimes:
        """The durations of the commits since the store was opened."""
        return self._writer.commit_times

    def messages(self, message_ids: Sequence[int]) -> list[StoredMessage | None]:
        """Read contents, staged or durable, in the given order; ``None`` for one that is not stored."""
        seen = 0
        found: list[StoredMessage | None] = []
        bursts = self._environment.bursts
        has_begun = bursts.begin()
        try:
            with self._environment.read() as transaction:
                for message_id in message_ids:
                    content = self._content(transaction, message_id)
                    found.append(content)
                    if content is not None:
                        seen += max(RECORD_SEEN, len(content.body))
        finally:
            bursts.end(has_begun)
        self._count_read(seen)
        return found

    def _count_read(self, size: int) -> None:
        if self._environment.count_read(size):
            self._writer.wake()  # it trims between its transactions

    def _stage(self, append: Append) -> None:
        self._staged.add(append)
        if self._group is None:
            self._writer.stage(append)
        else:
            self._group.add(append)

    def _content(self, transaction: Transaction, message_id: int) -> StoredMessage | None:
        tables = self._environment.tables
        content = self._content_in(transaction, tables.contents, message_id, is_spilled=False)
        return content or self._content_in(transaction, tables.spilled, message_id, is_spilled=True)

    def _content_in(
        self, transaction: Transaction, table: lmdb._Database, message_id: int, *, is_spilled: bool
    ) -> StoredMessage | None:
        is_staged, content = self._staged.find(content_key(message_id, is_spilled))
        if is_staged:
            return content
        record = transaction.get(pack_number(message_id), db=table)
        return None if record is None else self._decoded(message_id, record)

    def _decoded(self, message_id: int, record: bytes) -> StoredMessage | None:
        """Decode a record; an unreadable one is set aside, and its message counts as lost."""
        try:
            return self._decoder.decode(record)
        except UnreadableRecord as error:
            if message_id not in self._unreadable_ids:
                self._unreadable_ids.add(message_id)
                aside = unreadable_message(message_id, str(error))
                self._stage(Append(_OUR_OWN, (aside,)))
                self._relay.on_set_aside(aside.as_change())
            return None

    # Streams

    def stream_chunks(self, stream_id: int, offset: int, most_bytes: int) -> bytes | None:
        """Read durable messages of a stream as chunks, from the table or a file."""
        tables = self._environment.tables
        with self._environment.read() as transaction:
            chunks = chunks_from(transaction, tables, stream_id, offset, most_bytes)
            found = None if chunks else segment_at(transaction, tables, stream_id, offset)
        if chunks:
            data = b"".join(chunks)
            self._count_read(len(data))
            return data
        return None if found is None else self._files.read(stream_id, found[0].first, offset, most_bytes)

    def segment_path(self, stream_id: int, first: int) -> Path | None:
        """Return the file of a sealed segment, ``None`` while it has none."""
        with self._environment.read() as transaction:
            found = segment_at(transaction, self._environment.tables, stream_id, first)
        is_filed = found is not None and found[0].first == first and found[1]
        return self._files.path(stream_id, first) if is_filed else None

    def sealed_segment(self, stream_id: int, offset: int) -> StreamSegment | None:
        """Return the durable sealed segment that has a message; ``None`` if there is none."""
        with self._environment.read() as transaction:
            found = segment_at(transaction, self._environment.tables, stream_id, offset)
        return None if found is None else found[0]

    def close_segment_files(self) -> None:
        """Close the files of segments that are open for reading; they are opened again when they are needed."""
        self._files.close()

    def _streams_committed(self, batch: StreamBatch) -> None:
        self._sealer.committed(batch)

    def _filed(self, filed: Filed) -> None:
        self._writer.stage(Append(_OUR_OWN, (filed,)))

    # Starting and stopping

    def recover(self) -> Iterator[Recovered]:
        """Yield the durable data, before the first ``append``."""
        for each in self._recovered(recovery.enqueued(self._environment)):
            assert not isinstance(each, EnqueuedRun)  # these are yielded one by one
            yield each

    def recover_runs(self) -> Iterator[Recovered | EnqueuedRun]:
        """Yield the durable data, before the first ``append``, with messages in runs."""
        return self._recovered(recovery.enqueued_runs(self._environment))

    def _recovered(self, places: Iterator[EnqueuedRun | Enqueued | Quarantined]) -> Iterator[Recovered | EnqueuedRun]:
        found = FoundEntities()
        for aside in recovery.set_aside(self._environment, found):
            yield aside.as_change()
        unreadable: list[Quarantined] = []
        for entity in recovery.entities(self._environment, found):
            if isinstance(entity, Quarantined):
                unreadable.append(entity)
                yield recovery.as_change(self._environment, entity)
            else:
                yield Put(entity)
        self._stage(Append(_OUR_OWN, unreadable))
        yield from self._recover_streams(found)
        orphans: list[Enqueued] = []
        for place in places:
            if isinstance(place, Quarantined):
                self._stage(Append(_OUR_OWN, (place,)))
                yield place.as_change()
            elif found.keeps(place.queue_id):
                yield place
            elif isinstance(place, EnqueuedRun):
                orphans.extend(place.each())
            else:
                orphans.append(place)
        removals = recovery.cleanup(self._environment, orphans, found.keeps)
        self.orphans += removals
        self._stage(Append(_OUR_OWN, removals))

    def durable_records(
        self, stream_ends: Mapping[int, int], last_message_id: int, last_position: int
    ) -> Iterator[Put | Stored | Enqueued | Truncated | Appended | Sealed]:
        """Yield what is durable, while the store is in use: entities, contents by id, queue entries by position.

        Contents and queue entries end with these numbers. Then the streams, up to an offset (exclusive). What is set
        aside or unreadable is left out. No transaction is held between two records.
        """
        for entity in recovery.entities(self._environment, FoundEntities()):
            if not isinstance(entity, Quarantined):
                yield Put(entity)
        for content in recovery.contents(self._environment):
            if content.message_id > last_message_id:
                break
            yield content
        for enqueued in recovery.enqueued(self._environment):
            if isinstance(enqueued, Enqueued):
                if enqueued.position > last_position:
                    break
                yield enqueued
        for stream_id, end in stream_ends.items():
            yield from self._stream_records(stream_id, end)

    def _stream_records(self, stream_id: int, end: int) -> Iterator[Truncated | Appended | Sealed]:
        """Yield the changes that make a stream up to an offset."""
        tables = self._environment.tables
        with self._environment.read() as transaction:
            sealed = {segment.end: segment for segment, _ in segments_of_stream(transaction, tables, stream_id)}
            first = first_of_stream(transaction, tables, stream_id)
        offset = min((segment.first for segment in sealed.values()), default=first)
        yield Truncated(stream_id, offset)
        while offset < end and (data := self.stream_chunks(stream_id, offset, _STREAM_BYTES)) is not None:
            for at, timestamp_ms, value, content in entries(data, offset):
                if at >= end:
                    return
                yield appended(stream_id, at, timestamp_ms, value, content)
                offset = at + 1
                if offset in sealed:
                    yield Sealed(sealed[offset])

    def _recover_streams(self, kept: FoundEntities) -> Iterator[Recovered]:
        found = stream_recovery.find(self._environment, self._files, kept)
        yield from found.segments
        self.orphans += found.truncations
        self._stage(Append(_OUR_OWN, found.truncations))
        self._sealer.clean(found.firsts_by_stream)
        for segment in found.to_file:
            self._sealer.file(segment)

    # Compaction

    @property
    def usage(self) -> Usage:
        """The size of the file and of its used part. :raises StorageError: when they cannot be read."""
        return self._environment.usage()

    @property
    def compaction(self) -> CompactionProgress | None:
        """The progress of the last compaction; ``None`` without one since the start."""
        return None if self._compaction is None else self._compaction.progress

    def compact(self) -> bool:
        """Start a compaction of the file; return ``False`` while one is in progress."""
        compaction = Compaction(self._environment, self._writer.wake, self._report)
        if not self._writer.compact(compaction):
            return False
        self._compaction = compaction
        return True

    def _report(self, progress: CompactionProgress) -> None:
        self._call_in_kernel(lambda: self._on_compaction(progress))

    # Stopping

    def record_count(self) -> int:
        """Return the number of records that ``recover`` reads."""
        tables = self._environment.tables
        with self._environment.read() as transaction:
            read = (tables.entities, tables.streams, tables.enqueued)
            return sum(int(transaction.stat(table)["entries"]) for table in read)

    def highest_ids(self) -> tuple[int, int]:
        """Return the highest position and message id at the time the store was opened."""
        return self._highest_ids

    def snapshot(self, directory: str | Path) -> None:
        """Write a compact copy of the durable data into an existing, empty directory, while the store is in use.

        Stream files are linked before and after: a segment that is moved into a file meanwhile is in one of both
        copies.
        """
        target = SegmentFiles(Path(directory) / DIRECTORY, self._environment.disk)
        self._files.link_into(target)
        self._environment.snapshot(Path(directory))
        self._files.link_into(target)

    def close(self) -> None:
        """Commit everything staged, report it, and close the files.

        A store that cannot write now reports ``on_failed`` instead, and loses what it did not report. Closing twice is
        harmless.
        """
        if self._is_closed:
            return
        self._is_closed = True
        self._sealer.stop()
        if self._group is not None:
            self._group.hand_over()
        self._writer.stop()
        self._relay.deliver()
        self._files.close()
        self._environment.close()

    def _read_highest_ids(self) -> tuple[int, int]:
        tables = self._environment.tables
        with self._environment.read() as transaction:
            return highest_number(transaction, tables.enqueued), highest_number(transaction, tables.contents)
