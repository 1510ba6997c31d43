"""Writing a batch to the tables of one environment, in one transaction, which ``Writer`` commits."""

from bisect import bisect_right
from collections.abc import Callable, Iterable
from typing import Final, TypeVar

import lmdb

from gateway.kernel.journal.changes import Put
from gateway.kernel.journal.entity_codec import encode_entity
from gateway.kernel.messages.contents import ContentWriter
from gateway_lmdb.batch import Batch, TableBatch
from gateway_lmdb.bursts import Bursts
from gateway_lmdb.quarantine import set_aside
from gateway_lmdb.records import encode_enqueued
from gateway_lmdb.schema import Tables, Transaction, pack_number, write_era
from gateway_lmdb.stream_writer import StreamWriter

T = TypeVar("T")

#: Records that are encoded at a time, and deleted in one burst: as many as the kernel's thread reads in one.
_BURST: Final = 128


class BatchWriter:
    """Writes batches in order. Owned by one thread.

    :param bursts: those in which it deletes records.
    :param rises: whether numbers above all earlier ones are also the highest in the table. This is false when batches
    are written a second time.
    """

    def __init__(self, tables: Tables, bursts: Bursts, *, rises: bool = True) -> None:
        self._tables = tables
        self._bursts = bursts
        self._rises = rises
        self._encode_content = ContentWriter().encode
        self._streams = StreamWriter(tables)

    def write(self, transaction: Transaction, batch: Batch) -> None:
        """Write a batch. A failed transaction is repeated from the start."""
        tables = self._tables
        for aside in batch.asides:
            set_aside(transaction, tables, aside)
        self._write_entities(transaction, batch.entities)
        self._write_table(transaction, tables.contents, batch.contents, self._encode_content)
        self._write_table(transaction, tables.spilled, batch.spilled, self._encode_content)
        self._write_table(transaction, tables.enqueued, batch.enqueued, encode_enqueued)
        self._streams.write(transaction, batch.streams)
        if batch.era:
            write_era(transaction, tables, batch.era)

    def committed(self) -> None:
        """Update the state after the transaction of the last batch is committed."""
        self._streams.committed()

    def _write_entities(self, transaction: Transaction, entities: dict[bytes, Put | None]) -> None:
        """Delete and put in key order: what follows in the table is found from the place of the one before."""
        table = self._tables.entities
        put_keys = []
        for key in sorted(entities):
            if entities[key] is None:
                transaction.delete(key, db=table)
            else:
                put_keys.append(key)
        with transaction.cursor(table) as cursor:
            cursor.putmulti(_encoded_entities(put_keys, entities))

    def _write_table(
        self, transaction: Transaction, table: lmdb._Database, batch: TableBatch[T], encode: Callable[[T], bytes]
    ) -> None:
        """Delete in key order, then put: new numbers are the highest, so they are appended to the last page.

        Both matter: appended pages are full instead of half full, and deleting in random order takes ten times as long.
        """
        with transaction.cursor(table) as cursor:
            deletes = sorted(batch.deletes)
            for first in range(0, len(deletes), _BURST):
                self._delete(cursor, deletes[first : first + _BURST])
            rising = sorted(batch.puts)
            old = bisect_right(rising, batch.written) if self._rises else len(rising)
            records = batch.puts
            for first in range(0, old, _BURST):
                cursor.putmulti(_encoded(rising[first : min(old, first + _BURST)], records, encode))
            for first in range(old, len(rising), _BURST):
                cursor.putmulti(_encoded(rising[first : first + _BURST], records, encode), append=True)

    def _delete(self, cursor: lmdb.Cursor, numbers: list[int]) -> None:
        """Delete the records with rising numbers, as one burst."""
        has_begun = self._bursts.begin()
        try:
            for number in numbers:
                key = pack_number(number)
                if cursor.key() == key or cursor.set_key(key):  # after a deletion it is at the next record
                    cursor.delete()
        finally:
            self._bursts.end(has_begun)


def _encoded_entities(keys: list[bytes], entities: dict[bytes, Put | None]) -> Iterable[tuple[bytes, bytes]]:
    """Encode one entity at a time, as ``_encoded`` does, unless that is done."""
    for key in keys:
        put = entities[key]
        assert put is not None
        yield key, put.record or encode_entity(put.entity)


def _encoded(numbers: list[int], records: dict[int, T], encode: Callable[[T], bytes]) -> list[tuple[bytes, bytes]]:
    """Encode some records, so that a batch is not in memory twice; one at a time is slower."""
    return [(pack_number(number), encode(records[number])) for number in numbers]
