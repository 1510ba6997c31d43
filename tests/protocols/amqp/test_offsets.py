"""Insertion of an offset into encoded properties: the fast path has the same result as the general one."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.kernel.messages.message import Properties, Value
from gateway_amqp.offsets import _spliced, split_around_offset
from gateway_amqp.properties import decode_properties, encode_properties

texts = st.none() | st.text(max_size=8)
values = st.integers(-(2**40), 2**40) | st.text(max_size=8) | st.booleans() | st.binary(max_size=8) | st.none()
names = st.text(max_size=8) | st.sampled_from(["x-stream-offset", "x-stream-offsets", "x-stream-offse"])


@st.composite
def properties(draw: st.DrawFn) -> Properties:
    headers: dict[str, Value] = draw(st.dictionaries(names, values | st.lists(values, max_size=2), max_size=4))
    return Properties(
        content_type=draw(texts),
        content_encoding=draw(texts),
        headers=headers,
        delivery_mode=draw(st.sampled_from([None, 1, 2])),
        correlation_id=draw(texts),
        message_id=draw(texts),
        app_id=draw(texts),
    )


@given(properties())
@example(Properties())
@example(Properties(content_type="x-stream-offset"))
@example(Properties(message_id="x-stream-offset"))
@example(Properties(headers={"x-stream-offset": "77"}))
def test_the_fast_path_equals_the_general_path(said: Properties) -> None:
    assert split_around_offset(encode_properties(said)) == _spliced(encode_properties(said))


@given(properties(), st.integers(0, 2**63 - 1))
def test_all_other_properties_are_unchanged(said: Properties, offset: int) -> None:
    before, behind = split_around_offset(encode_properties(said))
    found = decode_properties(before + offset.to_bytes(8, "big") + behind)
    others = {name: value for name, value in said.headers.items() if name != "x-stream-offset"}
    assert found.headers == others | {"x-stream-offset": offset}
    assert list(found.headers)[-1] == "x-stream-offset"
    assert (found.content_type, found.message_id, found.app_id) == (said.content_type, said.message_id, said.app_id)


@pytest.mark.parametrize("raw", [b"\x08\x01\x00\x01\x00\x00\x05", b"\x20\x01\x00\x00\x00\x00\x00\x04\x01at\x01"])
def test_additional_words_of_flags_are_kept(raw: bytes) -> None:
    before, behind = split_around_offset(raw)
    assert decode_properties(before + bytes(8) + behind).headers["x-stream-offset"] == 0
