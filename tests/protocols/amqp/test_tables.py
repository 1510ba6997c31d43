"""Codec of field tables: the meaning of each type, refusal of malformed tables, and round trips."""

import importlib
import struct
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.kernel.messages.message import Value
from gateway_amqp.tables import (
    MAX_DEPTH,
    CutShort,
    Long,
    MalformedField,
    Timestamp,
    decode_fields,
    decode_table,
    encode_table,
)

NOON = datetime(2024, 2, 29, 12, 0, 0, tzinfo=UTC)


def sized(content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + content


def field(value: bytes, name: bytes = b"k") -> bytes:
    return bytes((len(name),)) + name + value


READ = [
    #            on the wire                                            the value
    pytest.param(b"t\x00", False, id="t: 0 is false"),
    pytest.param(b"t\x02", True, id="t: anything else is true"),
    pytest.param(b"b\xff", -1, id="b: int8"),
    pytest.param(b"B\xff", 255, id="B: uint8"),
    pytest.param(b"s\xff\xfe", -2, id="s: int16, not a short string"),
    pytest.param(b"u\xff\xfe", 65534, id="u: uint16"),
    pytest.param(b"I\xff\xff\xff\xff", -1, id="I: int32"),
    pytest.param(b"i\xff\xff\xff\xff", 4294967295, id="i: uint32"),
    pytest.param(b"l" + b"\xff" * 8, -1, id="l: int64"),
    pytest.param(b"L" + b"\xff" * 8, -1, id="L: int64 as well"),
    pytest.param(b"f\x3f\x80\x00\x00", 1.0, id="f: float"),
    pytest.param(b"d\x3f\xf0" + bytes(6), 1.0, id="d: double"),
    pytest.param(b"D\x02\x00\x00\x01\x3a", Decimal("3.14"), id="D: decimal"),
    pytest.param(b"D\x02\xff\xff\xfe\xc6", Decimal("-3.14"), id="D: signed, 4.2.5.5"),
    pytest.param(b"S" + sized("grün".encode()), "grün", id="S: UTF-8 is text"),
    pytest.param(b"S" + sized(b"\xff\x00"), b"\xff\x00", id="S: anything else is bytes"),
    pytest.param(b"x" + sized(b"abc"), b"abc", id="x: bytes even if UTF-8"),
    pytest.param(b"V", None, id="V: void"),
    pytest.param(b"A" + sized(b"VB\x05"), [None, 5], id="A: array"),
    pytest.param(b"A" + sized(b""), [], id="A: empty"),
    pytest.param(b"F" + sized(field(b"V", b"in")), {"in": None}, id="F: table"),
    pytest.param(b"T" + struct.pack(">Q", 1709208000), NOON, id="T: seconds in UTC"),
    pytest.param(b"T" + struct.pack(">Q", 1709208000000), Timestamp(1709208000000), id="T: milliseconds stay a number"),
    pytest.param(b"T" + b"\xff" * 8, Timestamp(2**64 - 1), id="T: unsigned"),
]


@pytest.mark.parametrize(("wire", "value"), READ)
def test_each_type_is_decoded_as_in_rabbitmq(wire: bytes, value: Value) -> None:
    table = sized(field(wire))
    fields, end = decode_table(b"??" + table + b"??", 2)
    assert fields == {"k": value}
    assert type(fields["k"]) is type(value)
    assert end == 2 + len(table)


@pytest.mark.parametrize(("wire", "value"), READ)
def test_truncated_values_of_each_type_are_refused(wire: bytes, value: Value) -> None:
    for cut in range(len(wire)):
        with pytest.raises(CutShort):
            decode_table(sized(field(wire[:cut])))


WRITTEN = [
    pytest.param(True, b"t\x01", id="bool is not an integer"),
    pytest.param(2**31 - 1, b"I\x7f\xff\xff\xff", id="32 bits if it fits"),
    pytest.param(-(2**31), b"I\x80\x00\x00\x00", id="32 bits, signed"),
    pytest.param(2**31, b"l" + struct.pack(">q", 2**31), id="else 64 bits"),
    pytest.param(Long(1), b"l" + struct.pack(">q", 1), id="Long is always 64 bits"),
    pytest.param(1.0, b"d\x3f\xf0" + bytes(6), id="float is a double"),
    pytest.param("grün", b"S" + sized("grün".encode()), id="text"),
    pytest.param(b"abc", b"x" + sized(b"abc"), id="bytes"),
    pytest.param(Decimal("-3.14"), b"D\x02\xff\xff\xfe\xc6", id="decimal"),
    pytest.param(Decimal("2E+2"), b"D\x00\x00\x00\x00\xc8", id="decimal without places"),
    pytest.param(NOON, b"T" + struct.pack(">Q", 1709208000), id="time"),
    pytest.param(NOON.replace(tzinfo=None), b"T" + struct.pack(">Q", 1709208000), id="time without zone is UTC"),
    pytest.param(
        NOON.astimezone(timezone(timedelta(hours=5))), b"T" + struct.pack(">Q", 1709208000), id="time of a zone"
    ),
    pytest.param(Timestamp(2**64 - 1), b"T" + b"\xff" * 8, id="Timestamp"),
    pytest.param(None, b"V", id="void"),
    pytest.param([1, ["a"]], b"A" + sized(b"I\x00\x00\x00\x01A" + sized(b"S" + sized(b"a"))), id="array"),
    pytest.param({"in": {}}, b"F" + sized(field(b"F" + sized(b""), b"in")), id="table"),
]


@pytest.mark.parametrize(("value", "wire"), WRITTEN)
def test_each_value_is_encoded_as_by_clients(value: Value, wire: bytes) -> None:
    assert encode_table({"k": value}) == sized(field(wire))


UNWRITABLE = [
    pytest.param({"n" * 256: 1}, id="a name of 256 bytes"),
    pytest.param({"ü" * 128: 1}, id="a name of 128 characters and 256 bytes"),
    pytest.param({"k": 2**63}, id="an integer beyond 64 bits"),
    pytest.param({"k": Decimal(2**31)}, id="a decimal beyond 32 bits"),
    pytest.param({"k": Decimal("1E-256")}, id="a decimal of 256 places"),
    pytest.param({"k": Decimal("1E+999999")}, id="an astronomical decimal"),
    pytest.param({"k": Decimal("NaN")}, id="a decimal that is not a number"),
    pytest.param({"k": datetime(1969, 12, 31, tzinfo=UTC)}, id="a time before 1970"),
    pytest.param({"k": "\ud800"}, id="text without a UTF-8 encoding"),
    pytest.param({"k": object()}, id="any other object"),
]


@pytest.mark.parametrize("table", UNWRITABLE)
def test_values_that_amqp_cannot_encode_raise_a_value_error(table: dict[str, Value]) -> None:
    with pytest.raises(ValueError, match=r"."):
        encode_table(table)


REFUSED = [
    pytest.param(field(b"U\x00"), "unknown field type b'U' at byte 6", id="unknown type"),
    pytest.param(b"\x05ab", "short string at byte 4 is cut short", id="name longer than its table"),
    pytest.param(b"\x02\xff\xfeV", "short string at byte 4 is not UTF-8", id="name not UTF-8"),
    pytest.param(b"\x01k", "value at byte 6 is missing", id="name without value"),
    pytest.param(field(b"S\x00\x00\x00\x09abc"), "9 bytes announced at byte 7, but only 3 follow", id="text too long"),
    pytest.param(
        field(b"A\x00\x00\x00\x02I\x00" + bytes(9)), "value at byte 12 is cut short", id="item beyond its array"
    ),
    pytest.param(
        field(b"F" + sized(b"\x09abc") + bytes(9)), "short string at byte 11", id="name beyond the inner table"
    ),
]


@pytest.mark.parametrize(("content", "complaint"), REFUSED)
def test_a_malformed_table_is_refused_with_reason_and_position(content: bytes, complaint: str) -> None:
    with pytest.raises(MalformedField, match=complaint):
        decode_table(sized(content))


def test_the_first_of_two_fields_with_one_name_counts() -> None:
    assert decode_table(sized(field(b"B\x01") + field(b"B\x02"))) == ({"k": 1}, 12)


def test_fields_without_a_length_are_decoded_as_in_amqplain() -> None:
    assert decode_fields(field(b"S" + sized(b"guest"), b"LOGIN")) == {"LOGIN": "guest"}


def nested(depth: int, kind: bytes) -> bytes:
    """Return nested tables, ``depth`` in all, or arrays in a table."""
    content = b""
    for level in range(depth - 1):
        content = kind + sized(content)
        if kind == b"F" or level == depth - 2:
            content = field(content)
    return sized(content)


@pytest.mark.parametrize("kind", [b"A", b"F"])
def test_nesting_is_decoded_up_to_the_limit(kind: bytes) -> None:
    fields, _ = decode_table(nested(MAX_DEPTH, kind))
    assert encode_table(fields) == nested(MAX_DEPTH, kind)
    for depth in (MAX_DEPTH + 1, 20_000):
        with pytest.raises(MalformedField, match="inside each other"):
            decode_table(nested(depth, kind))


def test_nesting_is_encoded_up_to_the_limit() -> None:
    table: dict[str, Value] = {}
    for _ in range(MAX_DEPTH):
        table = {"k": table}
    with pytest.raises(ValueError, match="inside each other"):
        encode_table(table)


names = st.text(st.characters(codec="utf-8"), max_size=60)
values: st.SearchStrategy[Value] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text(st.characters(codec="utf-8"))
    | st.binary()
    | st.datetimes(datetime(1970, 1, 1), timezones=st.just(UTC)).map(lambda time: time.replace(microsecond=0))
    | st.builds(
        lambda number, places: Decimal(number).scaleb(-places), st.integers(-(2**31), 2**31 - 1), st.integers(0, 255)
    ),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=4),
    max_leaves=12,
)
tables = st.dictionaries(names, values, max_size=5)


@given(tables)
def test_encoded_values_are_decoded_unchanged(table: dict[str, Value]) -> None:
    encoded = encode_table(table)
    assert decode_table(encoded) == (table, len(encoded))


@given(tables, st.data())
def test_a_truncated_table_is_refused(table: dict[str, Value], data: st.DataObject) -> None:
    encoded = encode_table(table)
    cut = data.draw(st.integers(0, len(encoded) - 1))
    with pytest.raises(CutShort):
        decode_table(encoded[:cut])


@given(tables, st.data())
def test_damaged_tables_are_decoded_or_refused(table: dict[str, Value], data: st.DataObject) -> None:
    damaged = bytearray(encode_table(table))
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    try:
        fields, end = decode_table(bytes(damaged))
    except MalformedField:
        return
    assert end <= len(damaged)
    assert repr(decode_table(encode_table(fields))[0]) == repr(fields)


@given(st.binary().map(sized) | st.binary())
def test_arbitrary_bytes_are_refused_or_decoded_and_can_be_encoded(content: bytes) -> None:
    try:
        fields, _ = decode_table(content)
    except MalformedField:
        return
    assert repr(decode_table(encode_table(fields))[0]) == repr(fields)


def test_a_table_encoded_by_pika_is_decoded() -> None:
    table: dict[str, Value] = {
        "text": "grün",
        "small": -5,
        "large": 2**40,
        "yes": True,
        "none": None,
        "price": Decimal("-9.99"),
        "when": NOON,
        "list": [1, "two", {"three": 3}],
    }
    pieces: list[bytes] = []
    importlib.import_module("pika.data").encode_table(pieces, {**table, "when": NOON.replace(tzinfo=None)})
    assert decode_table(b"".join(pieces))[0] == table
