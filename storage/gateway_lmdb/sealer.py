"""The thread that moves sealed segments of streams into files, and removes the files of those that are gone.

A segment is in its file before its chunks leave the table, and a file is removed after its segment left the table: at
any moment, and after a crash at any moment, every message is in one of the two places. What a crash left half done is
begun anew, or cleaned up, at the next start.
"""

from collections.abc import Callable, Iterator
from queue import SimpleQueue
from threading import Event, Thread
from typing import Final, TypeAlias

from gateway.kernel.errors import StorageError
from gateway.kernel.journal.changes import EVERYTHING, Sealed, StreamSegment, Truncated
from gateway.kernel.messages.chunks import merge_chunks, read_head
from gateway_lmdb.environment import Environment
from gateway_lmdb.segment_files import SegmentFiles, write_file
from gateway_lmdb.stream_batch import Filed, StreamBatch
from gateway_lmdb.stream_tables import chunks_from, segment_at

#: How much is read from the table in one go, in bytes, and how large a chunk in a file is: readers find an offset in
#: a file by its chunks.
_PIECE: Final = 128 * 1024

Task: TypeAlias = Callable[[], None]


class Sealer:
    """Does its work in the order in which it is asked for. Every method is for the thread that commits or opens.

    :param filed: is told, on the sealer's thread, of a segment that is in a file.
    """

    def __init__(
        self, environment: Environment, files: SegmentFiles, filed: Callable[[Filed], None], retry_interval_s: float
    ) -> None:
        self._environment = environment
        self._files = files
        self._filed = filed
        self._retry_interval_s = retry_interval_s
        self._tasks: SimpleQueue[Task | None] = SimpleQueue()
        self._stopping = Event()
        self._thread = Thread(target=self._run, name="store-sealer", daemon=True)
        self._thread.start()

    def committed(self, batch: StreamBatch) -> None:
        """A batch is on disk: file what was sealed in it, remove the files of what was truncated."""
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
        """End after what is being done; the rest is found again at the next start."""
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
            except (OSError, StorageError):  # no space, or worse: what is in the table is safe there, so try again
                self._tasks.put(task)
                self._stopping.wait(self._retry_interval_s)

    def _write(self, segment: StreamSegment) -> None:
        """Write a segment's file, unless the segment is gone by now."""
        with self._environment.read() as transaction:
            found = segment_at(transaction, self._environment.tables, segment.stream_id, segment.first)
        if found is None or found[1]:
            return
        write_file(self._files.path(segment.stream_id, segment.first), self._pieces(segment))
        self._filed(Filed(segment.stream_id, segment.first, segment.end))

    def _pieces(self, segment: StreamSegment) -> Iterator[bytes]:
        """Yield the chunks of a segment, small ones merged. They end early where it is truncated meanwhile."""
        offset = segment.first
        while offset < segment.end:
            with self._environment.read() as transaction:
                chunks = chunks_from(
                    transaction, self._environment.tables, segment.stream_id, offset, _PIECE, segment.end
                )
            if not chunks:
                return
            merged = merge_chunks(chunks)
            self._environment.saw(len(merged))
            offset = read_head(merged).end
            yield merged
