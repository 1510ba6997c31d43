"""A store in memory that commits when told, so that a test decides what a crash would leave."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from gateway.kernel.journal.changes import Changes, Lsn, Recovered
from gateway.kernel.journal.store import StoreListener
from gateway.kernel.messages.stored_message import StoredMessage
from gateway_memory.image import Image, Step, captured


class MemoryStore:
    """A ``Store`` without files.

    :param defer: makes a call soon, on the kernel's thread, but not at once. When given, the store commits by itself
        after each append (or each few); without it, ``commit`` does.
    """

    def __init__(self, defer: Callable[[Callable[[], None]], None] | None = None) -> None:
        self._defer = defer
        self._listener: StoreListener | None = None
        self._present = Image()
        self._durable = Image()
        self._staged: list[Step] = []
        self._appended = Lsn(0)
        self._watermark = Lsn(0)
        self._is_commit_due = False
        self._is_stalled = False
        self._has_failed = False

    def listen(self, listener: StoreListener) -> None:
        """Name the listener. Called once, before the first ``append``."""
        self._listener = listener

    def append(self, changes: Changes) -> Lsn:
        """Stage ``changes`` as one step."""
        steps = captured(changes)
        for step in steps:
            self._present.apply(step)
        self._staged.extend(steps)
        self._appended = Lsn(self._appended + 1)
        self._commit_soon()
        return self._appended

    def messages(self, message_ids: Sequence[int]) -> list[StoredMessage | None]:
        """Read contents back, staged or durable, in the order asked for; ``None`` where nothing is stored."""
        return [self._present.content(message_id) for message_id in message_ids]

    def stream_chunks(self, stream_id: int, offset: int, most_bytes: int) -> bytes | None:
        """Read durable messages of a stream back as chunks; ``None`` where there is no such message."""
        stream = self._durable.streams.get(stream_id)
        return None if stream is None else stream.chunks(offset, most_bytes)

    def segment_path(self, stream_id: int, first: int) -> Path | None:
        """Return ``None``: nothing is in files."""
        return None

    def recover(self) -> Iterator[Recovered]:
        """Yield what was durable when the store was opened."""
        return self._durable.changes()

    def record_count(self) -> int:
        """Return how many changes ``recover`` yields."""
        return sum(1 for _ in self._durable.changes())

    def highest_ids(self) -> tuple[int, int]:
        """Return the highest position and message id there is."""
        return max(self._durable.enqueued, default=0), max(self._durable.contents, default=0)

    def close(self) -> None:
        """Commit; a stalled store fails instead, as one on a full disk would."""
        if self._is_stalled:
            self.fail("closed while the store could not write")
        self.commit()

    # ---- What a test does to it ----------------------------------------------------------------------------------

    def commit(self) -> None:
        """Make everything staged durable and report it; nothing happens while the store is stalled or has failed."""
        self._is_commit_due = False
        if self._is_stalled or self._has_failed:
            return
        for step in self._staged:
            self._durable.apply(step)
        self._staged.clear()
        if self._watermark < self._appended:
            self._watermark = self._appended
            if self._listener is not None:
                self._listener.on_durable(self._watermark)

    @property
    def held_ids(self) -> frozenset[int]:
        """The ids of the contents held at present, spilled ones too: those that nobody needs any more must not stay."""
        return frozenset(self._present.contents) | frozenset(self._present.spilled)

    def stall(self, reason: str) -> None:
        """Behave as if the disk were full from now on."""
        self._is_stalled = True
        if self._listener is not None:
            self._listener.on_stalled(reason)

    def resume(self) -> None:
        """Behave as if there were space again."""
        self._is_stalled = False
        if self._listener is not None:
            self._listener.on_resumed()
        self._commit_soon()

    def fail(self, reason: str) -> None:
        """Give up for good, as if the disk had died."""
        self._has_failed = True
        if self._listener is not None:
            self._listener.on_failed(reason)

    def reopened(self, defer: Callable[[Callable[[], None]], None] | None = None) -> "MemoryStore":
        """Return a new store that holds what this one had committed: what a restart after a crash would find."""
        store = MemoryStore(defer)
        store._durable = self._durable.after_restart()
        store._present = self._durable.after_restart()
        return store

    def _commit_soon(self) -> None:
        if self._defer is not None and not self._is_commit_due:
            self._is_commit_due = True
            self._defer(self.commit)
