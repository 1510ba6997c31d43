"""Reading the entities of a store from another process than the one that writes it."""

from pathlib import Path

import lmdb

from gateway.kernel.errors import StorageError, UnreadableRecord
from gateway.kernel.journal.entity_codec import decode_entity
from gateway.kernel.journal.records.entity import Entity
from gateway_lmdb.disk import SYSTEM_DISK
from gateway_lmdb.environment import DEFAULT_MAP_SIZE, FILE
from gateway_lmdb.inspection import require_whole
from gateway_lmdb.redo_replay import changed_entities
from gateway_lmdb.schema import MAX_TABLES


def entities_in(data: Path) -> list[Entity]:
    """Return the readable entities of a store; none if there is no store.

    :raises StorageError: when the store cannot be opened.
    """
    if not (data / FILE).is_file():
        return []
    found: list[Entity] = []
    try:
        require_whole(data / FILE)
        with (
            lmdb.open(
                str(data), map_size=DEFAULT_MAP_SIZE, max_dbs=MAX_TABLES, readonly=True, readahead=False
            ) as environment,
            environment.begin() as transaction,
        ):
            table = environment.open_db(b"entities", transaction, create=False)
            meta = environment.open_db(b"meta", transaction, create=False)
            changed = changed_entities(data, SYSTEM_DISK, transaction, meta)
            records = {**dict(transaction.cursor(table)), **changed}
            for key, record in records.items():
                if record is None:
                    continue
                try:
                    found.append(decode_entity(key.partition(b":")[0].decode(errors="replace"), record))
                except UnreadableRecord:  # the start sets it aside
                    continue
    except (OSError, lmdb.Error) as error:
        raise StorageError(f"the store in {data} cannot be read: {error}") from error
    return found
