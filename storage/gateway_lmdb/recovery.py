"""Reading the store after a start: the small tables alone, in pieces, never the contents."""

from collections.abc import Iterator
from typing import Final

from gateway.kernel.changes import Change, Dequeued, Discarded, Enqueued
from gateway.kernel.records import ENTITY_BY_KIND, Entity, queue_id_of
from gateway_lmdb.environment import Environment
from gateway_lmdb.records import decode_enqueued, decode_entity
from gateway_lmdb.schema import pack_number, unpack_number

#: Records read in one transaction. No transaction, and no lock, is held while the kernel applies them.
_PIECE: Final = 10_000


def entities(environment: Environment) -> list[Entity]:
    """Return every entity, grouped by kind in the order of ``ENTITY_BY_KIND``. :raises StorageError: on a newer one."""
    rank = {kind: place for place, kind in enumerate(ENTITY_BY_KIND)}
    with environment.read() as transaction, transaction.cursor(environment.tables.entities) as cursor:
        found = [decode_entity(key.partition(b":")[0].decode(), record) for key, record in cursor]
    return sorted(found, key=lambda entity: rank[entity.kind])


def queue_ids(found: list[Entity]) -> frozenset[int]:
    """Return the ids of the queues, and of whatever else keeps messages, among the entities."""
    return frozenset(map(queue_id_of, found)) - {0}


def enqueued(environment: Environment) -> Iterator[Enqueued]:
    """Yield every message's place in a queue, in rising position."""
    position = 0
    while piece := _enqueued_from(environment, position + 1):
        yield from piece
        position = piece[-1].position


def _enqueued_from(environment: Environment, position: int) -> list[Enqueued]:
    piece: list[Enqueued] = []
    with environment.read() as transaction, transaction.cursor(environment.tables.enqueued) as cursor:
        if not cursor.set_range(pack_number(position)):
            return piece
        for key, record in cursor:
            piece.append(decode_enqueued(unpack_number(key), record))
            if len(piece) == _PIECE:
                break
    environment.saw(len(piece) * 64)
    return piece


def cleanup(environment: Environment, orphans: list[Enqueued], queues: frozenset[int]) -> list[Change]:
    """Return the changes that remove messages of queues which no longer exist.

    A queue's record goes first and its messages after; a crash in between leaves them behind. Their contents go too,
    unless another queue holds the same message.
    """
    if not orphans:
        return []
    unneeded = {orphan.message_id for orphan in orphans}
    unneeded.difference_update(kept.message_id for kept in enqueued(environment) if kept.queue_id in queues)
    changes: list[Change] = [Dequeued(orphan.position) for orphan in orphans]
    changes.extend(map(Discarded, sorted(unneeded)))
    return changes
