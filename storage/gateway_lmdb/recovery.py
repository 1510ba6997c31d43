"""Reading the store at a start."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice, starmap
from typing import Final

from gateway.kernel.errors import UnreadableRecord
from gateway.kernel.journal.changes import Change, Dequeued, Discarded, Enqueued, SetAside, Stored
from gateway.kernel.journal.enqueued_run import EnqueuedRun
from gateway.kernel.journal.entity_codec import decode_entity
from gateway.kernel.journal.records.entity import ENTITY_BY_KIND, Entity
from gateway.kernel.journal.stored_changes import stored
from gateway.kernel.messages.contents import decode_content
from gateway_lmdb import stream_tables
from gateway_lmdb.environment import RECORD_SEEN, Environment
from gateway_lmdb.quarantine import (
    UNKNOWN_QUEUE,
    Quarantined,
    all_quarantined,
    unreadable_entity,
    unreadable_place,
)
from gateway_lmdb.records import decode_enqueued, decode_runs
from gateway_lmdb.schema import pack_number, unpack_number

#: Queue entries read in one transaction, a few milliseconds of work. No transaction and no lock is held while the
#: kernel applies them.
_PIECE: Final = 4_000

#: The size at which a piece of contents ends, in bytes.
_CONTENT_BYTES: Final = 512 * 1024

#: Entities read in one transaction.
_ENTITIES: Final = 1_000


@dataclass(slots=True)
class FoundEntities:
    """The queue ids of all entities that store messages.

    With ``keeps_all`` the id of an entity set aside is unknown, so nothing may be removed.
    """

    queue_ids: set[int] = field(default_factory=set)
    keeps_all: bool = False

    def keeps(self, queue_id: int) -> bool:
        """Return whether messages with this queue id belong to an entity."""
        return self.keeps_all or queue_id in self.queue_ids

    def note(self, queue_id: int) -> None:
        """Add the queue id of an entity, 0 for none."""
        if queue_id == UNKNOWN_QUEUE:
            self.keeps_all = True
        elif queue_id:
            self.queue_ids.add(queue_id)


def set_aside(environment: Environment, found: FoundEntities) -> Iterator[Quarantined]:
    """Yield the records in quarantine, and add their ids to ``found``."""
    with environment.read() as transaction:
        asides = list(all_quarantined(transaction, environment.tables))
    for aside in asides:
        found.note(aside.queue_id)
        yield _numbered(environment, aside)


def entities(environment: Environment, found: FoundEntities) -> Iterator[Entity | Quarantined]:
    """Yield every entity, by kind in the order of ``ENTITY_BY_KIND``, and unreadable ones; add ids to ``found``.

    :raises StorageError: when a newer gateway wrote one.
    """
    kinds = _kinds(environment)
    for kind in [*(kind for kind in ENTITY_BY_KIND if kind in kinds), *(kinds - ENTITY_BY_KIND.keys())]:
        for key, record in _records(environment, kind):
            try:
                entity = decode_entity(kind, record)
            except UnreadableRecord as error:
                aside = unreadable_entity(key, record, str(error))
                found.note(aside.queue_id)
                yield aside
            else:
                found.note(entity.messages_id)
                yield entity


def _kinds(environment: Environment) -> set[str]:
    """Return the kinds of existing entities."""
    kinds = set()
    with environment.read() as transaction, transaction.cursor(environment.tables.entities) as cursor:
        is_there = cursor.first()
        while is_there:
            kind = cursor.key().partition(b":")[0]
            kinds.add(kind.decode(errors="replace"))
            is_there = cursor.set_range(kind + b";")  # the character after the colon
    return kinds


def _records(environment: Environment, kind: str) -> Iterator[tuple[bytes, bytes]]:
    """Yield key and record of each entity of a kind; no transaction is held in between."""
    prefix = kind.encode(errors="replace") + b":"
    after = prefix
    while True:
        with environment.read() as transaction, transaction.cursor(environment.tables.entities) as cursor:
            piece = list(islice(cursor, _ENTITIES)) if cursor.set_range(after) else []
        for key, record in piece:
            if not key.startswith(prefix):
                return
            yield key, record
        if len(piece) < _ENTITIES:
            return
        after = piece[-1][0] + b"\0"


def _numbered(environment: Environment, aside: Quarantined) -> Quarantined:
    """Replace an unknown queue id with the highest one in use, so that it is not assigned again."""
    if aside.queue_id != UNKNOWN_QUEUE:
        return aside
    with environment.read() as transaction:
        highest = max(stream_tables.stream_ids(transaction, environment.tables), default=0)
    for place in enqueued(environment):
        if isinstance(place, Enqueued):
            highest = max(highest, place.queue_id)
    return Quarantined(aside.table, aside.key, aside.kind, aside.name, aside.reason, highest)


def as_change(environment: Environment, aside: Quarantined) -> SetAside:
    """Return a record set aside as the kernel gets it."""
    return _numbered(environment, aside).as_change()


def enqueued(environment: Environment) -> Iterator[Enqueued | Quarantined]:
    """Yield every queue entry, by rising position, and unreadable ones."""
    for piece in _pieces(environment):
        yield from starmap(_place, piece)


def enqueued_runs(environment: Environment) -> Iterator[EnqueuedRun | Enqueued | Quarantined]:
    """Yield every queue entry, by rising position in each queue, most of them in runs; and unreadable ones."""
    for piece in _pieces(environment):
        runs = decode_runs(piece)
        yield from starmap(_place, piece) if runs is None else runs


def _pieces(environment: Environment) -> Iterator[list[tuple[bytes, bytes]]]:
    """Yield the keys and records of queue entries, as many as are read in one transaction."""
    after = b""
    while True:
        with environment.read() as transaction, transaction.cursor(environment.tables.enqueued) as cursor:
            piece = list(islice(cursor, _PIECE)) if cursor.set_range(after) else []
        if not piece:
            return
        environment.count_read(len(piece) * 64)
        yield piece
        after = piece[-1][0] + b"\0"


def _place(key: bytes, record: bytes) -> Enqueued | Quarantined:
    try:
        return decode_enqueued(unpack_number(key), record)
    except UnreadableRecord as error:
        return unreadable_place(key, str(error))


def contents(environment: Environment) -> Iterator[Stored]:
    """Yield the content of every message, by rising id; unreadable ones are left out."""
    message_id = 0
    while piece := _contents_from(environment, message_id + 1):
        for message_id, record in piece:
            with suppress(UnreadableRecord):
                yield stored(message_id, decode_content(record))


def _contents_from(environment: Environment, message_id: int) -> list[tuple[int, bytes]]:
    """Return the next contents as numbers and records: some, or as many as have a given size."""
    piece: list[tuple[int, bytes]] = []
    size = 0
    with environment.read() as transaction, transaction.cursor(environment.tables.contents) as cursor:
        if cursor.set_range(pack_number(message_id)):
            for key, record in cursor:
                piece.append((unpack_number(key), record))
                size += len(record) + RECORD_SEEN
                if size >= _CONTENT_BYTES:
                    break
    environment.count_read(size)
    return piece


def cleanup(environment: Environment, orphans: list[Enqueued], keeps: Callable[[int], bool]) -> list[Change]:
    """Return the changes that remove messages of queues that no longer exist.

    A queue's record is removed before its messages, so a crash in between leaves them. Their contents are removed too,
    unless another queue holds the same message.
    """
    if not orphans:
        return []
    unneeded = {orphan.message_id for orphan in orphans}
    for place in enqueued(environment):
        if isinstance(place, Enqueued) and keeps(place.queue_id):
            unneeded.discard(place.message_id)
    changes: list[Change] = [Dequeued(orphan.position) for orphan in orphans]
    changes.extend(map(Discarded, sorted(unneeded)))
    return changes
