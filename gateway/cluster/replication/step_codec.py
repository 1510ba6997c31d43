"""The changes of a store as the bytes of a log record.

A record is its version, then changes one after the other: a tag, then the fields of that change. Integers are
big-endian. Contents are those of ``gateway.kernel.messages.contents``, entities those of
``gateway.kernel.journal.entity_codec``.
"""

import struct
from collections.abc import Callable, Iterable
from typing import Final

from gateway.cluster.errors import LogDamaged
from gateway.kernel.errors import UnreadableRecord
from gateway.kernel.journal.changes import (
    Appended,
    Change,
    Dequeued,
    Discarded,
    Enqueued,
    Put,
    Removed,
    Sealed,
    SetAside,
    Stored,
    StreamSegment,
    Truncated,
)
from gateway.kernel.journal.entity_codec import decode_entity, encode_entity
from gateway.kernel.journal.stored_changes import message_of
from gateway.kernel.messages import values
from gateway.kernel.messages.contents import ContentWriter, decode_content, newer
from gateway.kernel.messages.message import Value

_VERSION: Final = 1

_STORED: Final = b"S"
_ENQUEUED: Final = b"E"
_DEQUEUED: Final = b"D"
_DISCARDED: Final = b"X"
_PUT: Final = b"P"
_REMOVED: Final = b"R"
_APPENDED: Final = b"M"
_SEALED: Final = b"G"
_TRUNCATED: Final = b"T"

_NUMBER: Final = struct.Struct(">cQ")
_LENGTH: Final = struct.Struct(">cI")
_CONTENT: Final = struct.Struct(">cQI")

#: Position, queue, message, enqueued at, deliveries, body size, priority, due at, expires at.
_PLACE: Final = struct.Struct(">cQQQQIIBQQ")

#: Stream, offset, timestamp, lengths of filter value and content.
_ENTRY: Final = struct.Struct(">cQQQBI")

#: Stream, first, end, size, times of the first and the last message, length of the Bloom filter.
_SEGMENT: Final = struct.Struct(">cQQQQQQI")

#: Stream and first offset.
_FIRST: Final = struct.Struct(">cQQ")

#: The largest number in each field of ``_PLACE`` after the tag.
_LARGEST: Final = (2**64 - 1, 2**64 - 1, 2**64 - 1, 2**64 - 1, 2**32 - 1, 2**32 - 1, 2**8 - 1, 2**64 - 1, 2**64 - 1)


class StepEncoder:
    """Encodes changes. Caches the envelopes of contents, which publishers repeat."""

    def __init__(self) -> None:
        self._contents = ContentWriter()

    def encode(self, changes: Iterable[Change]) -> bytes:
        """Return the bytes of changes.

        Spilled contents need not survive, and what is set aside may be readable on another node: both are left out.
        """
        parts = [bytes((_VERSION,))]
        for change in changes:
            if isinstance(change, Stored):
                if not change.is_spilled:
                    content = self._contents.encode(change.message)
                    parts += (_CONTENT.pack(_STORED, change.message_id, len(content)), content)
            elif isinstance(change, Enqueued):
                parts.append(_place(change))
            elif isinstance(change, Dequeued):
                parts.append(_NUMBER.pack(_DEQUEUED, change.position))
            elif isinstance(change, Discarded):
                if not change.is_spilled:
                    parts.append(_NUMBER.pack(_DISCARDED, change.message_id))
            elif isinstance(change, Appended):
                content, value = self._contents.encode(change.message), change.filter_value
                numbers = change.stream_id, change.offset, change.timestamp_ms, len(value), len(content)
                parts += (_ENTRY.pack(_APPENDED, *numbers), value, content)
            elif isinstance(change, Put | Removed):
                parts += _entity_parts(change)
            elif not isinstance(change, SetAside):
                parts += _segment_parts(change)
        return b"".join(parts)


def _place(change: Enqueued) -> bytes:
    """Return the bytes of a queue entry. A number out of range is replaced by the nearest valid one."""
    numbers = (
        change.position,
        change.queue_id,
        change.message_id,
        change.enqueued_at_ms,
        change.delivery_count,
        change.body_size,
        change.priority,
        change.due_at_ms,
        change.expires_at_ms,
    )
    try:
        return _PLACE.pack(_ENQUEUED, *numbers)
    except struct.error:
        bounded = (min(max(number, 0), most) for number, most in zip(numbers, _LARGEST, strict=True))
        return _PLACE.pack(_ENQUEUED, *bounded)


def _segment_parts(change: Sealed | Truncated) -> list[bytes]:
    if isinstance(change, Truncated):
        return [_FIRST.pack(_TRUNCATED, change.stream_id, change.first)]
    segment = change.segment
    span = segment.first, segment.end, segment.size_bytes, segment.first_ms, segment.last_ms
    return [_SEGMENT.pack(_SEALED, segment.stream_id, *span, len(segment.bloom)), segment.bloom]


def _entity_parts(change: Put | Removed) -> list[bytes]:
    if isinstance(change, Put):
        kind, record = change.entity.kind.encode(), change.record or encode_entity(change.entity)
        return [_LENGTH.pack(_PUT, len(kind)), kind, len(record).to_bytes(4, "big"), record]
    encoded = values.dumps({"kind": change.kind, "key": list(change.key)})
    return [_LENGTH.pack(_REMOVED, len(encoded)), encoded]


def decode_step(data: bytes, start: int = 0) -> list[Change]:
    """Return the changes in a record, which begins at ``start``.

    :raises LogDamaged: if it is incomplete.
    :raises StorageError: if a newer gateway wrote it.
    """
    if len(data) <= start:
        raise LogDamaged("a record of the log is empty")
    if data[start] != _VERSION:
        raise newer("a record of the log", data[start], _VERSION)
    changes: list[Change] = []
    at = start + 1
    while at < len(data):
        read = _READERS.get(data[at : at + 1])
        if read is None:
            raise LogDamaged(f"a record of the log has an unknown change {data[at : at + 1]!r} at byte {at}")
        try:
            change, at = read(data, at)
        except (struct.error, UnreadableRecord, ValueError, TypeError, KeyError) as error:
            raise LogDamaged(f"a record of the log is damaged at byte {at}: {error}") from None
        changes.append(change)
    return changes


def _read_stored(data: bytes, at: int) -> tuple[Change, int]:
    _, message_id, length = _CONTENT.unpack_from(data, at)
    content, end = _cut(data, at + _CONTENT.size, length)
    message = message_of(decode_content(content))
    message.id = message_id
    return Stored(message), end


def _read_place(data: bytes, at: int) -> tuple[Change, int]:
    _, position, queue_id, message_id, *rest = _PLACE.unpack_from(data, at)
    return Enqueued(queue_id, position, message_id, *rest), at + _PLACE.size


def _read_dequeued(data: bytes, at: int) -> tuple[Change, int]:
    _, position = _NUMBER.unpack_from(data, at)
    return Dequeued(position), at + _NUMBER.size


def _read_discarded(data: bytes, at: int) -> tuple[Change, int]:
    _, message_id = _NUMBER.unpack_from(data, at)
    return Discarded(message_id), at + _NUMBER.size


def _read_put(data: bytes, at: int) -> tuple[Change, int]:
    _, length = _LENGTH.unpack_from(data, at)
    kind, at = _cut(data, at + _LENGTH.size, length)
    size, at = _cut(data, at, 4)
    record, at = _cut(data, at, int.from_bytes(size, "big"))
    return Put(decode_entity(kind.decode(), record), record), at


def _read_removed(data: bytes, at: int) -> tuple[Change, int]:
    fields, at = _read_fields(data, at)
    return Removed(_text(fields["kind"]), _key(fields["key"])), at


def _read_appended(data: bytes, at: int) -> tuple[Change, int]:
    _, stream_id, offset, timestamp_ms, filter_size, content_size = _ENTRY.unpack_from(data, at)
    value, at = _cut(data, at + _ENTRY.size, filter_size)
    content, at = _cut(data, at, content_size)
    return Appended(stream_id, offset, timestamp_ms, value, message_of(decode_content(content))), at


def _read_sealed(data: bytes, at: int) -> tuple[Change, int]:
    _, stream_id, first, end, size, first_ms, last_ms, bloom_size = _SEGMENT.unpack_from(data, at)
    bloom, at = _cut(data, at + _SEGMENT.size, bloom_size)
    return Sealed(StreamSegment(stream_id, first, end, size, first_ms, last_ms, True, bloom)), at


def _read_truncated(data: bytes, at: int) -> tuple[Change, int]:
    _, stream_id, first = _FIRST.unpack_from(data, at)
    return Truncated(stream_id, first), at + _FIRST.size


def _read_fields(data: bytes, at: int) -> tuple[dict[str, Value], int]:
    _, length = _LENGTH.unpack_from(data, at)
    encoded, at = _cut(data, at + _LENGTH.size, length)
    return values.loads(encoded), at


def _cut(data: bytes, start: int, length: int) -> tuple[bytes, int]:
    """Return a part of the data, and where it ends. :raises ValueError: if the data end before."""
    end = start + length
    if len(data) < end:
        raise ValueError(f"{end - len(data)} bytes are missing")
    return data[start:end], end


def _text(value: Value) -> str:
    if not isinstance(value, str):
        raise ValueError("a name is no text")
    return value


def _key(value: Value) -> tuple[Value, ...]:
    if not isinstance(value, list):
        raise ValueError("a key is no list")
    return tuple(value)


#: Reads the change at a place; returns where it ends.
_READERS: Final[dict[bytes, Callable[[bytes, int], tuple[Change, int]]]] = {
    _STORED: _read_stored,
    _ENQUEUED: _read_place,
    _DEQUEUED: _read_dequeued,
    _DISCARDED: _read_discarded,
    _PUT: _read_put,
    _REMOVED: _read_removed,
    _APPENDED: _read_appended,
    _SEALED: _read_sealed,
    _TRUNCATED: _read_truncated,
}
