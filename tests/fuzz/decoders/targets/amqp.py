"""Decoders of AMQP 0-9-1: tables, properties, methods, contents, logins."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final

from gateway.kernel.errors import NotImplementedHere, PreconditionFailed, ProtocolViolation
from gateway.kernel.messages.message import HeaderEdit, Properties
from gateway_amqp import login, not_ready, splices, tables
from gateway_amqp.content import BODY, FRAME_END, HEADER, METHOD, Assembly, read_frame_head, whole_content
from gateway_amqp.errors import FrameError
from gateway_amqp.header import AmqpHeaderFormat
from gateway_amqp.methods import MalformedMethod, UnknownMethod, decode_method, encode_method, index_of
from gateway_amqp.offsets import split_around_offset
from gateway_amqp.properties import decode_properties, encode_properties, ends_at, scan_properties, splice_property
from gateway_amqp.publishing import parse_publish
from gateway_amqp.tables import MalformedField, decode_table, encode_table
from gateway_amqp.timestamp import Timestamp
from tests.fuzz.decoders.corpus import frames_of
from tests.fuzz.decoders.laws import attempt, refused, require, require_same
from tests.fuzz.decoders.target import Target

TOKENS: Final = (
    b"AMQP\0\0\x09\x01", b"\xce", b"\x00\x3c\x00\x28", b"\x00\x3c\x00\x00", b"\x00\x0a\x00\x0b", b"\x01\x00\x01",
    b"S\0\0\0\x01a", b"F\0\0\0\0", b"A\0\0\0\0", b"t\x01", b"I\0\0\0\x01", b"l" + bytes(8), b"T" + b"\xff" * 8,
    b"D\xff\xff\xff\xff\xff", b"V", b"x\0\0\0\0", b"\x02CC", b"\x03BCC", b"\x07x-death", b"\x0fx-stream-offset",
    b"\xf8\xfc", b"\x20\0", b"\0\x01", b"PLAIN", b"AMQPLAIN",
)  # fmt: skip

#: The published method index and arguments that a content follows.
_PUBLISH: Final = b"\x00\x3c\x00\x28"


def _field_table(data: bytes) -> None:
    """A table is refused by all readers or by none, and is encoded to bytes that mean the same."""
    decoded = attempt(MalformedField, decode_table, data)
    end = attempt(MalformedField, splices.check_table, data)
    require(refused(decoded) == refused(end), "check_table and decode_table refuse alike", decoded, end)
    attempt(MalformedField, tables.decode_fields, data)
    attempt(MalformedField, tables.read_short_text, data, 0, len(data))
    attempt(MalformedField, tables.contents_at, data, 0, len(data))
    value = attempt(MalformedField, tables.read_value, data, 0, len(data))
    if not refused(value):
        require_same("a value is encoded as it was decoded", _after_encoding(value[0]), value[0])
    if refused(decoded):
        return
    table, stop = decoded
    require_same("check_table finds the end", stop, end)
    require_same("a table is encoded as it was decoded", decode_table(encode_table(table))[0], table)
    _edited_table(data[:stop], table)


def _after_encoding(value: Any) -> object:
    encoded = tables.encode_value(value)
    return tables.read_value(encoded, 0, len(encoded))[0]


def _edited_table(raw: bytes, table: dict[str, Any]) -> None:
    """Editing a table keeps its other fields."""
    fields = list(splices.fields_of(raw))
    require(sum(field.end - field.start for field in fields) == len(raw) - 4, "fields_of covers the table")
    require_same("removing nothing changes nothing", splices.without_fields(raw, ()), raw)
    less = decode_table(splices.without_fields(raw, ("x-death", "CC")))[0]
    require_same("others stay", less, {name: value for name, value in table.items() if name not in ("x-death", "CC")})
    more = decode_table(splices.with_field(raw, "x-new", 7))[0]
    require_same("a field is set", more["x-new"], 7)
    deaths: list[Any] = [{"count": 1, "reason": "expired"}, *_deaths_in(table)]
    rewritten = decode_table(splices.with_array(raw, "x-death", deaths))[0]
    require(len(rewritten["x-death"]) == len(deaths), "an array is set", rewritten["x-death"], deaths)


def _deaths_in(table: dict[str, Any]) -> list[Any]:
    deaths = table.get("x-death")
    return deaths[:3] if isinstance(deaths, list) else []


def _properties(data: bytes) -> None:
    """All readers of properties refuse alike; edits keep the rest."""
    values = attempt(MalformedField, scan_properties, data)
    decoded = attempt(MalformedField, decode_properties, data)
    require(refused(values) == refused(decoded), "scan_properties and decode_properties refuse alike", values, decoded)
    header = attempt((MalformedField, PreconditionFailed), AmqpHeaderFormat().header, data)
    if refused(values) or refused(decoded):
        require(refused(header), "a header that cannot be decoded is refused")
        return
    require_same("properties are encoded as they were decoded", _encoded_again(decoded), decoded)
    for name in ("headers", "expiration", "timestamp"):
        removed = decode_properties(splice_property(data, name, b""))
        require(getattr(removed, name) in (None, {}), "a property is removed", name)
        require(2 <= ends_at(data, name) <= len(data), "a property ends in its bytes", name)
    _offset(data)
    if not refused(header):
        form = header.format
        edit = HeaderEdit({"x-death": [], "x-new": "1"}, ("CC",), drops_expiration=True)
        edited = form.properties(form.edited(header.raw, edit))
        require(edited.expiration is None and edited.headers["x-new"] == "1", "a header is edited", edited)
        form.properties(form.stamped(header.raw, 1_700_000_000))
        form.header(header.stored_raw)


def _encoded_again(decoded: Properties) -> Properties:
    return decode_properties(encode_properties(decoded))


def _offset(data: bytes) -> None:
    front, back = split_around_offset(data)
    headers = decode_properties(front + (7).to_bytes(8) + back).headers
    require(headers["x-stream-offset"] == 7, "the offset of a stream is the last header", headers)


def _method(data: bytes) -> None:
    """A method is encoded as it was decoded; both readers of basic.publish agree."""
    index_of(data)
    method = attempt((MalformedMethod, UnknownMethod), decode_method, data)
    if data[:4] == _PUBLISH:
        short = attempt((FrameError, NotImplementedHere), parse_publish, data)
        if not refused(short) and not refused(method):
            fields: Any = method
            same = (fields.exchange, fields.routing_key, fields.mandatory)
            require_same("both decoders of basic.publish agree", short, same)
    if not refused(method):
        again = decode_method(encode_method(1, method)[7:-1])
        require_same("a method is encoded as it was decoded", dict(again), dict(method))


def _content(data: bytes) -> None:
    """The short way of a content and the way frame by frame agree."""
    short = whole_content(data, 0, len(data), 1)
    assembly = Assembly(_PUBLISH)
    at = 0
    for kind, channel, payload, end in _frames(data):
        if channel != 1:
            break
        if refused(attempt(FrameError, assembly.add, kind, payload)):
            break
        at = end
        if assembly.is_complete:
            break
    if short is not None:
        long = (assembly.properties, assembly.body, at) if assembly.is_complete else None
        require_same("a content is the same in one piece and frame by frame", short, long)


def _frames(data: bytes) -> Iterator[tuple[int, int, bytes, int]]:
    """Yield type, channel, payload and end of each complete frame."""
    at = 0
    while len(data) - at >= 8:
        kind, channel, size = read_frame_head(data, at)
        stop = at + 7 + size
        if stop >= len(data) or data[stop] != FRAME_END:
            return
        yield kind, channel, data[at + 7 : stop], stop + 1
        at = stop + 1


def _login(data: bytes) -> None:
    """A response of a login mechanism is text, or is refused."""
    for decode in (login._plain, login._amqplain):
        attempt(ProtocolViolation, decode, data)
    answer = not_ready.refusal(data, "the node starts")
    require(answer is None or len(answer) < 1024, "a refusal is short")


# ---- Seeds ----------------------------------------------------------------------------------------------------------


def _payloads(wanted: int) -> Iterator[bytes]:
    for frame in frames_of("amqp"):
        for kind, _, payload, _ in _frames(frame):
            if kind == wanted:
                yield payload


def _method_seeds() -> Iterable[bytes]:
    yield from _payloads(METHOD)
    yield _PUBLISH + b"\0\0\x01x\x01k\x01"


def _property_seeds() -> Iterable[bytes]:
    for payload in _payloads(HEADER):
        yield payload[12:]
    yield encode_properties(
        Properties(
            "text/plain", "gzip", {"CC": ["a"], "BCC": ["b"], "n": 1}, 2, 9, "c", "amq.rabbitmq.reply-to", "60000",
            "m", datetime.fromtimestamp(0, UTC), "t", "guest", "app", "cluster",
        )
    )  # fmt: skip
    yield encode_properties(Properties(headers={"x-stream-offset": 3}, content_type="a/b"))


def _table_seeds() -> Iterable[bytes]:
    for payload in _property_seeds():
        headers = attempt(MalformedField, scan_properties, payload)
        if not refused(headers) and "headers" in headers:
            yield headers["headers"]
    for payload in _payloads(METHOD):
        method = attempt((MalformedMethod, UnknownMethod), decode_method, payload)
        for _, value in [] if refused(method) else dict(method).items():
            if isinstance(value, dict) and value:
                yield encode_table(value)
    yield encode_table(
        {
            "s": "text", "b": b"\xff", "i": 1, "l": 2**40, "f": 0.5, "d": Decimal("-1.25"), "n": None, "?": True,
            "t": datetime.fromtimestamp(1, UTC), "T": Timestamp(2**60), "a": [1, ["x"], {}], "x-death": [{"count": 1}],
        }
    )  # fmt: skip
    yield b"\0\0\0\x2e\1bb\xff\1BB\xff\1ss\0\1\1uu\0\1\1ii\0\0\0\1\1LL" + bytes(8) + b"\1ff?\0\0\0\1xx\0\0\0\0\1VV"


def _content_seeds() -> Iterable[bytes]:
    contents, latest = [], b""
    for frame in frames_of("amqp"):
        if frame[:1] == bytes((HEADER,)):
            latest = frame
        elif frame[:1] == bytes((BODY,)) and latest:
            contents.append(_on_channel_1(latest) + _on_channel_1(frame))
            latest = b""
    yield from contents
    head = b"\x02\0\x01\0\0\0\x0e\0\x3c\0\0" + (2).to_bytes(8) + b"\0\0\xce"
    yield head + b"\x03\0\x01\0\0\0\x02hi\xce"
    yield head + b"\x03\0\x01\0\0\0\x01h\xce\x03\0\x01\0\0\0\x01i\xce"


def _on_channel_1(frame: bytes) -> bytes:
    return frame[:1] + b"\0\1" + frame[3:]


def _login_seeds() -> Iterable[bytes]:
    yield b"\0guest\0guest"
    yield encode_table({"LOGIN": "guest", "PASSWORD": "guest"})[4:]
    yield b"AMQP\0\0\x09\x01"
    yield b"AMQP\x03\x01\0\0"


TARGETS: Final = (
    Target(
        "amqp-tables",
        _field_table,
        (
            "gateway_amqp.tables:decode_table", "gateway_amqp.tables:decode_fields",
            "gateway_amqp.tables:read_short_text", "gateway_amqp.tables:contents_at", "gateway_amqp.tables:read_value",
            "gateway_amqp.tables:kind_at", "gateway_amqp.splices:check_table", "gateway_amqp.splices:fields_of",
            "gateway_amqp.splices:without_fields", "gateway_amqp.splices:with_field",
            "gateway_amqp.splices:with_fields", "gateway_amqp.splices:with_array",
        ),
        _table_seeds,
        TOKENS,
    ),
    Target(
        "amqp-properties",
        _properties,
        (
            "gateway_amqp.properties:decode_properties", "gateway_amqp.properties:scan_properties",
            "gateway_amqp.properties:splice_property", "gateway_amqp.properties:ends_at",
            "gateway_amqp.header:AmqpHeaderFormat.header", "gateway_amqp.header:AmqpHeaderFormat.properties",
            "gateway_amqp.header:AmqpHeaderFormat.edited", "gateway_amqp.header:AmqpHeaderFormat.stamped",
            "gateway_amqp.offsets:split_around_offset", "gateway_amqp.splices:mentions",
        ),
        _property_seeds,
        TOKENS,
    ),
    Target(
        "amqp-methods",
        _method,
        (
            "gateway_amqp.methods:decode_method", "gateway_amqp.methods:index_of",
            "gateway_amqp.publishing:parse_publish",
        ),
        _method_seeds,
        TOKENS,
    ),
    Target(
        "amqp-content",
        _content,
        ("gateway_amqp.content:whole_content", "gateway_amqp.content:Assembly.add"),
        _content_seeds,
        TOKENS,
    ),
    Target(
        "amqp-login",
        _login,
        ("gateway_amqp.login:_plain", "gateway_amqp.login:_amqplain", "gateway_amqp.not_ready:refusal"),
        _login_seeds,
        TOKENS,
    ),
)  # fmt: skip
