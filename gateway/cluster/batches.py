"""A batch of a log as bytes: which queue, epoch and number it is, and a check sum over all of it.

A record that is larger than a batch is cut into pieces, which batches hold one after the other.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from zlib import crc32

from gateway.cluster.errors import LogGap
from gateway.cluster.queue_log import Epoch, QueueId

_VERSION: Final = 1

#: Check sum of everything after it, version, whether the first piece continues a record, queue, epoch, number, first
#: index, floor, number of pieces.
_HEAD: Final = struct.Struct(">IB?QQQQQI")
_CHECKED_FROM: Final = 4

#: The length of a piece; the highest bit says that the record goes on in the next one.
_LENGTH: Final = struct.Struct(">I")
_GOES_ON: Final = 1 << 31

#: The bytes of a batch beside its records, and of a piece beside its data.
HEAD_BYTES: Final = _HEAD.size
PIECE_BYTES: Final = _LENGTH.size


@dataclass(frozen=True, slots=True)
class RecordPiece:
    """A record, or a part of one that is larger than a batch."""

    data: bytes
    goes_on: bool = False


@dataclass(frozen=True, slots=True)
class LogBatch:
    """Pieces of records that are stored together.

    ``number`` counts the batches of a log over all epochs, from 1. ``first_index`` is the index of the first piece's
    record; ``continues`` says that the record began in an earlier batch. ``floor`` is the number of the first batch
    that is still needed: those before it may be missing.
    """

    queue: QueueId
    epoch: Epoch
    number: int
    first_index: int
    floor: int
    pieces: Sequence[RecordPiece]
    continues: bool = False


def encode_batch(batch: LogBatch) -> bytes:
    """Return the bytes of a batch."""
    pieces = [(piece.data, piece.goes_on) for piece in batch.pieces]
    return encode_pieces(
        batch.queue, batch.epoch, batch.number, batch.first_index, batch.floor, pieces, batch.continues
    )


def encode_pieces(
    queue: QueueId,
    epoch: Epoch,
    number: int,
    first_index: int,
    floor: int,
    pieces: Sequence[tuple[bytes, bool]],
    continues: bool,
) -> bytes:
    """Return the bytes of a batch of pieces, each with whether its record goes on. It makes no objects of them."""
    parts = [b""]
    for data, goes_on in pieces:
        parts.append(_LENGTH.pack(len(data) | (_GOES_ON if goes_on else 0)))
        parts.append(data)
    numbers = (queue, epoch, number, first_index, floor, len(pieces))
    parts[0] = _HEAD.pack(0, _VERSION, continues, *numbers)[_CHECKED_FROM:]
    rest = b"".join(parts)
    return crc32(rest).to_bytes(4, "big") + rest


def decode_batch(data: bytes) -> LogBatch:
    """Return the batch in some bytes. :raises LogGap: if they are damaged, or written by a newer gateway."""
    if len(data) < HEAD_BYTES:
        raise LogGap(f"a batch of {len(data)} bytes is too short")
    check_sum, version, continues, queue, epoch, number, first_index, floor, count = _HEAD.unpack_from(data)
    if crc32(memoryview(data)[_CHECKED_FROM:]) != check_sum:
        raise LogGap(f"the check sum of a batch is wrong (queue {queue}, epoch {epoch}, number {number})")
    if version != _VERSION:
        raise LogGap(f"a batch has version {version}; this gateway reads version {_VERSION}")
    pieces = []
    at = HEAD_BYTES
    for _ in range(count):
        if len(data) < at + PIECE_BYTES:
            raise LogGap(f"batch {number} of queue {queue} ends within a record")
        (length,) = _LENGTH.unpack_from(data, at)
        start = at + PIECE_BYTES
        at = start + (length & ~_GOES_ON)
        if len(data) < at:
            raise LogGap(f"batch {number} of queue {queue} ends within a record")
        pieces.append(RecordPiece(data[start:at], bool(length & _GOES_ON)))
    if at != len(data):
        raise LogGap(f"batch {number} of queue {queue} is longer than its records")
    return LogBatch(QueueId(queue), Epoch(epoch), number, first_index, floor, pieces, continues)
