"""Edits of encoded tables: the same result as decode, edit and encode, except that other fields keep their bytes."""

import struct

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.kernel.messages.message import Value
from gateway_amqp.splices import check_table, fields_of, with_field, without_fields
from gateway_amqp.tables import MAX_DEPTH, MalformedField, decode_table, encode_table

#: One field of each type that encode_table never writes, which re-encoding would change.
FOREIGN = (
    b"\x01bb\x01" + b"\x01ss\x00\x01" + b"\x01ii\x00\x00\x00\x01" + b"\x01ff\x3f\x80\x00\x00" + b"\x01LL" + bytes(8)
)


def sized(content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + content


def sequence(items: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    return st.lists(items, max_size=4).map(lambda parts: sized(b"".join(parts)))


def of_size(letters: str, size: int) -> st.SearchStrategy[bytes]:
    return st.builds(
        lambda letter, content: letter.encode() + content,
        st.sampled_from(letters),
        st.binary(min_size=size, max_size=size),
    )


names = st.sampled_from([b"CC", b"BCC", b"a", "ü".encode(), b"", b"n" * 255])
simple = (
    of_size("tbB", 1)
    | of_size("su", 2)
    | of_size("Iif", 4)
    | of_size("lLdT", 8)
    | of_size("D", 5)
    | of_size("V", 0)
    | st.builds(lambda letter, content: letter + sized(content), st.sampled_from([b"S", b"x"]), st.binary())
)


def field_of(value: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    return st.builds(lambda name, wire: bytes((len(name),)) + name + wire, names, value)


wire_values = st.recursive(
    simple,
    lambda inner: (
        sequence(inner).map(lambda items: b"A" + items) | sequence(field_of(inner)).map(lambda fields: b"F" + fields)
    ),
    max_leaves=8,
)
wire_tables = sequence(field_of(wire_values))


def refusal(read: object, data: bytes) -> str | None:
    assert callable(read)
    try:
        read(data)
    except MalformedField as error:
        return type(error).__name__
    return None


@given(wire_tables)
def test_a_well_formed_table_passes_the_check(table: bytes) -> None:
    assert check_table(b"?" + table + b"?", 1) == 1 + len(table)


@given(wire_tables, st.data())
def test_the_check_refuses_exactly_what_decoding_refuses(table: bytes, data: st.DataObject) -> None:
    damaged = bytearray(table)
    for _ in range(data.draw(st.integers(0, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(damaged[: data.draw(st.integers(0, len(damaged)))])
    for candidate in (cut, sized(cut[4:])):
        assert refusal(check_table, candidate) == refusal(decode_table, candidate)


@given(st.binary())
def test_the_check_agrees_with_decoding_on_arbitrary_bytes(content: bytes) -> None:
    for candidate in (content, sized(content)):
        assert refusal(check_table, candidate) == refusal(decode_table, candidate)


def test_the_check_refuses_deep_nesting() -> None:
    content = b""
    for _ in range(20_000):
        content = b"\x01kF" + sized(content)
    with pytest.raises(MalformedField, match=f"more than {MAX_DEPTH}"):
        check_table(sized(content))


@given(wire_tables, st.sets(st.sampled_from(["CC", "BCC", "a", "ü", "", "absent"])))
def test_without_fields_equals_removing_them_from_the_decoded_table(table: bytes, unwanted: set[str]) -> None:
    expected = {name: value for name, value in decode_table(table)[0].items() if name not in unwanted}
    assert repr(decode_table(without_fields(table, unwanted))[0]) == repr(expected)


@given(
    wire_tables,
    st.sampled_from(["CC", "new", "ü"]),
    st.none() | st.integers(0, 9) | st.text("ab") | st.lists(st.text("ab")),
)
def test_with_field_equals_setting_it_in_the_decoded_table(table: bytes, name: str, value: Value) -> None:
    expected = decode_table(table)[0]
    expected.pop(name, None)
    expected[name] = value
    assert repr(decode_table(with_field(table, name, value))[0]) == repr(expected)


@given(wire_tables)
@example(sized(FOREIGN))
def test_adding_and_removing_a_field_restores_the_bytes(table: bytes) -> None:
    assert without_fields(with_field(table, "x-new", ["v"]), ("x-new",)) == table


def test_other_fields_keep_their_types_after_an_edit() -> None:
    edited = with_field(sized(FOREIGN + b"\x03oldV"), "old", 1)
    assert edited == sized(FOREIGN + b"\x03oldI\x00\x00\x00\x01")


def test_fields_are_listed_with_rabbitmqs_type_names() -> None:
    assert [(field.name, field.kind.name) for field in fields_of(sized(FOREIGN))] == [
        (b"b", "byte"),
        (b"s", "short"),
        (b"i", "unsignedint"),
        (b"f", "float"),
        (b"L", "long"),
    ]


def test_bytes_after_the_table_are_refused() -> None:
    with pytest.raises(MalformedField, match="1 bytes follow"):
        without_fields(encode_table({}) + b"?", ())
