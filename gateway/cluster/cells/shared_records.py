"""The records of users and of all else that has no virtual host, for the leaders of other cells.

The leader of the first cell writes them, once they are in its log. Each has the epoch of that leader: a record of a
lower epoch never replaces one of a higher epoch. A leader that finds a record which differs from what it has writes it
again, so that whatever a deposed leader wrote late has no lasting effect.
"""

import struct
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, Protocol

from gateway.cluster.errors import Unanswered
from gateway.cluster.metadata import NEVER, Key, Metadata, MetadataEntry, MetadataWatch, Revision, compare_and_set
from gateway.cluster.queue_log import Epoch
from gateway.kernel.clock import Clock

#: The keys of the records begin with this part; the kind of the entity and its key follow.
SHARED: Final = "access"

#: The pause after a write that had no answer, in seconds.
_RETRY_S: Final = 1.0

#: So many records are written at a time.
_AT_ONCE: Final = 16

#: So many records are compared in one step.
_STEP: Final = 20

_HEAD: Final = struct.Struct(">Q")


@dataclass(frozen=True, slots=True)
class SharedRecord:
    """An entity, as the store encodes it, and the epoch of the leader that wrote it."""

    epoch: Epoch
    entity: bytes


class SharedRecords:
    """The records as one node knows them, by kind and key. ``changed`` is called with the key of one that has changed.

    ``revision``: this node knows of all writes up to it; ``reached`` is called when it has risen. ``overruled`` are
    those that a deposed leader has written last: they count as what they were before.
    """

    def __init__(self, metadata: Metadata, changed: Callable[[Key], None] = lambda key: None) -> None:
        self.changed = changed
        self.reached: Callable[[], None] = lambda: None
        self.revision = NEVER
        self.metadata = metadata
        self.overruled: set[Key] = set()
        self._entries: dict[Key, MetadataEntry] = {}
        self._records: dict[Key, SharedRecord] = {}
        self._current: Callable[[], None] = lambda: None
        self._watch: MetadataWatch | None = None

    @property
    def by_key(self) -> Mapping[Key, SharedRecord]:
        """All records."""
        return self._records

    def start(self, current: Callable[[], None] = lambda: None) -> None:
        """Begin to watch; ``current`` is called once all records are known."""
        self._current = current
        self._watch = self.metadata.watch((SHARED,), self)

    def close(self) -> None:
        """Stop: make no more calls."""
        if self._watch is not None:
            self._watch.stop()

    def revision_of(self, key: Key) -> Revision:
        """Return the last revision of a record that this node knows of."""
        known = self._entries.get(key)
        return NEVER if known is None else known.revision

    def on_entry(self, entry: MetadataEntry) -> None:
        """Note a record."""
        self.revision = max(self.revision, entry.revision)
        self.note(entry.key[1:], entry)
        self.reached()

    def on_current(self) -> None:
        """Report that all records are known."""
        self._current()

    def note(self, key: Key, entry: MetadataEntry) -> None:
        """Note the last write of a record, unless a later one is known."""
        known = self._entries.get(key)
        if known is not None and known.revision >= entry.revision:
            return
        self._entries[key] = entry
        record, present = None if entry.value is None else decode_shared(entry.value), self._records.get(key)
        if record is not None and present is not None and present.epoch > record.epoch:
            self.overruled.add(key)
        else:
            self.overruled.discard(key)
            self._records.pop(key, None)
            if record is not None:
                self._records[key] = record
        self.changed(key)


class SharedSource(Protocol):
    """The entities of the leader of the first cell."""

    def entity(self, key: Key) -> bytes | None:
        """Return an entity, as the store encodes it; ``None`` if there is none."""
        ...

    def keys(self) -> Iterator[Key]:
        """Yield the keys of the entities that there are now."""
        ...


class SharedWriter:
    """Writes the records of one leader, some at a time, and each one after its former change.

    ``start`` runs a coroutine. After ``comparing`` the records are what the ``source`` has, also if a former leader
    could not write them.
    """

    def __init__(
        self,
        records: SharedRecords,
        source: SharedSource,
        epoch: Epoch,
        clock: Clock,
        start: Callable[[Coroutine[Any, Any, None]], object],  # Any: what a coroutine passes to its driver
    ) -> None:
        self._records = records
        self._source = source
        self._epoch = epoch
        self._clock = clock
        self._start = start
        self._due: dict[Key, None] = {}
        self._writing: set[Key] = set()
        self._waiting: list[Callable[[Revision], None]] = []
        self._last = NEVER
        self._is_closed = False

    def close(self) -> None:
        """Write nothing more."""
        self._is_closed = True
        self._due.clear()
        self._waiting.clear()

    def comparing(self) -> Iterator[None]:
        """Return the steps that write every record which differs from what the source has."""
        for number, key in enumerate(self._source.keys()):
            self.repair(key)
            if number % _STEP == 0:
                yield
        for number, key in enumerate(list(self._records.by_key)):
            self.repair(key)
            if number % _STEP == 0:
                yield

    def repair(self, key: Key) -> None:
        """Write a record if it differs from what the source has."""
        if not self._is_written(key, self._source.entity(key)):
            self.write(key)

    def _is_written(self, key: Key, entity: bytes | None) -> bool:
        found = self._records.by_key.get(key)
        return key not in self._records.overruled and (None if found is None else found.entity) == entity

    def write(self, key: Key) -> None:
        """Write a record: its entity has changed, and is in the log."""
        self._due[key] = None
        self._write_more()

    def when_written(self, written: Callable[[Revision], None]) -> None:
        """Call back with the revision of the last write, once everything that is known to be due is written."""
        if self._due:
            self._waiting.append(written)
        else:
            written(self._last)

    def _write_more(self) -> None:
        room = 0 if self._is_closed else _AT_ONCE - len(self._writing)
        for key in list(islice((each for each in self._due if each not in self._writing), room)):
            self._writing.add(key)
            self._start(self._write_and_go_on(key))

    async def _write_and_go_on(self, key: Key) -> None:
        try:
            await self._write(key)
        except Unanswered:
            self._clock.call_later(_RETRY_S, self._write_more)
            return
        finally:
            self._writing.discard(key)
        self._clock.call_later(0, self._write_more)
        if not self._due:
            waiting, self._waiting = self._waiting, []
            for written in waiting:
                written(self._last)

    async def _write(self, key: Key) -> None:
        """Write one record; a lost answer or a deposed leader's write is read, and written over if it differs."""
        entity = self._source.entity(key)
        revision = self._records.revision_of(key)
        full: Key = (SHARED, *key)
        if self._is_written(key, entity):
            self._due.pop(key, None)
            self._last = max(self._last, revision)
            return
        value = None if entity is None else encode_shared(SharedRecord(self._epoch, entity))
        is_written, last = await compare_and_set(self._records.metadata, full, value, revision)
        if last is not None:
            self._records.note(key, last)
        if not is_written:
            record = None if last is None or last.value is None else decode_shared(last.value)
            if record is not None and record.epoch > self._epoch:
                self.close()  # another node leads
            return
        if last is not None:
            self._last = max(self._last, last.revision)
        if self._source.entity(key) == entity:
            self._due.pop(key, None)


def encode_shared(record: SharedRecord) -> bytes:
    """Return a record as bytes."""
    return _HEAD.pack(record.epoch) + record.entity


def decode_shared(data: bytes) -> SharedRecord | None:
    """Return the record in some bytes; ``None`` if it cannot be read."""
    if len(data) <= _HEAD.size:
        return None
    return SharedRecord(Epoch(_HEAD.unpack_from(data)[0]), data[_HEAD.size :])
