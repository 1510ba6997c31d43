"""Reading everything back after a start."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from gateway.kernel.changes import Change, Dequeued, Discarded, Enqueued
from gateway.kernel.errors import UnreadableRecord
from gateway.kernel.records import ENTITY_BY_KIND, Entity, queue_id_of
from gateway.kernel.writable import decode_entity
from gateway_lmdb import stream_tables
from gateway_lmdb.environment import Environment
from gateway_lmdb.quarantine import (
    UNKNOWN_QUEUE,
    Quarantined,
    all_quarantined,
    unreadable_entity,
    unreadable_place,
)
from gateway_lmdb.records import decode_enqueued
from gateway_lmdb.schema import pack_number, unpack_number

#: Records read in one transaction. No transaction, and no lock, is held while the kernel applies them.
_PIECE: Final = 10_000


@dataclass(frozen=True, slots=True)
class FoundEntities:
    """The ``entities`` by kind, in the order of ``ENTITY_BY_KIND``, and all that is or is to be ``set_aside``.

    ``unreadable`` are those that are to be. ``queue_ids`` are the numbers under which messages are kept; with
    ``keeps_all``, the number of one that is set aside is not known, so nothing may be removed.
    """

    entities: Sequence[Entity]
    set_aside: Sequence[Quarantined]
    unreadable: Sequence[Quarantined]
    queue_ids: frozenset[int]
    keeps_all: bool

    def keeps(self, queue_id: int) -> bool:
        """Return whether messages under this number belong to anything."""
        return self.keeps_all or queue_id in self.queue_ids


def entities(environment: Environment) -> FoundEntities:
    """Read every entity. :raises StorageError: on one that a newer gateway wrote."""
    rank = {kind: place for place, kind in enumerate(ENTITY_BY_KIND)}
    found: list[Entity] = []
    unreadable: list[Quarantined] = []
    with environment.read() as transaction:
        aside = list(all_quarantined(transaction, environment.tables))
        with transaction.cursor(environment.tables.entities) as cursor:
            for key, record in cursor:
                try:
                    found.append(decode_entity(key.partition(b":")[0].decode(errors="replace"), record))
                except UnreadableRecord as error:
                    unreadable.append(unreadable_entity(key, record, str(error)))
    found.sort(key=lambda entity: rank[entity.kind])
    aside += unreadable
    ids = {*map(queue_id_of, found), *(each.queue_id for each in aside)}
    keeps_all = UNKNOWN_QUEUE in ids
    if keeps_all:
        aside = [_numbered(environment, each) for each in aside]
    return FoundEntities(found, aside, unreadable, frozenset(ids) - {0, UNKNOWN_QUEUE}, keeps_all)


def _numbered(environment: Environment, aside: Quarantined) -> Quarantined:
    """Return the same with the highest number in use for one that is not known, so that it is not given again."""
    if aside.queue_id != UNKNOWN_QUEUE:
        return aside
    with environment.read() as transaction:
        highest = max(stream_tables.stream_ids(transaction, environment.tables), default=0)
    for place in enqueued(environment):
        if isinstance(place, Enqueued):
            highest = max(highest, place.queue_id)
    return Quarantined(aside.table, aside.key, aside.kind, aside.name, aside.reason, highest)


def enqueued(environment: Environment) -> Iterator[Enqueued | Quarantined]:
    """Yield every message's place in a queue, in rising position, and what cannot be read of them."""
    position = 0
    while piece := _enqueued_from(environment, position + 1):
        yield from piece
        last = piece[-1]
        position = last.position if isinstance(last, Enqueued) else unpack_number(last.key)


def _enqueued_from(environment: Environment, position: int) -> list[Enqueued | Quarantined]:
    piece: list[Enqueued | Quarantined] = []
    with environment.read() as transaction, transaction.cursor(environment.tables.enqueued) as cursor:
        if not cursor.set_range(pack_number(position)):
            return piece
        for key, record in cursor:
            try:
                piece.append(decode_enqueued(unpack_number(key), record))
            except UnreadableRecord as error:
                piece.append(unreadable_place(key, str(error)))
            if len(piece) == _PIECE:
                break
    environment.saw(len(piece) * 64)
    return piece


def cleanup(environment: Environment, orphans: list[Enqueued], keeps: Callable[[int], bool]) -> list[Change]:
    """Return the changes that remove messages of queues which no longer exist.

    A queue's record goes first and its messages after; a crash in between leaves them behind. Their contents go too,
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
