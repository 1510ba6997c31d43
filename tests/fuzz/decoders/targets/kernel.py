"""Decoders of the kernel: values, contents, chunks of streams, entities, arguments of consumers."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Final

from gateway.columnar.encoding.formats import FORMATS
from gateway.kernel.errors import PreconditionFailed, ProtocolViolation, StorageError
from gateway.kernel.journal.entity_codec import decode_entity, encode_entity
from gateway.kernel.journal.records.access import UserRecord
from gateway.kernel.journal.records.entity import ENTITY_BY_KIND
from gateway.kernel.journal.records.topology import QueueRecord, VhostRecord
from gateway.kernel.messages import chunks, contents, values
from gateway.kernel.messages.contents import ContentDecoder, ContentReader, ContentWriter, decode_content
from gateway.kernel.messages.long import Long
from gateway.kernel.messages.message import Header, HeaderEdit, Message, Properties, Value
from gateway.kernel.messages.native_header import NATIVE, native_header
from gateway.kernel.streams.filters import Filter, mask_of
from gateway.kernel.streams.reading import queued_messages
from gateway.kernel.streams.requests import parse_request
from tests.fuzz.decoders.corpus import frames_of
from tests.fuzz.decoders.laws import attempt, refused, require, require_same
from tests.fuzz.decoders.target import Target

TOKENS: Final = (
    b'{"$":["bytes","aGk="]}', b'{"$":["int","0x10000000000000000"]}', b'{"$":["decimal","1.5"]}',
    b'{"$":["datetime",["2024-01-01T00:00:00",0]]}', b'{"$":["float","inf"]}', b'{"$":["long","1"]}',
    b'{"$":["dict",{"$":1}]}', b'"headers":', b'"BCC":', b'"CC":', b'"expiration":', b'"priority":', b"null", b"true",
    b"\x01", b"\x02", b"\0\0\0\0\0\0\0\1", b"amqp-0-9-1", b"mqtt", b"stomp", b"plain", b"\xff\xff",
)  # fmt: skip

_KINDS: Final = tuple(sorted(ENTITY_BY_KIND))
#: An edit of a stored header.
_EDIT: Final = HeaderEdit({"x-death": [1]}, ("a",), drops_expiration=True)


def _values(data: bytes) -> None:
    """Fields of a record are encoded as they were decoded."""
    fields = attempt(ValueError, values.loads, data)
    if refused(fields):
        return
    require_same("fields are encoded as they were decoded", values.loads(values.dumps(fields)), fields)


def _native_header(data: bytes) -> None:
    """A header of the broker's own messages is decoded, or refused by all readers."""
    properties = attempt(ProtocolViolation, NATIVE.properties, data)
    header = attempt(ProtocolViolation, NATIVE.header, data)
    edited = attempt(ProtocolViolation, NATIVE.edited, data, _EDIT)
    stamped = attempt(ProtocolViolation, NATIVE.stamped, data, 1_700_000_000)
    if refused(header):
        return
    require(not refused(properties) and not refused(edited) and not refused(stamped), "all readers accept a header")
    require(isinstance(header.priority, int), "a priority is a number", header.priority)
    if not refused(edited):
        again = NATIVE.properties(edited)
        require(again.headers["x-death"] == [1] and again.expiration is None, "a header is edited", again)


def _content(data: bytes) -> None:
    """A content is decoded to what encodes to it; a message of it has a header, or is refused."""
    stored = attempt(StorageError, decode_content, data)
    body_at = attempt(StorageError, contents.body_at, data)
    if not refused(stored):
        contents.is_narrow(data)
        require(not refused(body_at) and data[body_at:] == stored.body, "the body begins where it was found", body_at)
        again = ContentWriter().encode(
            _message(stored.exchange, stored.routing_key, stored.header_format, stored.header, stored.body)
        )
        require_same("a content is encoded as it was decoded", decode_content(again), stored)
        decoder = ContentDecoder()
        for record in (data, data, again, data + b"more"):
            require_same("what was decoded before changes nothing", decoder.decode(record), decode_content(record))
        envelope = data[: len(data) - len(stored.body)]
        attempt(StorageError, ContentReader(FORMATS).decode, envelope)


def _message(exchange: str, routing_key: str, form: str, header: bytes, body: bytes) -> Message:
    class Format:
        name = form

    stored: Header = Header(Format(), header)  # type: ignore[arg-type]  # only the name is written
    return Message(exchange, routing_key, stored, body)


def _chunks(data: bytes) -> None:
    """Chunks of a stream are read to their end, or refused."""
    heads = attempt(StorageError, lambda: list(chunks.chunk_heads(data)))
    attempt(StorageError, chunks.read_head, data)
    found = attempt(StorageError, lambda: list(_first(chunks.entries(data))))
    merged = attempt(StorageError, chunks.merge_chunks, [data, data])
    reader = ContentReader(FORMATS)
    wanted = Filter(["a"], takes_unfiltered=bool(len(data) % 2))
    read = lambda: list(_first(queued_messages(data, 0, 1 << 62, reader, wanted)))  # noqa: E731 - one use, next line
    attempt(StorageError, read)
    unreadable: list[Exception] = []
    skipping = lambda: list(_first(queued_messages(data, 0, 1 << 62, reader, None, unreadable.append)))  # noqa: E731
    attempt(StorageError, skipping)
    wanted.may_match(data)
    mask_of(data, 16)
    if refused(heads):
        require(refused(found) or len(found) >= _MOST, "an incomplete chunk is refused", heads)
    if not refused(found) and found and not refused(heads) and len(heads) == 1:
        again = chunks.encode_chunk(heads[0].first, [(at, value, content) for _, at, value, content in found])
        if len(found) < _MOST:
            require_same("a chunk is encoded as it was decoded", list(chunks.entries(again)), found)
    if not refused(merged):
        attempt(StorageError, lambda: list(_first(chunks.entries(merged))))


#: Messages of a chunk that are decoded: its head may announce more than there are.
_MOST: Final = 2_000


def _first(items: Iterable[object]) -> Iterator[object]:
    for number, item in enumerate(items):
        if number >= _MOST:
            return
        yield item


def _entity(data: bytes) -> None:
    """A record of each kind is encoded as it was decoded."""
    if not data:
        return
    kind, record = _KINDS[data[0] % len(_KINDS)], data[1:]
    entity = attempt(StorageError, decode_entity, kind, record)
    if not refused(entity):
        written = attempt((TypeError, ValueError, RecursionError), encode_entity, entity)
        if not refused(written):
            require_same("an entity is encoded as it was decoded", decode_entity(kind, written), entity)
    attempt(StorageError, decode_entity, "unknown", record)


def _consumer(data: bytes) -> None:
    """Arguments of a stream's consumer are understood or refused."""
    fields = attempt(ValueError, values.loads, data)
    if not refused(fields):
        attempt(PreconditionFailed, parse_request, "queue 'q' in vhost '/'", fields)


# ---- Seeds ----------------------------------------------------------------------------------------------------------

_FIELDS: Final[dict[str, Value]] = {
    "b": b"hi", "i": 2**70, "d": Decimal("1.5"), "t": datetime.fromtimestamp(0, UTC), "f": float("inf"), "l": Long(5),
    "m": {"$": [1]}, "a": [1, None, True, "ü"], "n": {"x": {"y": -1}},
}  # fmt: skip


def _properties() -> Properties:
    headers: dict[str, Value] = {"CC": ["a"], "BCC": ["b"], "x-stream-filter-value": "a"}
    return Properties("text/plain", None, headers, 2, 5, "c", "r", "60000", "m", datetime.fromtimestamp(0, UTC))


def _value_seeds() -> Iterable[bytes]:
    yield values.dumps(_FIELDS)
    yield native_header(_properties()).stored_raw
    yield b"{}"


def _content_seeds() -> Iterable[bytes]:
    yield from (frame[8:] for frame in frames_of("store") if frame.startswith(b"content:"))
    yield ContentWriter().encode(Message("e", "k", native_header(_properties()), b"body"))
    yield ContentWriter().encode(Message("e" * 70_000, "k", native_header(Properties()), b"body"))[:9000]


def _chunk_seeds() -> Iterable[bytes]:
    yield from (frame[6:] for frame in frames_of("store") if frame.startswith(b"chunk:"))
    content = ContentWriter().encode(Message("", "s", native_header(_properties()), b"body"))
    yield chunks.encode_chunk(0, [(1, b"a", content), (2, b"", content)])
    yield chunks.encode_chunk(0, [(1, b"", b"")]) + chunks.encode_chunk(1, [(1, b"", b"x"), (3, b"b", b"y")])


def _entity_seeds() -> Iterable[bytes]:
    for frame in frames_of("store"):
        kind, found, record = frame.removeprefix(b"entity:").partition(b":")
        if found and frame.startswith(b"entity:") and kind.decode() in _KINDS:
            yield bytes((_KINDS.index(kind.decode()),)) + record
    yield bytes((_KINDS.index("vhost"),)) + encode_entity(
        VhostRecord("/", "d", ["t"], "", False, {"tracing-firehose": False}, {"max-queues": 5})
    )
    yield bytes((_KINDS.index("user"),)) + encode_entity(UserRecord("guest", "hash", "sha256", ["administrator"], {}))
    yield bytes((_KINDS.index("queue"),)) + encode_entity(QueueRecord("/", "q", 7, False, {"x-max-length": 5}))


def _consumer_seeds() -> Iterable[bytes]:
    yield values.dumps({"x-stream-offset": "5m", "x-stream-filter": ["a", "b"], "x-stream-match-unfiltered": True})
    yield values.dumps({"x-stream-offset": datetime.fromtimestamp(0, UTC), "x-stream-consumer": "name"})
    yield values.dumps({"x-stream-offset": {"x": b"1"}, "x-stream-filter": "a"})


TARGETS: Final = (
    Target("kernel-values", _values, ("gateway.kernel.messages.values:loads",), _value_seeds, TOKENS),
    Target(
        "kernel-native-header",
        _native_header,
        (
            "gateway.kernel.messages.native_header:NativeFormat.header",
            "gateway.kernel.messages.native_header:NativeFormat.properties",
            "gateway.kernel.messages.native_header:NativeFormat.edited",
            "gateway.kernel.messages.native_header:NativeFormat.stamped",
        ),
        _value_seeds,
        TOKENS,
    ),
    Target(
        "kernel-content",
        _content,
        (
            "gateway.kernel.messages.contents:decode_content", "gateway.kernel.messages.contents:body_at",
            "gateway.kernel.messages.contents:is_narrow", "gateway.kernel.messages.contents:ContentReader.decode",
            "gateway.kernel.messages.contents:ContentDecoder.decode",
        ),
        _content_seeds,
        TOKENS,
    ),
    Target(
        "kernel-chunks",
        _chunks,
        (
            "gateway.kernel.messages.chunks:read_head", "gateway.kernel.messages.chunks:chunk_heads",
            "gateway.kernel.messages.chunks:entries", "gateway.kernel.messages.chunks:merge_chunks",
            "gateway.kernel.streams.reading:queued_messages", "gateway.kernel.streams.filters:Filter.takes",
            "gateway.kernel.streams.filters:Filter.may_match", "gateway.kernel.streams.filters:mask_of",
        ),
        _chunk_seeds,
        TOKENS,
    ),
    Target("kernel-entities", _entity, ("gateway.kernel.journal.entity_codec:decode_entity",), _entity_seeds, TOKENS),
    Target("kernel-stream-arguments", _consumer, ("gateway.kernel.streams.requests:parse_request",), _consumer_seeds,
           (*TOKENS, b'"x-stream-offset"', b'"x-stream-filter"', b'"first"', b'"next"', b'"5m"')),
)  # fmt: skip
