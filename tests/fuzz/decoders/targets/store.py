"""Decoders of the store on disk and of the columnar worker: records, keys, frames, files."""

import io
import json
import os
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, cast

import lmdb

from gateway.columnar.encoding.direct_rows import DirectReader
from gateway.columnar.encoding.envelope_columns import EnvelopeColumns
from gateway.columnar.encoding.formats import envelope_decoder, envelope_reader
from gateway.columnar.encoding.messages import MessageColumns
from gateway.columnar.encoding.rows import rows_between
from gateway.columnar.encoding.trace_events import TraceColumns
from gateway.columnar.tables import adopted, manifest, sealed
from gateway.columnar.tables.sealed import SealedBatch, index_of
from gateway.kernel.errors import ProtocolViolation, Refused, StorageError
from gateway.kernel.journal.changes import Dequeued, Discarded, Enqueued, Lsn, Stored
from gateway.kernel.journal.enqueued_run import EnqueuedRun
from gateway.kernel.messages.chunks import encode_chunk
from gateway.kernel.messages.contents import ContentWriter, decode_content, names_and_header
from gateway.kernel.messages.message import Message, Properties
from gateway.kernel.messages.native_header import native_header
from gateway.worker_process.framing import FrameReader, encode_frame
from gateway_lmdb import quarantine, redo_records
from gateway_lmdb.batch import Batch, Written
from gateway_lmdb.disk import SYSTEM_DISK
from gateway_lmdb.inspection import require_sound, require_whole
from gateway_lmdb.records import decode_enqueued, decode_runs, decode_segment, encode_enqueued, encode_segment
from gateway_lmdb.redo_log import RedoLog, content_of, records_of
from gateway_lmdb.schema import pack_number, pack_place, unpack_number, unpack_place
from gateway_lmdb.staged import Append
from tests.fuzz.decoders.corpus import frames_of
from tests.fuzz.decoders.laws import attempt, refused, require, require_any_cut, require_same
from tests.fuzz.decoders.target import Target

TOKENS: Final = (
    b"entities:", b"contents:", b"enqueued:", b"queue:", b'"id":', b'"queue_id":7', b'"kind":', b'"name":', b"GWAI",
    b'{"schema":1,"batches":[[0,1,2,3]]}', b'{"file":"a.parquet"}', b"\n", b"\0\0\0\2{}", b"\1", b"\xff" * 8,
)  # fmt: skip

#: The era of redo logs.
_ERA: Final = 5


def _enqueued(data: bytes) -> None:
    """Entries of queues are encoded as they were decoded."""
    entry = attempt(StorageError, decode_enqueued, 5, data)
    if not refused(entry):
        again = encode_enqueued(entry)
        require_same("an entry is encoded as it was decoded", again[1:], data[1 : len(again)])
    runs = decode_runs([(pack_number(5), data)])
    if runs is not None:
        found = [each for run in runs for each in (run.each() if isinstance(run, EnqueuedRun) else (run,))]
        require_same("runs have the same entries", [encode_enqueued(each) for each in found], [encode_enqueued(entry)])
    segment = attempt(StorageError, decode_segment, 5, 6, data)
    if not refused(segment):
        again = encode_segment(segment[0], is_filed=segment[1])
        require_same("a segment is encoded as it was decoded", decode_segment(5, 6, again), segment)


def _keys(data: bytes) -> None:
    """Keys are encoded as they were decoded."""
    number = attempt(StorageError, unpack_number, data)
    require(refused(number) or pack_number(number) == data, "a number is encoded as it was decoded", number)
    place = attempt(StorageError, unpack_place, data)
    require(refused(place) or pack_place(*place) == data, "a place is encoded as it was decoded", place)


class _Operations:
    """A transaction that lists what is done to its tables."""

    def __init__(self) -> None:
        self.done: list[tuple[object, bytes, bytes | None]] = []

    def put(self, key: bytes, value: bytes, db: object) -> None:
        self.done.append((db, key, value))

    def delete(self, key: bytes, db: object) -> None:
        self.done.append((db, key, None))


def _redo(data: bytes) -> None:
    """A part of a redo log has the first of its records; a record is applied operation by operation, or refused."""
    records = list(records_of(data, _ERA))
    for end in (len(data) // 2, max(0, len(data) - 1)):
        found = list(records_of(data[:end], _ERA))
        require_same("a part of a log has its first records", found, records[: len(found)])
    for payload in (*records, data):
        listed = attempt(StorageError, redo_records.operations, payload)
        done = _Operations()
        tables = SimpleNamespace(entities=0, contents=1, enqueued=2)
        applied = attempt(StorageError, redo_records.apply, payload, cast("Any", done), cast("Any", tables))
        if not refused(applied):
            require_same("a record is applied as it is listed", done.done, listed)
            entities = {key: value for table, key, value in done.done if table == 0}
            require_same("its entities are those of their table", redo_records.entity_changes(payload), entities)


def _redo_seeds() -> Iterable[bytes]:
    message = Message("", "s", native_header(Properties(headers={"a": 1})), b"body")
    message.id = 10
    batch = Batch(Written(9, 9, 9))
    batch.fold(Append(Lsn(1), [Stored(message), Enqueued(1, 10, 10, 0), Dequeued(3), Discarded(3)]))
    with tempfile.TemporaryDirectory() as directory:
        log = RedoLog(Path(directory), SYSTEM_DISK)
        log.begin(_ERA, has_room=True)
        log.append(batch)
        log.append(batch)
        log.close()
        content = content_of(Path(directory), SYSTEM_DISK).rstrip(b"\0")
    yield content
    yield from records_of(content, _ERA)


def _quarantine(data: bytes) -> None:
    """A record that cannot be read is described; one in quarantine is encoded as it was decoded."""
    key, _, record = data.partition(b"\n")
    aside = quarantine.unreadable_entity(key, record, "it is damaged")
    require_same(
        "a description can be stored",
        quarantine._decoded(b"entities:" + key, quarantine._encoded(aside, b"x")).reason,
        aside.reason,
    )
    attempt(StorageError, quarantine.unreadable_place, key, "it is damaged")
    found = attempt(StorageError, quarantine._decoded, key, record)
    if not refused(found):
        again = quarantine._decoded(key, quarantine._encoded(found, found.record))
        require_same("a record in quarantine is encoded as it was decoded", again, found)


def _worker_frames(data: bytes) -> None:
    """Frames of the worker are found however the bytes are cut."""

    def frames(pieces: Sequence[bytes]) -> object:
        reader = FrameReader()
        found: list[object] = []

        def feed(piece: bytes) -> None:
            for each in reader.feed(piece):
                require(isinstance(each.head, dict), "the head of a frame is an object", each.head)
                found.append(each)

        for piece in pieces:
            refusal = attempt(ProtocolViolation, feed, piece)
            if refused(refusal):
                return found, refusal.kind
        return found, None

    require_any_cut(data, frames)


def _files(data: bytes) -> None:
    """The manifest of a table skips what it cannot read; the index of a sealed file is read or refused."""
    for line in manifest._readable(data):
        list(manifest._names(line))
    assert adopted._listed(json.dumps(sorted(adopted._listed(data))).encode()) == adopted._listed(data)
    directory, names = adopted.last_adoption(data.decode(errors="replace"))
    assert directory or not names
    index = attempt((OSError, ValueError, KeyError, TypeError), sealed._read_index, io.BytesIO(data))
    if not refused(index):
        again = sealed._read_index(io.BytesIO(index_of(*index)))
        require_same("an index is encoded as it was decoded", again, index)


def _columns(data: bytes) -> None:
    """Rows of a stream's chunks become columns, or the chunk is refused."""
    refusals = (StorageError, ProtocolViolation, Refused)

    def rows() -> int:
        return sum(len(each) for each in rows_between([data], 0, 1000))

    attempt(refusals, rows)
    decoder = envelope_decoder()

    def columns() -> EnvelopeColumns:
        return decoder.columns(decode_content(data))

    attempt(refusals, columns)
    attempt(refusals, names_and_header, data)
    messages = MessageColumns(envelope_reader(), DirectReader())
    attempt(refusals, lambda: [each.batch.num_rows for each in messages.pieces([data], 0, 1000, vhost="/", queue="q")])
    attempt(refusals, lambda: [each.batch.num_rows for each in TraceColumns().pieces([data], 0, 1000, vhost="/")])


def _pages(data: bytes) -> None:
    """Pages of LMDB are sound, or their damage is described."""
    descriptor = os.memfd_create("data.mdb")
    try:
        os.write(descriptor, data)
        file = Path(f"/proc/self/fd/{descriptor}")
        attempt(StorageError, require_whole, file)
        attempt(StorageError, require_sound, file)
    finally:
        os.close(descriptor)


def _enqueued_seeds() -> Iterable[bytes]:
    for prefix in (b"enqueued:", b"segment:"):
        yield from (frame[len(prefix) :] for frame in frames_of("store") if frame.startswith(prefix))
    yield b"\1" + bytes(49)
    yield b"\1" + b"\0\0\0\0\0\0\0\7" * 4 + b"\1" + bytes(17)


def _quarantine_seeds() -> Iterable[bytes]:
    yield b'queue:abc\n\1\0\1{"vhost":"/","name":"q","id":7}'
    description = b'{"kind":"queue","name":["/","q"],"reason":"r","queue_id":7}'
    yield b"entities:queue:abc\n\1" + len(description).to_bytes(4) + description + b"record"
    yield b"\0\0\0\0\0\0\0\1\n"


def _file_seeds() -> Iterable[bytes]:
    yield b'{"file":"a.parquet","replaces":["b.parquet"]}\n{"file":1}\ntorn'
    yield b"schema" + index_of(6, [SealedBatch(0, 2, 6, 10), SealedBatch(2, 3, 16, 10)])


def _page_seeds() -> Iterable[bytes]:
    """Yield a file with a large value, and one with a branch page; both with a table inside another."""
    for values in ([b"x" * 5000], [b"y" * 1500] * 4):
        with tempfile.TemporaryDirectory() as directory:
            with lmdb.open(directory, max_dbs=4, map_size=1 << 20) as environment:
                table = environment.open_db(b"entities")
                with environment.begin(write=True) as transaction:
                    for number, value in enumerate(values):
                        transaction.put(bytes((number,)), value, db=table)
            yield (Path(directory) / "data.mdb").read_bytes()


def _column_seeds() -> Iterable[bytes]:
    yield from (frame.partition(b":")[2] for frame in frames_of("store") if frame.startswith((b"chunk:", b"content:")))
    content = ContentWriter().encode(Message("", "s", native_header(Properties(headers={"a": 1})), b"body"))
    yield encode_chunk(0, [(1, b"a", content), (86_400_001, b"", content)])
    yield content
    event = [[1, 2, "publish", *[None] * (len(TraceColumns.schema) - 4)]]
    yield encode_chunk(
        0, [(1, b"", ContentWriter().encode(Message("", "t", native_header(Properties()), json.dumps(event).encode())))]
    )


TARGETS: Final = (
    Target("store-records", _enqueued,
           ("gateway_lmdb.records:decode_enqueued", "gateway_lmdb.records:decode_runs",
            "gateway_lmdb.records:decode_segment"), _enqueued_seeds, TOKENS),
    Target("store-keys", _keys, ("gateway_lmdb.schema:unpack_number", "gateway_lmdb.schema:unpack_place"),
           lambda: (bytes(8), bytes(15) + b"\1"), TOKENS),
    Target("store-redo", _redo,
           ("gateway_lmdb.redo_log:records_of", "gateway_lmdb.redo_records:operations",
            "gateway_lmdb.redo_records:apply", "gateway_lmdb.redo_records:entity_changes"), _redo_seeds,
           (b"GWR1", pack_number(_ERA), b"\0", b"\1", b"\2", b"\x80", b"\x81", b"\x82", b"\0\x08")),
    Target(
        "store-quarantine",
        _quarantine,
        (
            "gateway_lmdb.quarantine:unreadable_entity", "gateway_lmdb.quarantine:unreadable_place",
            "gateway_lmdb.quarantine:_decoded",
        ),
        _quarantine_seeds,
        TOKENS,
    ),
    Target("worker-frames", _worker_frames, ("gateway.worker_process.framing:FrameReader.feed",),
           lambda: (encode_frame({"a": 1}, b"xyz") + encode_frame({}), encode_frame({"b": [1, "ü"]}, b"")), TOKENS,
           longest=1024),
    Target("worker-files", _files,
           ("gateway.columnar.tables.manifest:_readable", "gateway.columnar.tables.sealed:_read_index",
            "gateway.columnar.tables.adopted:_listed", "gateway.columnar.tables.adopted:last_adoption"),
           _file_seeds, TOKENS),
    Target(
        "worker-columns",
        _columns,
        (
            "gateway.columnar.encoding.rows:rows_between", "gateway.columnar.encoding.messages:MessageColumns.pieces",
            "gateway.columnar.encoding.trace_events:TraceColumns.pieces",
            "gateway.columnar.encoding.envelope_columns:EnvelopeDecoder.columns",
            "gateway.kernel.messages.contents:names_and_header",
    ),
        _column_seeds,
        TOKENS,
    ),
    Target("store-pages", _pages,
           ("gateway_lmdb.inspection:require_whole", "gateway_lmdb.inspection:require_sound"), _page_seeds,
           (b"\0\0\x01\0", b"\0\0\x02\0", b"\0\0\x04\0", b"\xde\xc0\xef\xbe", b"\xff" * 8), longest=64 * 1024),
)  # fmt: skip
