"""A store in memory that commits on request, so that a test decides what a crash leaves."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from gateway.kernel.journal.changes import (
    Appended,
    Change,
    Changes,
    Enqueued,
    Lsn,
    Put,
    Recovered,
    Sealed,
    Stored,
    Truncated,
)
from gateway.kernel.journal.enqueued_run import EnqueuedRun
from gateway.kernel.journal.store import StoreListener
from gateway.kernel.journal.stored_changes import stored
from gateway.kernel.messages.stored_message import StoredMessage
from gateway_memory.image import Image, Step, captured


class MemoryStore:
    """A ``Store`` without files.

    :param defer: schedules a call on the kernel's thread. If given, the store commits after each append, or after
    several; otherwise only ``commit`` does.
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
        self._is_held = False
        self._has_failed = False

    def listen(self, listener: StoreListener) -> None:
        """Set the listener. Called once, before the first ``append``."""
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
        """Read contents, staged or durable, in the given order; ``None`` for one that is not stored."""
        return [self._present.content(message_id) for message_id in message_ids]

    def stream_chunks(self, stream_id: int, offset: int, most_bytes: int) -> bytes | None:
        """Read durable messages of a stream as chunks; ``None`` if there is no such message."""
        stream = self._durable.streams.get(stream_id)
        return None if stream is None else stream.chunks(offset, most_bytes)

    def segment_path(self, stream_id: int, first: int) -> Path | None:
        """Return ``None``: this store has no files."""
        return None

    def recover(self) -> Iterator[Recovered]:
        """Yield the data that was durable when the store was opened."""
        return self._durable.changes()

    def recover_runs(self) -> Iterator[Recovered | EnqueuedRun]:
        """Yield what ``recover`` yields, with messages of each queue in runs."""
        places: dict[int, list[Enqueued]] = {}
        for change in self.recover():
            if isinstance(change, Enqueued):
                places.setdefault(change.queue_id, []).append(change)
            else:
                yield change
        for of_queue in places.values():
            for is_plain, alike in groupby(of_queue, _is_plain):
                found = list(alike)
                yield from (_run_of(found),) if is_plain else found

    def durable_records(
        self, stream_ends: Mapping[int, int], last_message_id: int, last_position: int
    ) -> Iterator[Put | Stored | Enqueued | Truncated | Appended | Sealed]:
        """Yield what is durable, while the store is in use: entities, contents by id, queue entries by position.

        Contents and queue entries end with these numbers. Then the streams, up to an offset (exclusive).
        """
        durable = self._durable
        for name in list(durable.entities):
            if (entity := durable.entities.get(name)) is not None:
                yield Put(entity)
        for message_id in sorted(durable.contents):
            if message_id <= last_message_id and (content := durable.contents.get(message_id)) is not None:
                yield stored(message_id, content)
        for position in sorted(durable.enqueued):
            if position <= last_position and (place := durable.enqueued.get(position)) is not None:
                yield place
        for stream_id, end in stream_ends.items():
            if (stream := durable.streams.get(stream_id)) is not None:
                yield from stream.changes(end)

    @property
    def orphans(self) -> list[Change]:
        """The changes by which the restart removed messages of queues that do not exist."""
        return self._durable.orphans

    def record_count(self) -> int:
        """Return the number of changes that ``recover`` yields."""
        return sum(1 for _ in self._durable.changes())

    def highest_ids(self) -> tuple[int, int]:
        """Return the highest durable position and message id."""
        return max(self._durable.enqueued, default=0), max(self._durable.contents, default=0)

    def close(self) -> None:
        """Commit, also what is held; a stalled store fails instead, as on a full disk."""
        self._is_held = False
        if self._is_stalled:
            self.fail("closed while the store could not write")
        self.commit()

    # ---- Control by tests ------------------------------------------------------------------------------------------

    def commit(self) -> None:
        """Make everything staged durable and report it; do nothing while the store is held, stalled or has failed."""
        self._is_commit_due = False
        if self._is_held or self._is_stalled or self._has_failed:
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
        """The ids of all stored contents, spilled ones too, so that a test can find unused ones."""
        return frozenset(self._present.contents) | frozenset(self._present.spilled)

    def stall(self, reason: str) -> None:
        """Behave as if the disk were full."""
        self._is_stalled = True
        if self._listener is not None:
            self._listener.on_stalled(reason)

    def resume(self) -> None:
        """Behave as if there were disk space again."""
        self._is_stalled = False
        if self._listener is not None:
            self._listener.on_resumed()
        self._commit_soon()

    def hold(self) -> None:
        """Commit nothing until ``release``, as a slow disk: no fault is reported, and confirms wait."""
        self._is_held = True

    def release(self) -> None:
        """Commit again, first what was staged meanwhile."""
        self._is_held = False
        self._commit_soon()

    def fail(self, reason: str) -> None:
        """Fail permanently, as if the disk had failed."""
        self._has_failed = True
        if self._listener is not None:
            self._listener.on_failed(reason)

    def reopened(self, defer: Callable[[Callable[[], None]], None] | None = None) -> "MemoryStore":
        """Return a new store with the committed data, as after a crash and a restart."""
        store = MemoryStore(defer)
        store._durable = self._durable.after_restart()
        store._present = self._durable.after_restart()
        return store

    def _commit_soon(self) -> None:
        if self._defer is not None and not self._is_commit_due:
            self._is_commit_due = True
            self._defer(self.commit)


def _is_plain(place: Enqueued) -> bool:
    """Whether a message may be in a run."""
    return not (place.priority or place.due_at_ms or place.expires_at_ms)


def _run_of(places: Sequence[Enqueued]) -> EnqueuedRun:
    """Return plain messages of one queue as a run."""
    return EnqueuedRun(
        places[0].queue_id,
        [place.position for place in places],
        [place.message_id for place in places],
        [place.enqueued_at_ms for place in places],
        [place.delivery_count for place in places],
        [place.body_size for place in places],
    )
