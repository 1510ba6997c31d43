"""A stream in a node's copy of the data, within the range that the leader vouches for."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from gateway.kernel.errors import GatewayError
from gateway.kernel.journal.changes import StreamSegment
from gateway.management.pipeline.vouched_range import LogPlace, VouchedRange


class CopyOutdated(GatewayError):
    """The copy is not, or not any more, of the epoch of the leader that vouches for a range."""


class CopyStore(Protocol):
    """The store of a copy, which grows while it is read."""

    def stream_chunks(self, stream_id: int, offset: int, most_bytes: int) -> bytes | None:
        """Return messages of a stream as chunks, as ``Store`` does."""
        ...

    def segment_path(self, stream_id: int, first: int) -> Path | None:
        """Return the file of a sealed segment, as ``Store`` does."""
        ...

    def sealed_segment(self, stream_id: int, offset: int) -> StreamSegment | None:
        """Return the sealed segment that has a message; ``None`` if there is none."""
        ...

    def close_segment_files(self) -> None:
        """Close the files that are open for reading: those of another epoch may have had the same names."""
        ...


class CopiedStream:
    """The part of a stream that a leader vouches for, in the ``store`` of a copy.

    ``place_now`` returns of which epoch the copy is at this moment. Each access asks it, because a later leader may
    use the number of a deleted stream again. The copy may lack the end of the range, and what was removed since.
    """

    def __init__(self, vouched: VouchedRange, store: CopyStore, place_now: Callable[[], LogPlace | None]) -> None:
        self._vouched = vouched
        self._store = store
        self._place_now = place_now

    @property
    def name(self) -> str:
        """The name of the stream."""
        return self._vouched.name

    @property
    def vhost_name(self) -> str:
        """The name of its virtual host."""
        return self._vouched.vhost

    @property
    def first_offset(self) -> int:
        """The first offset that may be read."""
        return self._vouched.first

    @property
    def durable_end(self) -> int:
        """The end of the messages that may be read (exclusive)."""
        return self._vouched.end

    def require_current(self) -> None:
        """Check that the copy is of the leader's epoch. :raises CopyOutdated: if not."""
        if self._place_now() != self._vouched.place:
            place = self._vouched.place
            raise CopyOutdated(f"the copy of cell {place.cell} is not of epoch {place.epoch} any more")

    def segment_of(self, offset: int) -> StreamSegment | None:
        """Return the sealed segment of the copy that has a message; ``None`` if there is none.

        :raises CopyOutdated: if the copy is of another epoch.
        """
        self.require_current()
        return self._store.sealed_segment(self._vouched.stream_id, offset)

    def segment_path(self, first: int) -> Path | None:
        """Return the file of the sealed segment that begins with ``first``; ``None`` if there is none.

        :raises CopyOutdated: if the copy is of another epoch.
        """
        self.require_current()
        return self._store.segment_path(self._vouched.stream_id, first)

    def read(self, offset: int, most_bytes: int) -> bytes | None:
        """Return chunks, the first one with the message at ``offset``; ``None`` if the copy does not have it.

        They may reach beyond ``durable_end``, and begin before ``first_offset``.

        :raises CopyOutdated: if the copy is of another epoch.
        :raises StorageError: if it cannot be read.
        """
        if not self.first_offset <= offset < self.durable_end:
            return None
        self.require_current()
        return self._store.stream_chunks(self._vouched.stream_id, offset, most_bytes)
