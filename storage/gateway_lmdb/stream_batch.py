"""The stream changes of a batch."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from gateway.kernel.journal.changes import Appended, Sealed, Truncated


@dataclass(frozen=True, slots=True)
class Filed:
    """A sealed segment of a stream was moved into a file: a change of the engine itself."""

    stream_id: int
    first: int
    end: int


StreamChange: TypeAlias = Appended | Sealed | Truncated | Filed


class StreamBatch:
    """The changes by stream. Messages added and truncated within the batch are still written, since this is rare."""

    __slots__ = ("_by_stream", "_count")

    def __init__(self) -> None:
        self._by_stream: dict[int, list[StreamChange]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[tuple[int, list[StreamChange]]]:
        """Iterate over the streams: id and changes of each."""
        return iter(self._by_stream.items())

    def merge(self, later: "StreamBatch") -> None:
        """Add later changes."""
        for _, changes in later:
            for change in changes:
                self.add(change)

    def add(self, change: StreamChange) -> None:
        """Add a change."""
        stream_id = change.segment.stream_id if isinstance(change, Sealed) else change.stream_id
        self._count += 1
        changes = self._by_stream.get(stream_id)
        if changes is None:
            self._by_stream[stream_id] = [change]
        else:
            changes.append(change)
