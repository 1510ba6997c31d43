"""Raw records in a store, as an earlier version wrote them after an attack."""

import json
import struct
from hashlib import blake2b
from pathlib import Path
from typing import Final

import lmdb

_TEXT: Final = ("utf-8", "surrogatepass")

#: A message-ttl of 400 digits.
LONG_TTL: Final = hex(10**399)


def entity(kind: str, version: int, width: int, **fields: object) -> tuple[bytes, bytes]:
    """Return key and record of an entity."""
    key = json.dumps(list(fields.values())[:width], ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    digest = blake2b(key.encode(*_TEXT), digest_size=32).digest()
    fields_json = json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode(*_TEXT)
    return kind.encode() + b":" + digest, struct.pack(">BH", 1, version) + fields_json


def policy(name: str, definition: object) -> tuple[bytes, bytes]:
    """Return key and record of a policy for every queue."""
    return entity(
        "policy", 1, 3, vhost="/", name=name, is_operator=False, pattern="", apply_to="all", priority=0,
        definition=definition,
    )  # fmt: skip


def binding(queue: str, routing_key: str, arguments: object) -> tuple[bytes, bytes]:
    """Return key and record of a binding of ``amq.topic``."""
    return entity(
        "binding", 1, 6, vhost="/", source="amq.topic", destination_kind="queue", destination=queue,
        routing_key=routing_key, arguments=arguments,
    )  # fmt: skip


def parameter(name: str, value: object) -> tuple[bytes, bytes]:
    """Return key and record of a parameter."""
    return entity("parameter", 1, 3, vhost="/", component="c", name=name, value=value)


def write(data: Path, table: str, records: "list[tuple[bytes, bytes]]") -> None:
    """Write records to a table of a store that no broker has open."""
    with (
        lmdb.open(str(data), max_dbs=16, map_size=1 << 30) as environment,
        environment.begin(write=True) as transaction,
    ):
        named = environment.open_db(table.encode(), transaction)
        for key, record in records:
            transaction.put(key, record, db=named)


def read(data: Path, table: str) -> "dict[bytes, bytes]":
    """Return the content of a table of a store that no broker has open; empty if the table does not exist."""
    with lmdb.open(str(data), max_dbs=16, map_size=1 << 30) as environment:
        try:
            named = environment.open_db(table.encode(), create=False)
        except lmdb.NotFoundError:
            return {}
        with environment.begin(db=named) as transaction, transaction.cursor() as cursor:
            return dict(cursor)
