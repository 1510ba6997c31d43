"""What the kernel needs of the world: a clock, a store, what plugins supply. All is called on the kernel's thread."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from gateway.kernel.journal.changes import Changes, Lsn, Recovered, SetAside
from gateway.kernel.messages.stored_message import StoredMessage

if TYPE_CHECKING:
    from pathlib import Path


class StoreListener(Protocol):
    """Who hears how far the store got. Every call comes on the kernel's thread, never from inside ``append``."""

    def on_durable(self, watermark: Lsn) -> None:
        """Everything up to ``watermark`` survives a crash from now on; watermarks only rise."""
        ...

    def on_refused(self, reason: str) -> None:
        """A change could not be written and was left out: what waits for the store now must not be called safe.

        Comes before the watermark of that change.
        """
        ...

    def on_set_aside(self, aside: SetAside) -> None:
        """A record could not be read back and is kept aside from now on."""
        ...

    def on_stalled(self, reason: str) -> None:
        """The store cannot write for now (the disk is full, an I/O error) and tries again by itself."""
        ...

    def on_resumed(self) -> None:
        """The store writes again after ``on_stalled``."""
        ...

    def on_failed(self, reason: str) -> None:
        """The store gave up, once and for good: nothing above the last watermark will ever be durable."""
        ...


class Store(Protocol):
    """An ordered log of changes that becomes durable in batches.

    ``append`` never blocks and never fails: it stages the changes, in order, and returns the position at which they
    will be durable: 1 for the first call, one more for each further call. The store then reports progress to its
    listener. Losing the tail that was staged but not reported is allowed; losing anything reported is not. A message
    whose ``Dequeued`` is staged before its ``Enqueued`` was written need not be written at all, and likewise ``Stored``
    and ``Discarded``.
    """

    def listen(self, listener: StoreListener) -> None:
        """Name the listener. Called once, before the first ``append``."""
        ...

    def append(self, changes: Changes) -> Lsn:
        """Stage ``changes`` as one step: after a crash all of them are there, or none.

        The sequence is the store's from now on; the caller does not touch it again.
        """
        ...

    def messages(self, message_ids: Sequence[int]) -> list[StoredMessage | None]:
        """Read contents back, staged or durable, in the order asked for; ``None`` where nothing is stored."""
        ...

    def stream_chunks(self, stream_id: int, offset: int, most_bytes: int) -> bytes | None:
        """Read durable messages of a stream back, as chunks (see ``chunks``) that follow each other.

        The first of them holds the message at ``offset``. There are no more than ``most_bytes``, unless that one alone
        is longer. ``None`` where no such message is, or is not durable yet. What is there may be a little more than was
        reported so far.

        :raises StorageError: when it cannot be read.
        """
        ...

    def segment_path(self, stream_id: int, first: int) -> "Path | None":
        """Return the file that holds the sealed segment beginning with ``first``: chunks, one behind the other.

        ``None`` while it is not in a file, which in some stores it never is. The file does not change; it goes some
        time after the segment was truncated, and with it all files beside it that begin with the same number.
        """
        ...

    def recover(self) -> Iterator[Recovered]:
        """Yield what was durable when the store was opened, before the first ``append``.

        All ``Put`` come first, behind a ``SetAside`` for each record that is kept aside (one that is found unreadable
        later may come later), then the segments of one stream after the other, the one that is not sealed last, then
        every ``Enqueued`` in rising position. No ``Stored``: contents are read with ``messages`` when needed. Spilled
        contents of the last run are gone. A stream that was ever appended to has one unsealed segment, an empty one if
        need be, so that it goes on where it ended.
        """
        ...

    def record_count(self) -> int:
        """Return about how many changes ``recover`` yields; asked before it, for showing progress."""
        ...

    def highest_ids(self) -> tuple[int, int]:
        """Return the highest position and message id found by recovery; new ones start above them."""
        ...

    def close(self) -> None:
        """Make everything staged durable, report it, and release the files."""
        ...
