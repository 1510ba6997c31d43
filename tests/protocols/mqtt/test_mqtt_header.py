"""The stored header of MQTT messages: its kernel properties, its delivery view, and its restoration after a restart."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.kernel.messages.long import Long
from gateway.kernel.messages.message import Header, HeaderFormat, Value
from gateway_mqtt.codec.errors import MqttError
from gateway_mqtt.codec.properties import PropertyId, write_block
from gateway_mqtt.translation.delivery_view import DeliveryView
from gateway_mqtt.translation.header import (
    MAX_SHARED,
    MQTT,
    MqttHeader,
    MqttHeaderFormat,
    mqtt_header,
    retained_header,
)
from gateway_mqtt.translation.topics import LOSSY
from gateway_mqtt.translation.views import delivery_view_of, is_plain
from tests.protocols.mqtt.client_packets import mqtt_text, text, tried, user_property

EXPIRES = b"\x02\0\0\0\x0a"
"""A message expiry interval of ten seconds."""


def published(block: bytes = b"", *, qos: int = 1, retain: bool = False, arrived_at_ms: int = 5_000) -> MqttHeader:
    return mqtt_header(qos, retain, True, "c", block, arrived_at_ms=arrived_at_ms)


def fields_of(view: DeliveryView) -> Mapping[str, object]:
    return {name: getattr(view, name) for name in dir(view) if not name.startswith("_")}


def test_the_format_name_never_changes() -> None:
    written_by: HeaderFormat = MQTT
    assert written_by.name == "mqtt"
    assert published().format is MQTT


def test_the_layout_never_changes() -> None:
    """Later versions must read what this one stored."""
    raw = mqtt_header(2, True, True, "cé", EXPIRES, arrived_at_ms=0x0102).raw
    assert raw.hex(" ", -4) == "010e0000 00000000 01020000 00000003 00000005 63c3a902 0000000a"
    assert retained_header(published(), 7, 0).raw[1] == 0x19


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_message_of_qos_0_is_transient(qos: int) -> None:
    header = published(qos=qos)
    assert (header.is_persistent, header.qos) == (qos > 0, qos)
    assert header.properties.delivery_mode == (2 if qos else 1)


def test_the_expiry_of_a_message() -> None:
    assert published().expiration_ms is None
    assert published(EXPIRES).expiration_ms == 10_000
    assert published(EXPIRES).properties.expiration == "10000"
    assert published(b"\x02\0\0\0\0").expiration_ms == 0


def test_equal_headers_are_one_object() -> None:
    block = user_property("k", "v")
    assert published(block) is published(block)
    assert published(block) is not published(block, qos=0)
    assert published(block) is not mqtt_header(1, False, True, "d", block)
    assert MQTT.header(published(block).raw) is published(block)


def test_a_message_with_an_expiry_keeps_its_time_of_arrival() -> None:
    first, second = published(EXPIRES, arrived_at_ms=1_000), published(EXPIRES, arrived_at_ms=2_000)
    assert [delivery_view_of(header).arrived_at_ms for header in (first, second)] == [1_000, 2_000]
    assert delivery_view_of(published(b"", arrived_at_ms=1_000)).arrived_at_ms == 0


def test_the_cache_of_shared_headers_is_bounded() -> None:
    format = MqttHeaderFormat()
    for number in range(MAX_SHARED * 2 + 10):
        format.published(0, str(number).encode(), b"", 0)
        assert len(format._shared) <= MAX_SHARED
        assert len(format._published) <= MAX_SHARED
    assert format.published(0, b"0", b"", 0) is format.published(0, b"0", b"", 0)
    long = b"\x09" + text(bytes(600))
    assert format.published(0, b"0", long, 0) is not format.published(0, b"0", long, 0)


@pytest.mark.parametrize("block", [b"\x0b\1", b"\x01\2", b"\x18\0\0\0\1", b"\x03"])
def test_an_invalid_property_block_is_refused(block: bytes) -> None:
    with pytest.raises(MqttError):
        published(block)


@pytest.mark.parametrize(
    ("header", "is_alike"),
    [
        (published(), True),
        (published(user_property("k", "v")), True),
        (published(EXPIRES), False),
        (published(retain=True), False),
        (retained_header(published(retain=True), 0, 0), False),
    ],
)
def test_whether_a_message_is_the_same_for_every_subscriber(header: MqttHeader, is_alike: bool) -> None:
    assert is_plain(header) is is_alike
    assert is_plain(header.edited({"x": 1})) is is_alike
    assert is_plain(MqttHeaderFormat().header(header.raw)) is is_alike


def test_the_delivery_view_of_a_header() -> None:
    block = user_property("a", "1") + EXPIRES + user_property("a", "2")
    view = delivery_view_of(published(block, qos=2, retain=True))
    assert fields_of(view) == {
        "arrived_at_ms": 5_000,
        "block": EXPIRES + user_property("a", "1") + user_property("a", "2"),
        "block_without_expiry": user_property("a", "1") + user_property("a", "2"),
        "client_id": "c",
        "expiry_s": 10,
        "identifier": 0,
        "is_copy": False,
        "is_retained": True,
        "qos": 2,
    }


@given(mqtt_text, st.booleans(), st.sampled_from([0, 1, 2]), st.binary(max_size=20), st.none() | st.integers(0, 99))
def test_a_stored_header_is_restored_unchanged(
    client_id: str, retain: bool, qos: int, data: bytes, expiry_s: int | None
) -> None:
    properties = {PropertyId.CORRELATION_DATA: data, PropertyId.PAYLOAD_FORMAT_INDICATOR: 1}
    if expiry_s is not None:
        properties[PropertyId.MESSAGE_EXPIRY_INTERVAL] = expiry_s
    before = mqtt_header(qos, retain, True, client_id, write_block(properties), arrived_at_ms=77)
    after = MqttHeaderFormat().header(before.raw)
    assert fields_of(delivery_view_of(after)) == fields_of(delivery_view_of(before))
    assert after.properties == before.properties
    assert (after.is_persistent, after.expiration_ms) == (before.is_persistent, before.expiration_ms)


@given(st.binary(max_size=60) | st.binary(max_size=40).map(lambda rest: published(EXPIRES).raw[:20] + rest))
def test_arbitrary_bytes_are_a_header_or_an_mqtt_error(raw: bytes) -> None:
    format = MqttHeaderFormat()
    header = tried(lambda: format.header(raw))
    if isinstance(header, MqttHeader):
        for look in (lambda: delivery_view_of(header), lambda: format.properties(raw)):
            tried(look)
        assert header.raw == raw
    else:
        assert header.reason.is_error


# ---------------------------------------------------------------- retained copies


def test_the_expiry_of_a_retained_message_counts_down() -> None:
    copy = retained_header(published(EXPIRES, retain=True, arrived_at_ms=5_000), 9, 8_500)
    view = delivery_view_of(copy)
    assert (view.is_copy, view.is_retained, view.identifier) == (True, True, 9)
    assert (copy.expiration_ms, view.expiry_s, view.arrived_at_ms) == (7_000, 7, 8_500)


@pytest.mark.parametrize(("now_ms", "left_s"), [(5_999, 10), (6_000, 9), (15_000, 0), (99_000, 0), (4_000, 10)])
def test_the_remaining_expiry_is_never_negative(now_ms: int, left_s: int) -> None:
    assert delivery_view_of(retained_header(published(EXPIRES, arrived_at_ms=5_000), 0, now_ms)).expiry_s == left_s


def test_copies_for_one_subscription_identifier_share_a_header() -> None:
    assert retained_header(published(), 3, 0) is retained_header(published(), 3, 99)
    assert retained_header(published(), 3, 0) is not retained_header(published(), 4, 0)


# ---------------------------------------------------------------- headers added by the broker

DEATHS: dict[str, Value] = {
    "x-death": [{"queue": "q", "count": Long(1)}],
    "x-first-death-queue": "q",
    "x-delivery-count": Long(2),
}


def test_added_headers_are_in_kernel_properties_and_deliveries() -> None:
    dead = published(user_property("k", "v")).edited(DEATHS, drops_expiration=True)
    assert type(dead) is Header
    assert dead.properties.headers == {"k": "v", **DEATHS}
    expected = (
        user_property("k", "v") + user_property("x-first-death-queue", "q") + user_property("x-delivery-count", "2")
    )
    assert delivery_view_of(dead).block == expected
    assert delivery_view_of(dead).client_id == "c"


def test_a_dead_letter_loses_its_expiry() -> None:
    dead = published(user_property("k", "v") + EXPIRES).edited(DEATHS, drops_expiration=True)
    assert (dead.expiration_ms, delivery_view_of(dead).expiry_s, delivery_view_of(dead).arrived_at_ms) == (
        None,
        None,
        0,
    )
    kept = published(EXPIRES).edited({"a": 1})
    assert (kept.expiration_ms, delivery_view_of(kept).expiry_s, delivery_view_of(kept).arrived_at_ms) == (
        10_000,
        10,
        5_000,
    )


def test_an_added_header_replaces_a_user_property() -> None:
    header = published(user_property("k", "1") + user_property("other", "x") + user_property("k", "2"))
    edited = header.edited({"k": 3})
    assert edited.properties.headers == {"other": "x", "k": 3}
    assert delivery_view_of(edited).block == user_property("other", "x") + user_property("k", "3")
    again = edited.edited({"k": 4}, without=("other",))
    assert again.properties.headers == {"k": 4}
    assert again.edited({}, without=("k",)).properties.headers == {}
    assert again.edited({}, without=("k",)).raw == published().raw


def test_invalid_added_headers_are_refused() -> None:
    for ending in (b"{", b"\xff", b"[]"):
        header = MqttHeaderFormat().header(published().raw + ending)
        with pytest.raises(MqttError, match="headers added"):
            delivery_view_of(header)


# ---------------------------------------------------------------- mappings


def test_a_response_topic_is_mapped_by_the_mapping_of_its_virtual_host() -> None:
    block = b"\x08" + text("re.ply/to")
    assert published(block).properties.headers == {"x-reply-to-topic": "re%2Eply.to"}
    assert mqtt_header(1, False, True, "c", block, mapping=LOSSY).properties.headers == {
        "x-reply-to-topic": "re.ply.to"
    }
