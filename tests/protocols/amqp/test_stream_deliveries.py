"""Deliveries of a stream: the same frames as pamqp's, with the offset among the headers."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pamqp import body as pamqp_body
from pamqp import commands, frame, header
from pamqp.base import Frame

from gateway.kernel.messages.long import Long
from gateway.kernel.messages.message import Header, Message, Properties
from gateway.kernel.messages.native_header import native_header
from gateway.kernel.messages.queued_message import QueuedMessage
from gateway.net.outbox import HIGH_WATER, Outbox
from gateway_amqp.deliveries import DeliveryWriter
from gateway_amqp.header import AMQP
from gateway_amqp.properties import decode_properties, encode_properties
from gateway_mqtt.translation.header import mqtt_header
from gateway_stomp.header import STOMP
from tests.protocols.amqp.test_outgoing import FRAME_MAX, SIZES, Woken, taken

ROOM = FRAME_MAX - 8
DELIVER = "an exchange", "a key"


def entry(offset: int, said: Header, body: bytes = b"hi") -> QueuedMessage:
    return QueuedMessage(Message(*DELIVER, said, body), offset, 0, True)


def written(run: list[QueuedMessage], *, frame_max: int = FRAME_MAX, channel: int = 1, first_tag: int = 1) -> bytes:
    outbox = Outbox(Woken())
    DeliveryWriter(channel, outbox, frame_max).deliver_run("a tag", first_tag, run)
    return taken(outbox)


def properties_in(data: bytes) -> Properties:
    """Return the properties of the only delivery in the data."""
    method_size = int.from_bytes(data[3:7], "big") + 8
    head_size = int.from_bytes(data[method_size + 3 : method_size + 7], "big")
    return decode_properties(data[method_size + 7 + 12 : method_size + 7 + head_size])


def by_pamqp(channel: int, method: Frame, properties: commands.Basic.Properties, body: bytes) -> bytes:
    pieces = [body[start : start + ROOM] for start in range(0, len(body), ROOM)]
    return b"".join(
        [
            frame.marshal(method, channel),
            frame.marshal(header.ContentHeader(0, len(body), properties), channel),
            *(frame.marshal(pamqp_body.ContentBody(piece), channel) for piece in pieces),
        ]
    )


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("channel", [1, 65_535])
def test_the_frames_are_the_same_as_pamqps(size: int, channel: int) -> None:
    raw = encode_properties(Properties(content_type="text/plain", headers={"a": "b"}, delivery_mode=2))
    expected = b""
    for tag, offset in ((7, 0), (8, 1), (9, 2**40)):
        headers: dict[str, Any] = {"a": "b", "x-stream-offset": offset}
        properties = commands.Basic.Properties(content_type="text/plain", headers=headers, delivery_mode=2)
        method = commands.Basic.Deliver("a tag", tag, False, *DELIVER)
        expected += by_pamqp(channel, method, properties, bytes(size))
    run = [entry(offset, AMQP.header(raw), bytes(size)) for offset in (0, 1, 2**40)]
    assert decoded(written(run, channel=channel, first_tag=7)) == decoded(expected)


def decoded(data: bytes) -> list[tuple[int, Any]]:
    """Return the frames as values: pamqp encodes small numbers in fewer bytes."""
    frames = []
    while data:
        size, channel, value = frame.unmarshal(data)
        frames.append((channel, _plain(value)))
        data = data[size:]
    return frames


def _plain(value: Any) -> Any:
    if isinstance(value, header.ContentHeader):
        return value.body_size, dict(value.properties)
    return value.value if isinstance(value, pamqp_body.ContentBody) else dict(value)


FOREIGN = b"\x01ii\x00\x00\x00\x01" + b"\x01ff\x3f\x80\x00\x00" + b"\x01ss\x00\x01"


def raw_with(table: bytes) -> bytes:
    return b"\x20\x00" + len(table).to_bytes(4, "big") + table


def test_the_offset_is_a_signed_64_bit_number_and_other_headers_keep_their_bytes() -> None:
    data = written([entry(5, AMQP.header(raw_with(FOREIGN)))])
    assert FOREIGN + b"\x0fx-stream-offsetl" + (5).to_bytes(8, "big") in data


def test_the_brokers_offset_replaces_a_published_one() -> None:
    said = raw_with(b"\x0fx-stream-offsetI\x00\x00\x00\x4d" + FOREIGN)
    headers = properties_in(written([entry(5, AMQP.header(said))])).headers
    assert (list(headers), headers["x-stream-offset"]) == (["i", "f", "s", "x-stream-offset"], 5)


@pytest.mark.parametrize(
    "said",
    [
        native_header(Properties(content_type="text/plain")),
        mqtt_header(1, False, True, "client", b"\x03\x00\x0atext/plain"),
        STOMP.header(b"content-type:text/plain\n"),
    ],
    ids=["plain", "MQTT", "STOMP"],
)
def test_messages_of_all_protocols_get_an_offset(said: Header) -> None:
    properties = properties_in(written([entry(3, said)]))
    assert (properties.content_type, properties.headers) == ("text/plain", {"x-stream-offset": 3})


def test_headers_too_large_for_the_consumers_frames_are_replaced_by_the_offset() -> None:
    said = AMQP.header(encode_properties(Properties(content_type="t", headers={"long": "x" * 3000})))
    properties = properties_in(written([entry(3, said)], frame_max=2048))
    assert (properties.content_type, properties.headers) == ("t", {"x-stream-offset": 3})


#: Names of headers: CC and BCC have to be lists.
NAMES = st.text(max_size=5).filter(lambda name: name not in ("CC", "BCC"))


@given(
    properties=st.builds(
        Properties,
        content_type=st.none() | st.text(max_size=5),
        headers=st.dictionaries(NAMES, st.integers(0, 2**40) | st.text(max_size=9), max_size=3),
        correlation_id=st.none() | st.text(max_size=5),
        priority=st.none() | st.integers(0, 255),
        app_id=st.none() | st.text(max_size=5),
    ),
    offset=st.integers(0, 2**63 - 1),
)
def test_the_properties_are_the_published_ones_and_the_offset(properties: Properties, offset: int) -> None:
    found = properties_in(written([entry(offset, AMQP.header(encode_properties(properties)))]))
    expected = dict(properties.headers) | {"x-stream-offset": Long(offset)}
    assert dict(found.headers) == expected
    names = ("content_type", "correlation_id", "priority", "app_id", "delivery_mode")
    assert [getattr(found, name) for name in names] == [getattr(properties, name) for name in names]


def test_a_run_may_contain_messages_of_all_kinds() -> None:
    run = [entry(number, AMQP.header(raw_with(FOREIGN[: 7 * (number % 2)])), bytes(number % 5)) for number in range(20)]
    one_by_one = b"".join(written([each], first_tag=tag) for tag, each in enumerate(run, 1))
    assert written(run) == one_by_one


def test_the_cache_of_repeated_parts_is_limited() -> None:
    outbox = Outbox(Woken())
    writer = DeliveryWriter(1, outbox, FRAME_MAX)
    for number in range(600):
        said = Header(AMQP, raw_with(b"\x01nI" + number.to_bytes(4, "big")))
        writer.deliver_run("c", number, [entry(number, said)])
    assert len(writer._offset_heads) <= 256


def test_a_run_closes_the_outbox_at_its_limit() -> None:
    outbox = Outbox(Woken())
    writer = DeliveryWriter(1, outbox, 131_072)
    run = [entry(number, AMQP.header(b"\x00\x00"), bytes(100_000)) for number in range(HIGH_WATER // 100_000 + 1)]
    writer.deliver_run("c", 1, run[:1])
    assert outbox.is_open
    writer.deliver_run("c", 2, run)
    assert not outbox.is_open
