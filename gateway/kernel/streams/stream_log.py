"""The log of a stream: its messages in order, with offsets, segments and durability.

Three invariants: offsets are unique and are never reused; only durable messages can be read; messages are removed only
at the front, by whole sealed segments.

A log refers to no queue and no consumer. Small steps of the hot path are written inline.
"""

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from gateway.kernel.journal.changes import EVERYTHING, Appended, Sealed, StreamSegment, Truncated
from gateway.kernel.messages.chunks import entries
from gateway.kernel.streams.append_run import OVERHEAD, AppendRun, RunPart
from gateway.kernel.streams.filters import DEFAULT_BLOOM_SIZE, Bloom, filter_value_of
from gateway.kernel.streams.tail import Tail

if TYPE_CHECKING:
    from pathlib import Path

    from gateway.kernel.journal.journal import Journal
    from gateway.kernel.journal.open_step import OpenStep
    from gateway.kernel.messages.message import HeaderFormat, Message

#: The default size of a segment in bytes.
SEGMENT_SIZE: Final = 32 * 1024 * 1024


class StreamLog:
    """The messages from ``first`` up to ``end``; those below ``durable_end`` can be read.

    ``id`` is its number in the store. ``segment_size`` is the size in bytes at which a segment is sealed. The callbacks
    in ``on_durable`` are called for new durable messages, those in ``on_sealed`` with each durably sealed segment, and
    those in ``on_run`` with the messages of a step that were appended now.
    """

    __slots__ = (
        "_active_bytes",
        "_active_first",
        "_active_first_ms",
        "_bloom",
        "_format",
        "_format_overhead",
        "_journal",
        "_last_ms",
        "_noted_lsn",
        "_sealed",
        "_sealing",
        "_undurable",
        "durable_end",
        "end",
        "first",
        "id",
        "is_bloom_known",
        "is_erased",
        "on_durable",
        "on_run",
        "on_sealed",
        "segment_size",
        "tail",
    )

    def __init__(
        self, id: int, journal: "Journal", segment_size: int = SEGMENT_SIZE, bloom_size: int = DEFAULT_BLOOM_SIZE
    ) -> None:
        self.id = id
        self.first = self.end = self.durable_end = 0
        self.segment_size = segment_size
        self.tail = Tail()
        self.on_durable: list[Callable[[], None]] = []
        self.on_sealed: list[Callable[[StreamSegment], None]] = []
        self.on_run: list[Callable[[AppendRun], None]] = []
        self.is_erased = False
        self._format: HeaderFormat | None = None  # that of the last message, and the size of one without its bytes
        self._format_overhead = OVERHEAD
        self._journal = journal
        self._last_ms = 0
        self._active_first = self._active_bytes = self._active_first_ms = 0
        self._bloom = Bloom(bloom_size)
        self.is_bloom_known = True
        self._sealed: deque[StreamSegment] = deque()
        self._sealing: deque[StreamSegment] = deque()
        self._noted_lsn = 0
        self._undurable: deque[int] = deque()

    def __len__(self) -> int:
        """Return the number of messages, durable or not."""
        return self.end - self.first

    # Writing

    def append(self, message: "Message") -> None:
        """Append a message; one of an open step is appended when the step is closed."""
        journal = self._journal
        if journal.entered_step is not None:
            self._run_of(journal.entered_step).add(message)
            return
        now_ms = journal.turn_ms or journal.now_ms
        if now_ms > self._last_ms:
            self._last_ms = now_ms
        else:
            now_ms = self._last_ms  # timestamps of a stream never decrease, even if the clock is set back
        header = message.header
        filter_value = header.filter_value
        if filter_value is None:
            filter_value = filter_value_of(header)
        if filter_value:
            self._bloom.add(filter_value)
        else:
            self._bloom.holds_unfiltered = True
        size = len(message.body) + len(header.stored_raw) + len(message.exchange) + len(message.routing_key)
        if header.format is not self._format:
            self._format, self._format_overhead = header.format, len(header.format.name) + OVERHEAD
        size += len(filter_value) + self._format_overhead
        offset = self.end
        self.end = offset + 1
        change = Appended(self.id, offset, now_ms, filter_value, message)
        journal.appended(change, size)
        if journal.lsn != self._noted_lsn:
            self._note(journal.lsn, offset)
        tail = self.tail
        if tail.is_kept:
            tail.changes.append(change)
            tail.bytes += len(message.body)
        if not self._active_bytes:
            self._active_first_ms = now_ms
        self._active_bytes += size
        if self._active_bytes >= self.segment_size:
            self.seal()

    def append_whole(self, messages: "list[Message]") -> bool:
        """Append messages at once; return ``False``, and append none, if the segment ends among them.

        A fault appends none of them.
        """
        run = AppendRun(self.id, self._bloom, self._append_run)
        for message in messages:
            run.add(message)
        (part, *others) = run.parts
        if others or self._active_bytes + part.size >= self.segment_size or self._journal.entered_step is not None:
            return False
        self._append_part(part)
        return True

    def _run_of(self, step: "OpenStep") -> AppendRun:
        """Return the messages of a step for this log."""
        run = step.appends.get(self.id)
        if run is None:
            run = step.appends[self.id] = AppendRun(self.id, self._bloom, self._append_run)
        assert isinstance(run, AppendRun)
        return run

    def _append_run(self, run: AppendRun) -> None:
        """Append the messages of a step, unless the log was erased meanwhile; the work for each of them is little."""
        if self.is_erased:
            return
        for part in run.parts:
            if self._active_bytes + part.size < self.segment_size:
                self._append_part(part)
            else:
                for change in part.changes:  # the segment ends after one of them
                    change.offset = self.end
                    self.append(change.message)
        for call in self.on_run:
            call(run)

    def _append_part(self, part: RunPart) -> None:
        """Append messages that all belong to the active segment."""
        journal = self._journal
        now_ms = self._last_ms = max(self._last_ms, journal.now_ms)
        first = offset = self.end
        for change in part.changes:
            change.offset = offset
            change.timestamp_ms = now_ms
            offset += 1
        self.end = offset
        self._bloom.add_part(part.mask, part.holds_unfiltered)
        journal.appended_run(part.changes, part.size)
        if journal.lsn != self._noted_lsn:
            self._note(journal.lsn, first)
        if self.tail.is_kept:
            self.tail.extend(part.changes, part.body_size)
        if not self._active_bytes:
            self._active_first_ms = now_ms
        self._active_bytes += part.size

    def _note(self, lsn: int, offset: int) -> None:
        """Register the first message of a turn: all messages of the turn become durable together."""
        self._noted_lsn = lsn
        self._undurable.append(offset)
        self._journal.when_durable(lsn, self._became_durable)

    def _became_durable(self) -> None:
        self._undurable.popleft()
        self.durable_end = self._undurable[0] if self._undurable else self.end
        self.tail.trim(self.durable_end)
        for call in self.on_durable:
            call()

    def seal(self) -> None:
        """Complete the segment that is being written, unless it is empty."""
        if self._active_first == self.end:
            return
        segment = self._active(is_sealed=True)
        journal = self._journal
        journal.record(Sealed(segment))
        self._sealed.append(segment)
        self._sealing.append(segment)
        journal.when_durable(journal.lsn, self._became_sealed)
        self._begin_segment(self.end)

    def _became_sealed(self) -> None:
        segment = self._sealing.popleft()
        for call in self.on_sealed:
            call(segment)

    def truncate(self, first: int) -> None:
        """Delete every durable sealed segment whose offsets are all below ``first``."""
        sealed = self._sealed
        end = self.first
        while sealed and sealed[0].end <= min(first, self.durable_end):
            end = sealed.popleft().end
        if end > self.first:
            self.first = end
            self._journal.record(Truncated(self.id, end))

    def erase(self) -> int:
        """Delete all messages and the log itself; return how many messages there were.

        The callbacks are removed too: they refer to the log's owner, and a deleted stream must not stay in a cycle.
        """
        count = len(self)
        self._sealed.clear()
        self.first = self.durable_end = self.end
        self._begin_segment(self.end)
        self._journal.record(Truncated(self.id, EVERYTHING))
        self.tail.keep(False)
        self.is_erased = True
        self.on_durable.clear()
        self.on_sealed.clear()
        self.on_run.clear()
        return count

    def _begin_segment(self, first: int) -> None:
        self._active_first = first
        self._active_bytes = self._active_first_ms = 0
        self._bloom.clear()
        self.is_bloom_known = True

    # Segments

    @property
    def segments(self) -> list[StreamSegment]:
        """The segments in order; the last one is being written and may be empty."""
        return [*self._sealed, self._active()]

    @property
    def oldest(self) -> StreamSegment:
        """The first segment."""
        return self._sealed[0] if self._sealed else self._active()

    @property
    def size_bytes(self) -> int:
        """The approximate size of the messages in the store."""
        return sum(segment.size_bytes for segment in self._sealed) + self._active_bytes

    def segment_of(self, offset: int) -> StreamSegment | None:
        """Return the segment that holds an offset; ``None`` if the offset does not exist."""
        if not self.first <= offset < self.end:
            return None
        if offset >= self._active_first:
            return self._active()
        low, high = 0, len(self._sealed)
        while low < high:  # inline, because bisect would compute a key for each comparison
            middle = (low + high) // 2
            if self._sealed[middle].end <= offset:
                low = middle + 1
            else:
                high = middle
        return self._sealed[low]

    def _active(self, *, is_sealed: bool = False) -> StreamSegment:
        last_ms = self._last_ms if self._active_first < self.end else 0
        bloom = self._bloom.packed() if self.is_bloom_known else b""
        return StreamSegment(
            self.id, self._active_first, self.end, self._active_bytes, self._active_first_ms, last_ms, is_sealed, bloom
        )

    def restore(self, segment: StreamSegment) -> None:
        """Add a segment found by recovery; they come in rising order, the unsealed one last."""
        if not self.end:
            self.first = segment.first
        self.end = self.durable_end = segment.end
        self._last_ms = max(self._last_ms, segment.last_ms)
        self._begin_segment(segment.end)
        if segment.is_sealed:
            self._sealed.append(segment)
        else:
            self._active_first, self._active_bytes = segment.first, segment.size_bytes
            self._active_first_ms = segment.first_ms
            self.is_bloom_known = not segment.size_bytes  # the Bloom filter of an unsealed segment is not stored

    def segment_path(self, first: int) -> "Path | None":
        """Return the file of the sealed segment that begins with ``first``; ``None`` if there is none."""
        return self._journal.segment_path(self.id, first)

    # Reading

    def read(self, offset: int, most_bytes: int) -> bytes | None:
        """Return durable chunks, the first one with the message at ``offset``; ``None`` if it does not exist.

        The result has at most ``most_bytes``, unless the first chunk alone is longer. It may reach a little beyond
        ``durable_end``, because durability is reported later. :raises StorageError: if the store cannot be read.
        """
        if not self.first <= offset < self.durable_end:
            return None
        return self._journal.stream_chunks(self.id, offset, most_bytes)

    def offset_at(self, timestamp_ms: int) -> int:
        """Return the offset of the first durable message at or after this time; ``durable_end`` if there is none."""
        low, high = self.first, self.durable_end
        for segment in self._sealed:
            if segment.last_ms >= timestamp_ms:
                high = min(high, segment.end)
                break
            low = segment.end
        while low < high:
            middle = (low + high) // 2
            chunk = self.read(middle, 1)
            if chunk is None:
                return high
            found = [(offset, arrived_ms) for offset, arrived_ms, _, _ in entries(chunk) if self.first <= offset < high]
            if found[-1][1] < timestamp_ms:
                low = found[-1][0] + 1
            elif found[0][1] >= timestamp_ms:
                high = found[0][0]
            else:
                return next(offset for offset, arrived_ms in found if arrived_ms >= timestamp_ms)
        return high
