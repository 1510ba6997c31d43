"""A thread that moves sealed segments of streams into files, and removes the files of deleted segments.

A segment is in its file before its chunks are deleted from the table, and a file is removed after its segment is
deleted from the table. So every message is always in one of the two places, even after a crash. The next start
continues or cleans up what a crash interrupted.
"""

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from gateway.kernel.errors import StorageError
from gateway.kernel.journal.changes import EVERYTHING, Sealed, StreamSegment, Truncated
from gateway.kernel.messages.chunks import merge_chunks, read_head
from gateway_lmdb.environment import Environment
from gateway_lmdb.segment_files import SegmentFiles
from gateway_lmdb.stream_batch import Filed, StreamBatch
from gateway_lmdb.stream_tables import chunks_from, segment_at
from gateway_lmdb.threads import Queue

#: The bytes read from the table at once, and the size of a chunk in a file, by which readers find an offset.
_PIECE: Final = 128 * 1024

Task: TypeAlias = Callable[[], None]


class Sealer:
    """Performs its tasks in order. All methods are called on the thread that commits or opens.

    :param filed: called on the sealer's thread with each segment that is in a file.
    """

    def __init__(
        self, environment: Environment, files: SegmentFiles, filed: Callable[[Filed], None], retry_interval_s: float
    ) -> None:
        self._environment = environment
        self._files = files
        self._filed = filed
        self._retry_interval_s = retry_interval_s
        self._tasks: Queue[Task | None] = environment.threads.queue()
        self._stopping = environment.threads.event()
        self._thread = environment.threads.start(self._run, "store-sealer")

    def committed(self, batch: StreamBatch) -> None:
        """Write files for the segments sealed in a committed batch, and remove those of truncated segments."""
        for _, changes in batch:
            for change in changes:
                if isinstance(change, Sealed):
                    self.file(change.segment)
                elif isinstance(change, Truncated):
                    self._remove(change.stream_id, change.first)

    def file(self, segment: StreamSegment) -> None:
        """Move a segment into a file."""
        self._tasks.put(lambda: self._write(segment))

    def clean(self, firsts_by_stream: dict[int, set[int]]) -> None:
        """Remove every file that belongs to none of these segments."""
        self._tasks.put(lambda: self._files.clean(firsts_by_stream))

    def stop(self) -> None:
        """Stop after the current task; the next start finds the rest again."""
        self._stopping.set()
        self._tasks.put(None)
        self._thread.join()

    def _remove(self, stream_id: int, first: int) -> None:
        if first == EVERYTHING:
            self._tasks.put(lambda: self._files.remove_stream(stream_id))
        else:
            self._tasks.put(lambda: self._files.remove(stream_id, first))

    def _run(self) -> None:
        while (task := self._tasks.get()) is not None and not self._stopping.is_set():
            try:
                task()
            except (OSError, StorageError):  # no disk space, for example: the data is still in the table, so try again
                self._tasks.put(task)
                self._stopping.wait(self._retry_interval_s)

    def _write(self, segment: StreamSegment) -> None:
        """Write a segment's file, unless the segment was deleted."""
        with self._environment.read() as transaction:
            found = segment_at(transaction, self._environment.tables, segment.stream_id, segment.first)
        if found is None or found[1]:
            return
        self._files.write(self._files.path(segment.stream_id, segment.first), self._pieces(segment))
        self._filed(Filed(segment.stream_id, segment.first, segment.end))

    def _pieces(self, segment: StreamSegment) -> Iterator[bytes]:
        """Yield the chunks of a segment, with small ones merged; stop early if it is truncated meanwhile."""
        offset = segment.first
        while offset < segment.end:
            with self._environment.read() as transaction:
                chunks = chunks_from(
                    transaction, self._environment.tables, segment.stream_id, offset, _PIECE, segment.end
                )
            if not chunks:
                return
            merged = merge_chunks(chunks)
            self._environment.count_read(len(merged))
            offset = read_head(merged).end
            yield merged
