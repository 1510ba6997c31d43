"""Codec of message properties: all fourteen, malformed ones, and splices that change one property only."""

import struct
from dataclasses import fields, replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pamqp.commands import Basic

from gateway.kernel.messages.message import Properties
from gateway_amqp.properties import (
    PROPERTIES,
    decode_properties,
    encode_properties,
    scan_properties,
    splice_property,
)
from gateway_amqp.tables import CutShort, MalformedField, encode_short_text, encode_table

short_text = st.text(st.characters(codec="utf-8"), max_size=60) | st.just("n" * 255)
octets = st.integers(0, 255)
texts = {
    name: st.none() | short_text
    for name in (
        "content_type",
        "content_encoding",
        "correlation_id",
        "reply_to",
        "expiration",
        "message_id",
        "type",
        "user_id",
        "app_id",
        "cluster_id",
    )
}
properties = st.builds(
    Properties,
    headers=st.dictionaries(short_text, st.none() | st.integers(0, 2**40) | short_text, max_size=3),
    delivery_mode=st.none() | octets,
    priority=st.none() | octets,
    timestamp=st.none() | st.integers(0, 2**33).map(lambda seconds: datetime.fromtimestamp(seconds, UTC)),
    **texts,
)


def test_every_property_is_encoded() -> None:
    assert [property.name for property in PROPERTIES] == [field.name for field in fields(Properties)]
    assert [property.flag for property in PROPERTIES] == list(Basic.Properties.flags.values())


@given(properties)
def test_encoded_values_are_decoded_unchanged(given: Properties) -> None:
    assert decode_properties(encode_properties(given)) == given


def test_properties_are_encoded_as_by_other_libraries() -> None:
    time = datetime(2024, 2, 29, 12, tzinfo=UTC)
    ours = Properties("text/plain", "gzip", {"k": "v"}, 2, 9, "c", "r", "60000", "m", time, "t", "guest", "app")
    theirs = Basic.Properties("text/plain", "gzip", {"k": "v"}, 2, 9, "c", "r", "60000", "m", time, "t", "guest", "app")
    assert encode_properties(ours) == theirs.marshal()


def test_a_property_that_is_not_set_is_not_encoded() -> None:
    assert encode_properties(Properties()) == b"\x00\x00"
    assert decode_properties(b"\x00\x00") == Properties()


def test_an_empty_text_is_encoded() -> None:
    assert decode_properties(encode_properties(Properties(message_id=""))).message_id == ""


@given(properties, st.data())
def test_truncated_properties_are_refused(given: Properties, data: st.DataObject) -> None:
    raw = encode_properties(given)
    with pytest.raises(CutShort):
        decode_properties(raw[: data.draw(st.integers(0, len(raw) - 1))])


@given(properties, st.binary(min_size=1))
def test_bytes_after_the_properties_are_refused(given: Properties, surplus: bytes) -> None:
    with pytest.raises(MalformedField, match="follow the properties"):
        decode_properties(encode_properties(given) + surplus)


@given(st.binary())
def test_arbitrary_bytes_are_decoded_or_refused(raw: bytes) -> None:
    try:
        decode_properties(raw)
    except MalformedField:
        with pytest.raises(MalformedField):
            scan_properties(raw)
    else:
        scan_properties(raw)


@given(properties, st.data())
def test_damaged_bytes_are_decoded_or_refused(given: Properties, data: st.DataObject) -> None:
    damaged = bytearray(encode_properties(given))
    damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(octets)
    try:
        scan_properties(bytes(damaged))
    except MalformedField:
        return
    assert isinstance(decode_properties(bytes(damaged)), Properties)


REFUSED = [
    pytest.param(b"", "flags are cut short", id="no flags"),
    pytest.param(b"\x00\x02", "unknown property flags 0x0002", id="a flag that class basic does not have"),
    pytest.param(b"\x00\x01", "flags are cut short", id="a missing second word of flags"),
    pytest.param(b"\x00\x01\x80\x00", "unknown property flags 0x8000 at byte 2", id="a property in the second word"),
    pytest.param(b"\x80\x00\x01\xff", "not UTF-8", id="text that is not UTF-8"),
    pytest.param(b"\x20\x00\x00\x00\x00\x03\x01kU", "unknown field type", id="a malformed header"),
]


@pytest.mark.parametrize(("raw", "complaint"), REFUSED)
def test_malformed_properties_are_refused(raw: bytes, complaint: str) -> None:
    with pytest.raises(MalformedField, match=complaint):
        decode_properties(raw)


def test_empty_words_of_flags_are_skipped() -> None:
    assert decode_properties(b"\x08\x01\x00\x01\x00\x00\x05") == Properties(priority=5)


def test_a_timestamp_in_milliseconds_is_decoded_as_none() -> None:
    assert decode_properties(b"\x00\x40" + struct.pack(">Q", 1709208000000)) == Properties()


@pytest.mark.parametrize("wrong", [{"priority": 256}, {"delivery_mode": -1}, {"reply_to": "r" * 256}])
def test_values_that_do_not_fit_raise_a_value_error(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=r"."):
        encode_properties(Properties(**wrong))  # type: ignore[arg-type]  # one of several types


@given(properties, short_text)
def test_splicing_sets_a_property_and_keeps_the_others(given: Properties, reply_to: str) -> None:
    spliced = splice_property(encode_properties(given), "reply_to", encode_short_text(reply_to))
    assert spliced == encode_properties(replace(given, reply_to=reply_to))


@given(properties)
def test_splicing_removes_a_property_and_keeps_the_others(given: Properties) -> None:
    raw = encode_properties(given)
    assert splice_property(raw, "expiration", b"") == encode_properties(replace(given, expiration=None))
    assert splice_property(raw, "headers", b"") == encode_properties(replace(given, headers={}))


def test_splicing_can_add_headers() -> None:
    raw = encode_properties(Properties(content_type="a/b", app_id="app"))
    spliced = splice_property(raw, "headers", encode_table({"k": 1}))
    assert decode_properties(spliced) == Properties(content_type="a/b", headers={"k": 1}, app_id="app")


def test_an_unknown_property_cannot_be_spliced() -> None:
    with pytest.raises(ValueError, match="colour"):
        splice_property(b"\x00\x00", "colour", b"\x00")
