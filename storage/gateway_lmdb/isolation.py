"""Removal of records that cannot be written from a batch: a safeguard behind the kernel's own validation.

A record that cannot be encoded would stop the writer and thereby the broker. It is left out of the batch, and
everything else is written.
"""

from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from gateway.kernel.journal.changes import Appended
from gateway.kernel.journal.entity_codec import encode_entity
from gateway.kernel.messages.contents import ContentWriter
from gateway.kernel.messages.message import Message, Properties
from gateway.kernel.messages.native_header import native_header
from gateway_lmdb.batch import Batch, TableBatch
from gateway_lmdb.records import encode_enqueued
from gateway_lmdb.stream_batch import StreamBatch

T = TypeVar("T")

_LONGEST_REASON: Final = 300


def isolate(batch: Batch) -> bool:
    """Leave out what cannot be encoded, adding to ``batch.refusals``; return whether there was anything."""
    encode_content = ContentWriter().encode
    before = len(batch.refusals)
    for key, put in list(batch.entities.items()):
        if put is not None and not put.record:
            reason = _failure(encode_entity, put.entity)
            if reason is not None:
                del batch.entities[key]
                batch.refusals.append(f"{put.entity.kind}: {reason}")
    lost = _remove_unencodable(batch, "message", batch.contents, encode_content)
    _remove_unencodable(batch, "message", batch.spilled, encode_content)
    _remove_unencodable(batch, "place in a queue", batch.enqueued, encode_enqueued)
    for position in [at for at, place in batch.enqueued.puts.items() if place.message_id in lost]:
        batch.enqueued.delete(position)  # without its message, the next start would skip it
    _replace_with_empty(batch, batch.streams, encode_content)
    return len(batch.refusals) > before


def _remove_unencodable(batch: Batch, what: str, table: TableBatch[T], encode: Callable[[T], bytes]) -> set[int]:
    """Remove the records that cannot be encoded from a table; return their numbers."""
    failures = _failures(table.puts.items(), encode)
    for number, reason in failures.items():
        table.delete(number)
        batch.refusals.append(f"{what} {number}: {reason}")
    return set(failures)


def _replace_with_empty(batch: Batch, streams: StreamBatch, encode: Callable[[Message], bytes]) -> None:
    """Replace messages of streams that cannot be encoded with empty ones, so that later messages keep their offsets."""
    for stream_id, changes in streams:
        for change in changes:
            if isinstance(change, Appended) and (reason := _failure(encode, change.message)) is not None:
                change.message = Message("", "", native_header(Properties()), b"")
                batch.refusals.append(f"message {change.offset} of stream {stream_id}: {reason}")


def _failures(records: Iterable[tuple[int, T]], encode: Callable[[T], bytes]) -> dict[int, str]:
    found = ((number, _failure(encode, record)) for number, record in records)
    return {number: reason for number, reason in found if reason is not None}


def _failure(encode: Callable[[T], bytes], record: T) -> str | None:
    try:
        bytes(encode(record))
    except Exception as error:  # no record may stop the writer
        return f"{type(error).__name__}: {error}"[:_LONGEST_REASON]
    return None
