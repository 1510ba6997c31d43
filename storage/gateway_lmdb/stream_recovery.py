"""Recovery of streams: their segments, those to be moved into files, and the remains of deleted streams."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from gateway.kernel.errors import StorageError
from gateway.kernel.journal.changes import EVERYTHING, StreamSegment, Truncated
from gateway_lmdb import stream_tables
from gateway_lmdb.environment import Environment
from gateway_lmdb.recovery import FoundEntities
from gateway_lmdb.segment_files import SegmentFiles


@dataclass(slots=True)
class FoundStreams:
    """The recovered streams.

    ``segments`` are those of all streams, in order; ``to_file`` those without a file; ``truncations`` remove deleted
    streams.
    """

    segments: list[StreamSegment] = field(default_factory=list)
    to_file: list[StreamSegment] = field(default_factory=list)
    truncations: list[Truncated] = field(default_factory=list)

    @property
    def firsts_by_stream(self) -> dict[int, set[int]]:
        """The first offsets of the segments that may have files, by stream."""
        firsts: dict[int, set[int]] = {}
        for segment in self.segments:
            firsts.setdefault(segment.stream_id, set()).add(segment.first)
        return firsts


def find(environment: Environment, files: SegmentFiles, entities: FoundEntities) -> FoundStreams:
    """Find everything in the tables that belongs to streams among these entities.

    Streams whose records are set aside keep their data; the kernel skips their segments.

    :raises StorageError: when a segment is missing although an earlier one exists.
    """
    found = FoundStreams()
    with environment.read() as transaction:
        kept = sorted(stream_tables.stream_ids(transaction, environment.tables))
    for stream_id in kept:
        if not entities.keeps(stream_id):
            found.truncations.append(Truncated(stream_id, EVERYTHING))
            continue
        sealed = list(_sealed(environment, files, stream_id, found))
        found.segments += sealed
        found.segments.append(_active(environment, stream_id, sealed[-1].end if sealed else 0))
    return found


def _sealed(
    environment: Environment, files: SegmentFiles, stream_id: int, found: FoundStreams
) -> Iterator[StreamSegment]:
    """Yield the sealed segments of a stream.

    If the files of the first ones are missing, the stream was truncated while it was copied.
    """
    with environment.read() as transaction:
        rows = list(stream_tables.segments_of_stream(transaction, environment.tables, stream_id))
    has_begun = False
    for segment, is_filed in rows:
        if is_filed and not files.exists(stream_id, segment.first):
            if has_begun:
                raise StorageError(
                    f"a segment of stream {stream_id} is missing: {files.path(stream_id, segment.first)}"
                )
            found.truncations.append(Truncated(stream_id, segment.end))
            continue
        has_begun = True
        if not is_filed:
            found.to_file.append(segment)
        yield segment


def _active(environment: Environment, stream_id: int, first: int) -> StreamSegment:
    """Return the active segment, which follows the sealed ones; it may be empty."""
    with environment.read() as transaction:
        end = stream_tables.end_of_stream(transaction, environment.tables, stream_id)
        first = max(first, stream_tables.first_of_stream(transaction, environment.tables, stream_id))
    size = first_ms = last_ms = 0
    with environment.view() as view:
        for head in stream_tables.heads_from(view, environment.tables, stream_id, first):
            first_ms = first_ms or head.first_ms
            size += head.entries_size
            last_ms = head.last_ms
    return StreamSegment(stream_id, first, end, size, first_ms, last_ms, is_sealed=False)
