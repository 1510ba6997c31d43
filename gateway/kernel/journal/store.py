"""The store interface (port) of the kernel. All calls are made on the kernel's thread."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from gateway.kernel.journal.changes import Changes, Lsn, Recovered, SetAside
from gateway.kernel.journal.enqueued_run import EnqueuedRun
from gateway.kernel.messages.stored_message import StoredMessage

if TYPE_CHECKING:
    from pathlib import Path


class StoreListener(Protocol):
    """Callbacks that report the store's progress, always on the kernel's thread and never from inside ``append``."""

    def on_durable(self, watermark: Lsn) -> None:
        """Report that everything up to ``watermark`` is durable; watermarks only rise."""
        ...

    def on_refused(self, reason: str) -> None:
        """Report that a change could not be written and was left out: pending confirms must not be positive.

        Called before the watermark of that change.
        """
        ...

    def on_set_aside(self, aside: SetAside) -> None:
        """Report that a record could not be read and was quarantined."""
        ...

    def on_stalled(self, reason: str) -> None:
        """Report that the store cannot write for now (the disk is full, an I/O error); it retries by itself."""
        ...

    def on_resumed(self) -> None:
        """Report that the store writes again after ``on_stalled``."""
        ...

    def on_failed(self, reason: str) -> None:
        """Report, once, that the store has failed permanently: nothing above the last watermark will become durable."""
        ...


class Store(Protocol):
    """An ordered log of changes that becomes durable in batches.

    ``append`` never blocks and never fails: it stages the changes, in order, and returns the position at which they
    will be durable: 1 for the first call, one more for each further call. The store reports progress to its listener.
    It may lose staged changes that it has not reported, but nothing that it has. A message whose ``Dequeued`` is staged
    before its ``Enqueued`` was written need not be written at all, and likewise ``Stored`` and ``Discarded``.
    """

    def listen(self, listener: StoreListener) -> None:
        """Set the listener. Called once, before the first ``append``."""
        ...

    def append(self, changes: Changes) -> Lsn:
        """Stage ``changes`` as one step: after a crash all of them are there, or none.

        The store owns the sequence from now on; the caller must not change it.
        """
        ...

    def messages(self, message_ids: Sequence[int]) -> list[StoredMessage | None]:
        """Return contents, staged or durable, in the order of the ids; ``None`` where nothing is stored."""
        ...

    def stream_chunks(self, stream_id: int, offset: int, most_bytes: int) -> bytes | None:
        """Return durable messages of a stream, as consecutive chunks (see ``chunks``).

        The first chunk holds the message at ``offset``. The result has at most ``most_bytes``, unless the first chunk
        alone is longer. ``None`` if that message does not exist or is not durable yet. The result may include a few
        durable messages beyond the last reported watermark.

        :raises StorageError: if it cannot be read.
        """
        ...

    def segment_path(self, stream_id: int, first: int) -> "Path | None":
        """Return the file of the sealed segment that begins with ``first``: consecutive chunks.

        ``None`` while it is not in a file; some stores have none. The file does not change. It is deleted some time
        after the segment was truncated, together with all files beside it whose names begin with the same number.
        """
        ...

    def recover(self) -> Iterator[Recovered]:
        """Yield what was durable when the store was opened, before the first ``append``.

        The order is: all ``Put``, after a ``SetAside`` for each quarantined record (a record found unreadable later may
        follow later); the segments of one stream after the other, the unsealed one last; every ``Enqueued`` in rising
        position. There is no ``Stored``: contents are read with ``messages`` when needed. Spilled contents of the last
        run are deleted. A stream that was ever appended to has one unsealed segment, maybe empty, so that it continues
        at its end.
        """
        ...

    def recover_runs(self) -> Iterator[Recovered | EnqueuedRun]:
        """Yield what ``recover`` yields; many messages of one queue may come as a run.

        The messages of each queue come in rising position, those of different queues in any order.
        """
        ...

    def record_count(self) -> int:
        """Return about how many changes ``recover`` will yield, for showing progress."""
        ...

    def highest_ids(self) -> tuple[int, int]:
        """Return the highest position and message id found by recovery; new ones start above."""
        ...

    def close(self) -> None:
        """Make everything staged durable, report it, and release the files."""
        ...
