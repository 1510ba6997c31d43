"""Applying the redo log to the tables, before anything else reads them."""

from pathlib import Path
from typing import TYPE_CHECKING

import lmdb

from gateway_lmdb.redo_log import content_of, records_of
from gateway_lmdb.redo_records import apply, entity_changes
from gateway_lmdb.reserved_pages import release
from gateway_lmdb.schema import Tables, Transaction, read_era, write_era

if TYPE_CHECKING:
    from gateway_lmdb.disk import Disk


def replay(directory: Path, disk: "Disk", environment: lmdb.Environment, tables: Tables) -> None:
    """Apply the records of the current era in one transaction, and end the era.

    On a full disk the reserve is used for it.

    :raises lmdb.Error: if they cannot be written.
    :raises StorageError: if they cannot be read.
    """
    with environment.begin() as transaction:
        era = read_era(transaction, tables.meta)
    records = list(records_of(content_of(directory, disk), era)) if era else []
    if not records:
        return

    def write() -> None:
        with environment.begin(write=True) as transaction:
            for payload in records:
                apply(payload, transaction, tables)
            write_era(transaction, tables, era + 1)

    try:
        write()
    except lmdb.Error:
        release(lambda: environment.begin(write=True), tables)
        write()


def changed_entities(
    directory: Path, disk: "Disk", transaction: Transaction, meta: lmdb._Database
) -> dict[bytes, bytes | None]:
    """Return the entities that the redo log changes, by key, ``None`` for those that it deletes."""
    changed: dict[bytes, bytes | None] = {}
    era = read_era(transaction, meta)
    for payload in records_of(content_of(directory, disk), era) if era else ():
        changed.update(entity_changes(payload))
    return changed
