"""The records of a store, for the corpus: one of each kind and size."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import lmdb

from tests.fuzz.decoders.corpus import TO_BROKER

#: Tables of the store, the prefix of their records in the corpus, and the most of them.
_TABLES: Final = {
    b"contents": ("content", 12),
    b"enqueued": ("enqueued", 4),
    b"chunks": ("chunk", 4),
    b"segments": ("segment", 4),
    b"entities": ("entity", 60),
}
_LONGEST: Final = 2_000


def records_in(data: Path) -> Iterator[tuple[str, bytes]]:
    """Yield records of the store in a data directory as ``kind:record``; of entities as ``entity:kind:record``."""
    with lmdb.open(str(data), max_dbs=16, readonly=True, lock=False) as environment, environment.begin() as transaction:
        for name, (prefix, most) in _TABLES.items():
            table = environment.open_db(name, transaction, create=False)
            seen: set[object] = set()
            with transaction.cursor(table) as cursor:
                for key, record in cursor:
                    kind = key.partition(b":")[0] if prefix == "entity" else b""
                    shape = kind, len(record) // 32
                    if len(record) <= _LONGEST and shape not in seen and len(seen) < most:
                        seen.add(shape)
                        yield TO_BROKER, b":".join(part for part in (prefix.encode(), kind, record) if part)
