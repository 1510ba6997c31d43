"""The ends of streams: of what was appended, and of what is durable in the log."""

from collections import deque

from gateway.kernel.journal.changes import EVERYTHING, Appended, Changes, Lsn, StreamSegment, Truncated
from gateway.kernel.messages.chunks import chunk_heads, encode_chunk, entries


class StreamEnds:
    """The streams of one store. ``ends`` has the next offset of each, after all steps.

    The local copy may be ahead of the log. What only the copy has is lost with the node, so readers must not see it.
    """

    def __init__(self) -> None:
        self.ends: dict[int, int] = {}
        #: By stream, the steps that are not durable, each with the first offset that it appended.
        self._undurable: dict[int, deque[tuple[Lsn, int]]] = {}
        self._unwritten: deque[Lsn] = deque()

    def found(self, segment: StreamSegment) -> None:
        """Note a segment that recovery found."""
        self.ends[segment.stream_id] = max(segment.end, self.ends.get(segment.stream_id, 0))

    def note(self, lsn: Lsn, changes: Changes) -> None:
        """Note a step with changes of streams, and what it appends."""
        self._unwritten.append(lsn)
        for change in changes:
            if isinstance(change, Appended):
                if change.offset < self.ends.get(change.stream_id, 0):
                    continue  # appended twice is the same as once
                self.ends[change.stream_id] = change.offset + 1
                steps = self._undurable.setdefault(change.stream_id, deque())
                if not steps or steps[-1][0] != lsn:
                    steps.append((lsn, change.offset))
            elif isinstance(change, Truncated) and change.first == EVERYTHING:
                self.ends.pop(change.stream_id, None)

    def written(self, watermark: Lsn) -> None:
        """Note that the local copy has the steps up to a position."""
        while self._unwritten and self._unwritten[0] <= watermark:
            self._unwritten.popleft()

    def readable(self, logged: Lsn) -> Lsn:
        """Return how far the steps in the log may be reported: before the first one that readers do not find yet."""
        return min(logged, Lsn(self._unwritten[0] - 1)) if self._unwritten else logged

    def reported(self, watermark: Lsn) -> None:
        """Note that the steps up to a position are durable in the log."""
        for stream_id in list(self._undurable):
            steps = self._undurable[stream_id]
            while steps and steps[0][0] <= watermark:
                steps.popleft()
            if not steps:
                del self._undurable[stream_id]

    def durable_part(self, stream_id: int, offset: int, data: bytes) -> bytes | None:
        """Return chunks from an offset on without what is not durable; ``None`` if nothing is left."""
        steps = self._undurable.get(stream_id)
        if not steps:
            return data
        end = steps[0][1]
        if offset >= end:
            return None
        whole = 0
        for head in chunk_heads(data):
            if head.end > end:
                chunk = data[whole : whole + head.size]
                kept = [(moment_ms, value, content) for at, moment_ms, value, content in entries(chunk) if at < end]
                return data[:whole] + (encode_chunk(head.first, kept) if kept else b"")
            whole += head.size
        return data
