"""The binary layout of records. Each begins with the version of its layout; integers are big-endian.

content: see ``gateway.kernel.messages.contents``.
enqueued: version, queue id, message id, enqueued at (ms since the epoch), delivery count, body size, priority, due at,
    expires at (both ms since the epoch, 0 for none).
segment: version, end, size, times of the first and the last message (ms), whether it is in a file, then its bloom
    filter.
stream: the first offset. chunk: see ``gateway.kernel.messages.chunks``.
entity: see ``gateway.kernel.journal.entity_codec``.
"""

import struct
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Final

from gateway.kernel.errors import UnreadableRecord
from gateway.kernel.journal.changes import Enqueued, StreamSegment
from gateway.kernel.journal.enqueued_run import EnqueuedRun
from gateway.kernel.messages.contents import newer

ENQUEUED_VERSION: Final = 1
SEGMENT_VERSION: Final = 1

_ENQUEUED: Final = struct.Struct(">BQQQIIBQQ")
_SEGMENT: Final = struct.Struct(">BQQQQ?")
_pack_enqueued: Final = _ENQUEUED.pack

#: The size of a position, which is the key.
_KEY_BYTES: Final = 8

#: The largest number in each field of ``_ENQUEUED`` after the version.
_LARGEST: Final = (2**64 - 1, 2**64 - 1, 2**64 - 1, 2**32 - 1, 2**32 - 1, 2**8 - 1, 2**64 - 1, 2**64 - 1)


def encode_enqueued(enqueued: Enqueued) -> bytes:
    """Return the record of a queue entry; the position is the key.

    A number out of range is replaced by the nearest valid one: a time that far away is never reached, and the message
    must not be lost.
    """
    try:
        return _pack_enqueued(  # without a tuple of the numbers: 0.14 instead of 0.22 µs, compiled
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
    except struct.error:
        return _bounded(enqueued)


def _bounded(enqueued: Enqueued) -> bytes:
    numbers = (
        enqueued.queue_id,
        enqueued.message_id,
        enqueued.enqueued_at_ms,
        enqueued.delivery_count,
        enqueued.body_size,
        enqueued.priority,
        enqueued.due_at_ms,
        enqueued.expires_at_ms,
    )
    bounded = [min(max(number, 0), most) for number, most in zip(numbers, _LARGEST, strict=True)]
    return _ENQUEUED.pack(ENQUEUED_VERSION, *bounded)


def decode_enqueued(position: int, record: bytes) -> Enqueued:
    """Return the change in a record.

    :raises UnreadableRecord: when the record is incomplete.
    :raises StorageError: when a newer gateway wrote it.
    """
    if len(record) < _ENQUEUED.size:
        raise UnreadableRecord("the record is incomplete")
    version, queue_id, message_id, *rest = _ENQUEUED.unpack_from(record)
    _refuse_newer("a place in a queue", version, ENQUEUED_VERSION)
    return Enqueued(queue_id, position, message_id, *rest)


def decode_runs(piece: Sequence[tuple[bytes, bytes]]) -> Iterator[EnqueuedRun | Enqueued] | None:
    """Return the changes of each queue in keys and records, as a run where it can be one.

    ``None`` if they have to be read one by one: when one is incomplete, or written by another version.
    """
    keys, records = zip(*piece, strict=True)
    if {*map(len, keys)} != {_KEY_BYTES} or {*map(len, records)} != {_ENQUEUED.size}:
        return None
    versions, queue_ids, *columns = zip(*_ENQUEUED.iter_unpack(b"".join(records)), strict=True)
    if {*versions} != {ENQUEUED_VERSION}:
        return None
    columns.insert(0, struct.unpack(f">{len(keys)}Q", b"".join(keys)))
    return _runs(queue_ids, columns)


def _runs(queue_ids: Sequence[int], columns: Sequence[Sequence[int]]) -> Iterator[EnqueuedRun | Enqueued]:
    """Yield the changes of each queue; the columns are the other parameters of ``Enqueued``."""
    if len({*queue_ids}) > 1:
        order = itemgetter(*sorted(range(len(queue_ids)), key=queue_ids.__getitem__))
        queue_ids, columns = order(queue_ids), [order(column) for column in columns]
    first = 0
    for queue_id, same in groupby(queue_ids):
        last = first + sum(1 for _ in same)
        part = [column[first:last] for column in columns]
        *plain, priorities, due_at_ms, expires_at_ms = part
        if any(priorities) or any(due_at_ms) or any(expires_at_ms):
            yield from (Enqueued(queue_id, *row) for row in zip(*part, strict=True))
        else:
            yield EnqueuedRun(queue_id, *plain)
        first = last


def encode_segment(segment: StreamSegment, *, is_filed: bool) -> bytes:
    """Return the record of a sealed segment; stream and first offset are the key."""
    head = _SEGMENT.pack(SEGMENT_VERSION, segment.end, segment.size_bytes, segment.first_ms, segment.last_ms, is_filed)
    return head + segment.bloom


def decode_segment(stream_id: int, first: int, record: bytes) -> tuple[StreamSegment, bool]:
    """Return the segment in a record, and whether it is in a file.

    :raises UnreadableRecord: when the record is incomplete.
    :raises StorageError: when a newer gateway wrote it.
    """
    if len(record) < _SEGMENT.size:
        raise UnreadableRecord("the record is incomplete")
    version, end, size_bytes, first_ms, last_ms, is_filed = _SEGMENT.unpack_from(record)
    _refuse_newer("a segment of a stream", version, SEGMENT_VERSION)
    bloom = record[_SEGMENT.size :]
    return StreamSegment(stream_id, first, end, size_bytes, first_ms, last_ms, True, bloom), is_filed


def _refuse_newer(what: str, written: int, known: int) -> None:
    if written > known:
        raise newer(what, written, known)
