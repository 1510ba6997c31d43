"""How records look as bytes. Each begins with the version of its layout; integers are big-endian.

content: as ``gateway.kernel.contents`` writes it.
enqueued: version, queue id, message id, enqueued at (ms since the epoch), delivery count, body size, priority, due at,
    expires at (both ms since the epoch, 0 for none).
segment: version, end, size, moments of the first and the last message (ms), whether it is in a file, then its bloom.
stream: the first offset. chunk: as ``gateway.kernel.chunks`` writes it.
entity: format, version of the entity's own layout, then its fields as ``values.dumps`` writes them.
"""

import struct
from typing import Final

from gateway.kernel import values
from gateway.kernel.changes import Enqueued, StreamSegment
from gateway.kernel.contents import newer
from gateway.kernel.errors import StorageError
from gateway.kernel.records import ENTITY_BY_KIND, Entity

ENQUEUED_VERSION: Final = 1
ENTITY_VERSION: Final = 1
SEGMENT_VERSION: Final = 1

_ENQUEUED: Final = struct.Struct(">BQQQIIBQQ")
_ENTITY: Final = struct.Struct(">BH")
_SEGMENT: Final = struct.Struct(">BQQQQ?")


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


def encode_segment(segment: StreamSegment, *, is_filed: bool) -> bytes:
    """Return the record of a sealed segment; stream and first offset are the key."""
    head = _SEGMENT.pack(SEGMENT_VERSION, segment.end, segment.size_bytes, segment.first_ms, segment.last_ms, is_filed)
    return head + segment.bloom


def decode_segment(stream_id: int, first: int, record: bytes) -> tuple[StreamSegment, bool]:
    """Return the segment a record holds and whether it is in a file.

    :raises StorageError: when a newer gateway wrote it.
    """
    version, end, size_bytes, first_ms, last_ms, is_filed = _SEGMENT.unpack_from(record)
    _refuse_newer("a segment of a stream", version, SEGMENT_VERSION)
    bloom = record[_SEGMENT.size :]
    return StreamSegment(stream_id, first, end, size_bytes, first_ms, last_ms, True, bloom), is_filed


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
        raise newer(what, written, known)
