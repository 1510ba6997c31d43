"""Translation of properties between MQTT and other protocols as in RabbitMQ; untranslatable ones are omitted."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.kernel.messages.message import Header, Properties, Value
from gateway.kernel.messages.native_header import native_header
from gateway_mqtt.codec.properties import PropertyId
from gateway_mqtt.codec.publish import PublishProperties, scan_publish_properties
from gateway_mqtt.translation.properties import kernel_properties, mqtt_properties
from gateway_mqtt.translation.topics import REVERSIBLE
from gateway_mqtt.translation.views import delivery_view_of, is_plain
from tests.protocols.mqtt.client_packets import mqtt_text, text, user_property


def towards_kernel(source: PublishProperties, headers: dict[str, Value] | None = None) -> Properties:
    return kernel_properties(source, 0, REVERSIBLE, headers or {})


def test_mqtt_properties_are_translated_to_amqp() -> None:
    source = PublishProperties(1, 10, 0, "re/ply", b"id-1", (("b", "1"), ("a", "2")), "text/plain")
    assert towards_kernel(source) == Properties(
        content_type="text/plain",
        headers={"a": "2", "b": "1", "x-reply-to-topic": "re.ply"},
        delivery_mode=1,
        correlation_id="id-1",
        expiration="10000",
    )


def test_user_properties_become_sorted_headers_and_the_first_of_a_name_is_kept() -> None:
    source = PublishProperties(user_properties=(("b", "1"), ("a", "2"), ("b", "3"), ("n" * 256, "x"), ("é" * 127, "y")))
    assert list(towards_kernel(source).headers.items()) == [("a", "2"), ("b", "1"), ("é" * 127, "y")]


@pytest.mark.parametrize("data", [b"", b"x" * 255, "é".encode()])
def test_correlation_data_becomes_a_correlation_id_if_it_fits(data: bytes) -> None:
    properties = towards_kernel(PublishProperties(correlation_data=data))
    assert (properties.correlation_id, properties.headers) == (data.decode(), {})


@pytest.mark.parametrize("data", [b"x" * 256, b"\xff", "é".encode() * 128])
def test_other_correlation_data_becomes_a_header(data: bytes) -> None:
    properties = towards_kernel(PublishProperties(correlation_data=data))
    assert (properties.correlation_id, properties.headers) == (None, {"x-correlation-id": data})


@pytest.mark.parametrize("content_type", ["é", "x" * 256])
def test_a_content_type_that_amqp_cannot_carry_is_omitted(content_type: str) -> None:
    assert towards_kernel(PublishProperties(content_type=content_type)).content_type is None


def test_headers_of_the_broker_override_user_properties() -> None:
    properties = towards_kernel(PublishProperties(user_properties=(("k", "old"),)), {"k": 1})
    assert properties.headers == {"k": 1}


# ---------------------------------------------------------------- from AMQP


def test_amqp_properties_are_translated_to_mqtt() -> None:
    source = Properties(
        content_type="text/plain",
        headers={"z": "1", "x-reply-to-topic": "re.p%2Ely", "a": "2"},
        delivery_mode=2,
        correlation_id="id-1",
        expiration="1500",
        message_id="m",
        timestamp=datetime(2024, 2, 29, tzinfo=UTC),
        type="t",
        user_id="u",
        app_id="a",
        priority=3,
        reply_to="q",
    )
    assert mqtt_properties(source) == {
        PropertyId.CONTENT_TYPE: "text/plain",
        PropertyId.RESPONSE_TOPIC: "re/p.ly",
        PropertyId.CORRELATION_DATA: b"id-1",
        PropertyId.USER_PROPERTY: [("z", "1"), ("a", "2")],
    }


@pytest.mark.parametrize(
    ("value", "source"),
    [
        ("text", "text"),
        ("", ""),
        (7, "7"),
        (-(2**40), "-1099511627776"),
        (1.5, "1.5"),
        (True, "true"),
        (False, "false"),
    ],
)
def test_simple_headers_become_text(value: Value, source: str) -> None:
    assert mqtt_properties(Properties(headers={"k": value})) == {PropertyId.USER_PROPERTY: [("k", source)]}


@pytest.mark.parametrize(
    "value",
    [
        None,
        b"bytes",
        [1],
        {"a": 1},
        Decimal("1.5"),
        datetime(2024, 2, 29, tzinfo=UTC),
        "nul\0",
        "lone \ud800",
        "x" * 65_536,
    ],
)
def test_headers_without_a_text_form_are_omitted(value: Value) -> None:
    assert mqtt_properties(Properties(headers={"k": value})) == {}


def test_names_and_texts_that_mqtt_cannot_carry_are_omitted() -> None:
    assert mqtt_properties(Properties(content_type="a\0", headers={"k\0": "v"})) == {}


@pytest.mark.parametrize(
    ("headers", "data"),
    [
        ({"x-correlation-id": b"\0\xff"}, b"\0\xff"),
        ({"x-correlation-id": "text"}, b"text"),
        ({"x-correlation-id": 7}, None),
        ({"x-correlation-id": bytes(65_536)}, None),
    ],
)
def test_correlation_data_is_restored_from_its_header(headers: dict[str, Value], data: bytes | None) -> None:
    assert mqtt_properties(Properties(headers=headers)).get(PropertyId.CORRELATION_DATA) == data
    assert PropertyId.USER_PROPERTY not in mqtt_properties(Properties(headers=headers))


@pytest.mark.parametrize("key", [7, None, "x" * 70_000])
def test_a_reply_key_that_is_not_a_valid_topic_is_omitted(key: Value) -> None:
    assert mqtt_properties(Properties(headers={"x-reply-to-topic": key})) == {}


def test_a_response_topic_is_restored_after_amqp() -> None:
    there = towards_kernel(PublishProperties(response_topic="a.b/c*/%"))
    assert mqtt_properties(there)[PropertyId.RESPONSE_TOPIC] == "a.b/c*/%"


@given(
    st.lists(st.tuples(mqtt_text, mqtt_text), max_size=4, unique_by=lambda pair: pair[0]),
    st.binary(max_size=300),
    st.none() | st.text(st.characters(codec="ascii", exclude_characters="\0"), max_size=30),
)
def test_properties_that_both_sides_can_carry_are_restored(
    pairs: list[tuple[str, str]], data: bytes, content_type: str | None
) -> None:
    pairs = [pair for pair in pairs if not pair[0].startswith("x-")]
    source = PublishProperties(correlation_data=data, user_properties=tuple(pairs), content_type=content_type)
    back = mqtt_properties(towards_kernel(source))
    assert back.get(PropertyId.USER_PROPERTY, []) == sorted(pairs)
    assert back[PropertyId.CORRELATION_DATA] == data
    assert back.get(PropertyId.CONTENT_TYPE) == content_type


# ---------------------------------------------------------------- the delivery view of such a message


def amqp(**source: object) -> Header:
    return native_header(Properties(**source))  # type: ignore[arg-type]  # any of them


@pytest.mark.parametrize(("delivery_mode", "qos"), [(None, 0), (1, 0), (2, 1)])
def test_a_persistent_message_has_qos_1(delivery_mode: int | None, qos: int) -> None:
    assert delivery_view_of(amqp(delivery_mode=delivery_mode)).qos == qos


def test_the_expiration_is_converted_to_whole_seconds() -> None:
    view = delivery_view_of(amqp(expiration="1999", headers={"k": "v"}))
    assert (view.expiry_s, view.arrived_at_ms) == (1, 0)
    assert view.block == b"\x02\0\0\0\1" + user_property("k", "v")
    assert view.block_without_expiry == user_property("k", "v")
    assert delivery_view_of(amqp(expiration="315360000000000")).expiry_s == 0xFFFFFFFF


def test_a_message_of_another_protocol_has_no_client_and_was_not_retained() -> None:
    view = delivery_view_of(amqp())
    assert (view.client_id, view.is_copy, view.is_retained, view.identifier) == (None, False, False, 0)
    assert view.block == b""
    assert is_plain(amqp())
    assert not is_plain(amqp(expiration="5"))


def test_a_header_is_translated_once() -> None:
    header = amqp(headers={"k": "v"})
    assert delivery_view_of(header) is delivery_view_of(header)


@given(
    st.dictionaries(st.text(max_size=5), st.none() | st.booleans() | st.integers() | st.text(max_size=5), max_size=4)
)
def test_any_headers_give_a_valid_property_block(headers: dict[str, Value]) -> None:
    block = delivery_view_of(amqp(content_type="c", correlation_id="i", headers=headers)).block
    source = scan_publish_properties(block)
    assert (source.content_type, source.correlation_data) == ("c", b"i")
    assert text("c") in block
