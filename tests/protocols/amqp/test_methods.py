"""Codec of method frames: all methods of AMQP and RabbitMQ, and RabbitMQ's texts for malformed ones.

Rules: R8.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pamqp import frame as pamqp_frame
from pamqp.base import Frame
from pamqp.commands import INDEX_MAPPING, Basic, Channel, Connection, Exchange, Queue

from gateway.kernel.errors import ProtocolViolation
from gateway_amqp import methods
from gateway_amqp.methods import (
    AccessRequest,
    AccessRequestOk,
    MalformedMethod,
    UnknownMethod,
    bytes_of,
    decode_method,
    encode_method,
)

EVERY_METHOD: list[type[Frame]] = [*INDEX_MAPPING.values(), AccessRequest, AccessRequestOk]

ARGUMENTS = {
    "bit": st.booleans(),
    "octet": st.integers(0, 0xFF),
    "short": st.integers(0, 0xFFFF),
    "long": st.integers(0, 0xFFFFFFFF),
    "longlong": st.integers(0, 0xFFFFFFFFFFFFFFFF),
    "shortstr": st.text(st.characters(codec="utf-8"), max_size=60),
    "longstr": st.text(st.characters(codec="utf-8")),
    "table": st.dictionaries(
        st.text("ab\u00fc"), st.none() | st.booleans() | st.integers(0, 9) | st.text("ab"), max_size=3
    ),
}


def arguments(method: Frame) -> dict[str, object]:
    return {name: getattr(method, name) for name in method.attributes()}


def payload(frame: bytes) -> bytes:
    """Return the payload of a frame."""
    return frame[7:-1]


@st.composite
def any_method(draw: st.DrawFn) -> Frame:
    kind = draw(st.sampled_from(EVERY_METHOD))
    method = kind.__new__(kind)
    for name in kind.attributes():
        setattr(method, name, draw(ARGUMENTS[kind.amqp_type(name)]))
    return method


@pytest.mark.parametrize(
    "ids",
    [
        (10, 60),
        (10, 61),
        (10, 70),
        (10, 71),
        (30, 10),
        (40, 30),
        (40, 31),
        (40, 40),
        (40, 51),
        (60, 120),
        (85, 10),
        (85, 11),
    ],
)
def test_rabbitmqs_extension_methods_exist(ids: tuple[int, int]) -> None:
    assert (ids[0] << 16 | ids[1]) in {method.index for method in EVERY_METHOD}


@given(any_method(), st.integers(0, 0xFFFF))
def test_every_method_survives_a_round_trip(method: Frame, channel: int) -> None:
    frame = encode_method(channel, method)
    assert frame[:3] == b"\x01" + channel.to_bytes(2)
    assert int.from_bytes(frame[3:7]) == len(payload(frame))
    assert frame[-1] == 0xCE
    read = decode_method(payload(frame))
    assert type(read) is type(method)
    assert arguments(read) == arguments(method)


WRITTEN = [
    Connection.Start(server_properties={"capabilities": {"version": "1"}, "product": "gateway"}),
    Connection.Tune(2047, 131072, 60),
    Connection.Close(320, "CONNECTION_FORCED - bye", 0, 0),
    Connection.OpenOk(),
    Channel.OpenOk(),
    Exchange.Declare(
        exchange="logs", exchange_type="topic", durable=True, internal=True, arguments={"alternate-exchange": "ae"}
    ),
    Queue.Declare(queue="orders", exclusive=True, nowait=True, arguments={"x-overflow": "reject-publish"}),
    Queue.DeclareOk("orders", 1, 2),
    Queue.Unbind(queue="q", exchange="e", routing_key="r"),
    Basic.Deliver("tag", 2**40, True, "e", "r"),
    Basic.GetOk(1, False, "e", "r", 7),
    Basic.Nack(5, True, False),
]


@pytest.mark.parametrize("method", WRITTEN, ids=lambda method: str(method.name))
def test_methods_are_encoded_as_by_other_libraries(method: Frame) -> None:
    assert encode_method(3, method) == pamqp_frame.marshal(method, 3)


def test_access_request_of_old_clients_is_decoded() -> None:
    request = decode_method(b"\x00\x1e\x00\x0a\x05/data\x1f")
    assert isinstance(request, AccessRequest)
    assert arguments(request) == {
        "realm": "/data",
        "exclusive": True,
        "passive": True,
        "active": True,
        "write": True,
        "read": True,
    }
    assert encode_method(1, AccessRequestOk()) == b"\x01\x00\x01\x00\x00\x00\x06\x00\x1e\x00\x0b\x00\x01\xce"


def test_names_that_pamqp_refuses_are_decoded() -> None:
    name = "grün/straße " + "x" * 120
    assert decode_method(payload(encode_method(1, Basic.Cancel(name)))).consumer_tag == name  # type: ignore[attr-defined]


def test_a_response_that_is_not_text_keeps_its_bytes() -> None:
    response = b"\x00user\x00\xff\xfe"
    wire = b"\x00\x0a\x00\x15" + len(response).to_bytes(4) + response
    read = decode_method(wire)
    assert isinstance(read, Connection.SecureOk)
    assert bytes_of(read.response) == response
    assert payload(encode_method(0, read)) == wire


REFUSED = [
    # payload                                                    RabbitMQ's text
    pytest.param("0032 000a 0000", "cannot decode <<0,0>>", id="arguments cut short"),
    pytest.param("0032 000a 0000 ff 616263", "cannot decode <<0,0,255,97,98,99>>", id="text cut short"),
    pytest.param(
        "0032 000a 0000 02 6274 04 000003e8 78", "cannot decode <<0,0,2,98,116,4,0,0,3,232,120>>", id="table cut short"
    ),
    pytest.param("003c 0050 0000000000000001", "cannot decode <<0,0,0,0,0,0,0,1>>", id="bits missing"),
    pytest.param(
        "003c 0050 0000000000000001 00 09", "cannot decode <<0,0,0,0,0,0,0,1,0,9>>", id="bytes after the arguments"
    ),
    pytest.param("0032 000a 0000 02 fffe 00 00000000", "Malformed UTF-8 in shortstr", id="name not UTF-8"),
    pytest.param(
        "0032 000a 0000 00 00 00000004 01 6b 55 00", "unknown field type b'U' at byte 14", id="unknown field type"
    ),
]


@pytest.mark.parametrize(("wire", "reason"), REFUSED)
def test_malformed_arguments_are_refused_in_rabbitmqs_words(wire: str, reason: str) -> None:
    content = bytes.fromhex(wire)
    with pytest.raises(MalformedMethod) as refusal:
        decode_method(content)
    assert str(refusal.value) == reason
    assert (refusal.value.class_id, refusal.value.method_id) == (content[1], content[3])
    assert isinstance(refusal.value, ProtocolViolation)


def test_a_long_payload_is_truncated_in_the_error() -> None:
    with pytest.raises(MalformedMethod) as refusal:
        decode_method(b"\x00\x0a\x00\x33" + bytes(100_000))
    assert 255 < len(str(refusal.value)) < 600


@pytest.mark.parametrize("ids", [(99, 10), (50, 99), (0, 0)])
def test_an_unknown_method_is_named_in_the_error(ids: tuple[int, int]) -> None:
    with pytest.raises(UnknownMethod) as refusal:
        decode_method(ids[0].to_bytes(2) + ids[1].to_bytes(2) + b"?")
    assert (refusal.value.class_id, refusal.value.method_id) == ids


@given(st.binary(max_size=3))
def test_a_method_without_its_ids_is_malformed(content: bytes) -> None:
    with pytest.raises(MalformedMethod, match="cannot decode"):
        decode_method(content)


@given(any_method(), st.data())
def test_truncated_arguments_are_refused(method: Frame, data: st.DataObject) -> None:
    whole = payload(encode_method(1, method))
    with pytest.raises(MalformedMethod):
        decode_method(whole[: data.draw(st.integers(0, len(whole) - 1))])


@given(st.sampled_from(EVERY_METHOD), st.binary())
def test_arbitrary_arguments_are_decoded_or_refused(kind: type[Frame], content: bytes) -> None:
    try:
        method = decode_method(kind.index.to_bytes(4) + content)
    except MalformedMethod:
        return
    assert type(method) is kind
    encode_method(1, method)


UNWRITABLE = [Connection.Blocked("r" * 256), Queue.DeclareOk("q", 2**32, 0), Queue.DeclareOk("q", -1, 0)]


@pytest.mark.parametrize("method", UNWRITABLE, ids=["text of 256 bytes", "number too large", "negative number"])
def test_arguments_that_do_not_fit_raise_a_value_error(method: Frame) -> None:
    with pytest.raises(ValueError, match=r"."):
        methods.encode_method(1, method)
