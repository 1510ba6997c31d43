"""Header of AMQP messages: the kernel's fields, the keys of CC and BCC, and the cache of equal headers.

Rules: R6, R138.
"""

import struct
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.kernel.errors import PreconditionFailed, ProtocolViolation
from gateway.kernel.messages.message import Header, HeaderFormat, Properties, Value
from gateway_amqp.header import AMQP, MAX_SHARED, MAX_SHARED_BYTES, AmqpHeaderFormat
from gateway_amqp.properties import encode_properties
from gateway_amqp.tables import MalformedField, encode_table


def header(**properties: object) -> Header:
    return AmqpHeaderFormat().header(encode_properties(Properties(**properties)))  # type: ignore[arg-type]  # any of them


def test_the_name_of_the_format_is_fixed() -> None:
    written_by: HeaderFormat = AMQP
    assert written_by.name == "amqp-0-9-1"
    assert AMQP.header(b"\x00\x00").format is AMQP


def test_an_empty_header_has_default_values() -> None:
    bare = header()
    assert (bare.is_persistent, bare.priority, bare.expiration_ms, bare.user_id, bare.sender_keys) == (
        False,
        0,
        None,
        None,
        (),
    )


def test_a_full_header_is_decoded() -> None:
    given = Properties(
        content_type="text/plain",
        content_encoding="gzip",
        headers={"k": 1},
        delivery_mode=2,
        priority=7,
        correlation_id="c",
        reply_to="r",
        expiration="60000",
        message_id="m",
        timestamp=datetime(2024, 2, 29, tzinfo=UTC),
        type="t",
        user_id="guest",
        app_id="a",
        cluster_id="",
    )
    raw = encode_properties(given)
    full = AMQP.header(raw)
    assert (full.is_persistent, full.priority, full.expiration_ms, full.user_id) == (True, 7, 60000, "guest")
    assert full.raw == raw
    assert full.properties == given


@pytest.mark.parametrize(
    ("delivery_mode", "is_persistent"), [(None, False), (0, False), (1, False), (2, True), (7, False)]
)
def test_only_delivery_mode_two_is_persistent(delivery_mode: int | None, is_persistent: bool) -> None:
    assert header(delivery_mode=delivery_mode).is_persistent is is_persistent


@pytest.mark.parametrize(
    ("expiration", "milliseconds"),
    [("0", 0), ("5", 5), ("+5", 5), ("-0", 0), ("007", 7), ("4294967296", 4294967296), ("315360000000", 315360000000)],
)
def test_an_expiration_is_milliseconds_in_decimal(expiration: str, milliseconds: int) -> None:
    assert header(expiration=expiration).expiration_ms == milliseconds


INVALID_EXPIRATIONS = [
    pytest.param("abc", "no_integer", id="no number"),
    pytest.param("", "no_integer", id="empty"),
    pytest.param("  5", "no_integer", id="leading spaces"),
    pytest.param("+-5", "no_integer", id="two signs"),
    pytest.param("٣", "no_integer", id="digits of another script"),
    pytest.param("-1", "{value_negative,-1}", id="negative"),
    pytest.param("1.5", '{leftover_string,".5"}', id="fraction"),
    pytest.param("5 ", '{leftover_string," "}', id="trailing space"),
    pytest.param("1_0", '{leftover_string,"_0"}', id="underscore"),
    pytest.param('12"x', '{leftover_string,"\\"x"}', id="quote"),
    pytest.param("1\\", '{leftover_string,"\\\\"}', id="backslash"),
    pytest.param("12\x01", "{leftover_string,[1]}", id="control character"),
    pytest.param("315360000001", "{value_too_large,315360000001}", id="more than ten years"),
]


@pytest.mark.parametrize(("expiration", "reason"), INVALID_EXPIRATIONS)
def test_an_invalid_expiration_is_refused_in_rabbitmqs_words(expiration: str, reason: str) -> None:
    with pytest.raises(PreconditionFailed) as refusal:
        header(expiration=expiration)
    assert str(refusal.value) == f"invalid expiration '{expiration}': {reason}"


def test_cc_keys_come_before_bcc_keys_and_only_cc_is_delivered() -> None:
    addressed = header(app_id="a", headers={"BCC": ["hidden"], "k": 1, "CC": ["one", "two"]})
    assert addressed.sender_keys == ("one", "two", "hidden")
    assert addressed.properties == Properties(app_id="a", headers={"k": 1, "CC": ["one", "two"]})
    assert b"hidden" not in addressed.raw


def test_only_bcc_is_removed_from_the_bytes() -> None:
    kept = b"\x01ff\x3f\x80\x00\x00"  # re-encoding would make it a double
    secret = b"\x03BCCA\x00\x00\x00\x06S\x00\x00\x00\x01h"
    raw = b"\x28\x00" + struct.pack(">I", len(kept + secret)) + kept + secret + b"\x05"
    addressed = AMQP.header(raw)
    assert addressed.sender_keys == ("h",)
    assert addressed.raw == b"\x28\x00" + struct.pack(">I", len(kept)) + kept + b"\x05"


def test_a_header_decoded_from_its_stored_form_has_the_same_keys_and_bytes() -> None:
    addressed = header(headers={"CC": ["one"], "BCC": ["hidden"], "k": 1})
    for kept in (addressed, addressed.edited({"x-death": [1]}, drops_expiration=True)):
        again = AMQP.header(kept.stored_raw)
        assert (again.sender_keys, again.raw) == (("one", "hidden"), kept.raw)
    unaddressed = addressed.edited({}, without=("CC", "BCC"))
    assert AMQP.header(unaddressed.stored_raw).sender_keys == ()
    seen = header(headers={"CC": ["one"]})
    assert seen.stored_raw is seen.raw


def test_a_header_with_bcc_is_cached_as_well() -> None:
    raw = encode_properties(Properties(headers={"BCC": ["hidden"]}))
    assert AMQP.header(raw) is AMQP.header(raw)
    assert AMQP.header(raw).sender_keys == ("hidden",)


@pytest.mark.parametrize(
    ("headers", "keys"),
    [
        ({"CC": []}, ()),
        ({"CC": [1, "a", None, b"\xff", ["b"]]}, ("a",)),
        ({"cc": ["a"]}, ()),
        ({"k": {"CC": ["a"]}}, ()),
        ({"k": "CC"}, ()),
    ],
    ids=["empty", "only text among other items", "names are case-sensitive", "not inside other tables", "not a value"],
)
def test_keys_are_the_text_items_of_cc_and_bcc(headers: dict[str, Value], keys: tuple[str, ...]) -> None:
    assert header(headers=headers).sender_keys == keys


@pytest.mark.parametrize("name", ["CC", "BCC"])
@pytest.mark.parametrize(
    ("value", "kind"), [("a", "longstr"), (3, "signedint"), (None, "void"), ({}, "table"), (2**40, "long")]
)
def test_keys_that_are_not_an_array_are_refused_in_rabbitmqs_words(name: str, value: Value, kind: str) -> None:
    with pytest.raises(PreconditionFailed) as refusal:
        header(headers={name: value})
    assert str(refusal.value) == f'invalid message: {{unacceptable_type_in_header,"{name}",{kind}}}'


def test_equal_bytes_share_one_cached_header() -> None:
    headers = AmqpHeaderFormat()
    raw = encode_properties(Properties(content_type="text/plain"))
    assert headers.header(raw) is headers.header(bytes(bytearray(raw)))


def test_the_number_of_cached_headers_is_limited() -> None:
    headers = AmqpHeaderFormat()
    for number in range(3 * MAX_SHARED):
        headers.header(encode_properties(Properties(message_id=str(number))))
        assert len(headers._shared) <= MAX_SHARED


def test_a_long_header_is_not_cached() -> None:
    headers = AmqpHeaderFormat()
    raw = encode_properties(Properties(headers={"k": "v" * MAX_SHARED_BYTES}))
    assert headers.header(raw) is not headers.header(raw)


def test_a_malformed_table_is_refused_when_published_and_not_when_consumed() -> None:
    table = bytearray(encode_table({"k": "v"}))
    table[6] = ord("U")
    with pytest.raises(ProtocolViolation, match="unknown field type b'U'"):
        AMQP.header(b"\x20\x00" + table)


def test_a_refused_header_is_refused_again() -> None:
    headers = AmqpHeaderFormat()
    for _ in range(2):
        with pytest.raises(MalformedField):
            headers.header(b"\x80\x00\x05ab")


@given(
    st.binary()
    | st.builds(lambda flags, rest: flags + rest, st.sampled_from([b"\x20\x00", b"\x01\x00", b"\x11\x10"]), st.binary())
)
def test_whatever_is_accepted_can_be_decoded(raw: bytes) -> None:
    try:
        accepted = AMQP.header(raw)
    except (MalformedField, PreconditionFailed):
        return
    assert isinstance(accepted.properties, Properties)
