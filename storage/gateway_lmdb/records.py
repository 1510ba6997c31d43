"""How records look as bytes. Each begins with the version of its layout; integers are big-endian.

content: version, lengths of exchange, routing key, header format and header, then those four and the body.
enqueued: version, queue id, message id, enqueued at (ms since the epoch), delivery count, body size, priority, due at,
    expires at (both ms since the epoch, 0 for none).
entity: format, version of the entity's own layout, then its fields as ``values.dumps`` writes them.
"""

import struct
from typing import Final

from gateway.kernel import values
from gateway.kernel.changes import Enqueued
from gateway.kernel.errors import StorageError
from gateway.kernel.message import Message
from gateway.kernel.ports import StoredMessage
from gateway.kernel.records import ENTITY_BY_KIND, Entity

CONTENT_VERSION: Final = 1
ENQUEUED_VERSION: Final = 1
ENTITY_VERSION: Final = 1

_CONTENT: Final = struct.Struct(">BHHBI")
_ENQUEUED: Final = struct.Struct(">BQQQIIBQQ")
_ENTITY: Final = struct.Struct(">BH")

#: Names come from the wire; whatever Python can hold in a string can be stored.
_TEXT: Final = ("utf-8", "surrogatepass")

_MOST_ENVELOPES: Final = 4096

#: Longer headers are not remembered: what is long is seldom repeated, and would fill the memory.
_LONGEST_HEADER: Final = 512


class ContentWriter:
    """Encodes contents, remembering what stands before the body.

    Publishers repeat exchange, routing key and header; remembering their bytes makes a record one lookup and one join
    (0.25 instead of 0.7 µs). What is remembered is bounded in number, and forgotten all at once when that is reached.
    """

    def __init__(self) -> None:
        self._envelopes: dict[tuple[str, str, str, bytes], bytes] = {}

    def encode(self, message: Message) -> bytes:
        """Return the record of a message's content."""
        header = message.header
        identity = (message.exchange, message.routing_key, header.format.name, header.kept)
        envelope = self._envelopes.get(identity)
        if envelope is None:
            envelope = self._remember(identity)
        return envelope + message.body

    def _remember(self, identity: tuple[str, str, str, bytes]) -> bytes:
        envelope = _envelope(*identity)
        if len(identity[-1]) <= _LONGEST_HEADER:
            if len(self._envelopes) >= _MOST_ENVELOPES:
                self._envelopes.clear()
            self._envelopes[identity] = envelope
        return envelope


def _envelope(exchange: str, routing_key: str, header_format: str, header: bytes) -> bytes:
    names = exchange.encode(*_TEXT), routing_key.encode(*_TEXT), header_format.encode()
    lengths = _CONTENT.pack(CONTENT_VERSION, *map(len, names), len(header))
    return b"".join((lengths, *names, header))


def decode_content(record: bytes) -> StoredMessage:
    """Return the content a record holds. :raises StorageError: when a newer gateway wrote it."""
    version, exchange_size, key_size, format_size, header_size = _CONTENT.unpack_from(record)
    _refuse_newer("a message", version, CONTENT_VERSION)
    key = _CONTENT.size + exchange_size
    header_format = key + key_size
    header = header_format + format_size
    body = header + header_size
    return StoredMessage(
        record[_CONTENT.size : key].decode(*_TEXT),
        record[key:header_format].decode(*_TEXT),
        record[header_format:header].decode(),
        record[header:body],
        record[body:],
    )


def encode_enqueued(enqueued: Enqueued) -> bytes:
    """Return the record of a message's place in a queue; the position is the key."""
    return _ENQUEUED.pack(
        ENQUEUED_VERSION,
        enqueued.queue_id,
        enqueued.message_id,
        enqueued.enqueued_at_ms,
        enqueued.delivery_count,
        enqueued.body_size,
        enqueued.priority,
        enqueued.due_at_ms,
        enqueued.expires_at_ms,
    )


def decode_enqueued(position: int, record: bytes) -> Enqueued:
    """Return the change a record holds. :raises StorageError: when a newer gateway wrote it."""
    version, queue_id, message_id, *rest = _ENQUEUED.unpack_from(record)
    _refuse_newer("a place in a queue", version, ENQUEUED_VERSION)
    return Enqueued(queue_id, position, message_id, *rest)


def encode_entity(entity: Entity) -> bytes:
    """Return the record of an entity."""
    return _ENTITY.pack(ENTITY_VERSION, entity.version) + values.dumps(entity.to_fields())


def decode_entity(kind: str, record: bytes) -> Entity:
    """Return the entity a record holds, in today's layout. :raises StorageError: when a newer gateway wrote it."""
    entity = ENTITY_BY_KIND.get(kind)
    if entity is None:
        raise StorageError(f"the store holds a kind of entity this gateway does not know: {kind}")
    encoding, version = _ENTITY.unpack_from(record)
    _refuse_newer(f"the encoding of a {kind}", encoding, ENTITY_VERSION)
    _refuse_newer(f"a {kind}", version, entity.version)
    return entity.from_fields(values.loads(record[_ENTITY.size :]), version)


def _refuse_newer(what: str, written: int, known: int) -> None:
    if written > known:
        raise StorageError(f"{what} has layout {written}, written by a newer gateway; this one reads up to {known}")
