"""Contents: a message is decoded byte for byte as it was published."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.kernel.errors import StorageError, UnreadableRecord
from gateway.kernel.messages.contents import (
    CONTENT_VERSION,
    ContentDecoder,
    ContentWriter,
    body_at,
    decode_content,
)
from gateway.kernel.messages.message import Message, Properties
from gateway.kernel.messages.native_header import NATIVE, native_header

HEADER = native_header(Properties())
NAMES = st.text(max_size=50)
MESSAGES = st.builds(
    lambda exchange, key, body: Message(exchange, key, HEADER, body),
    NAMES,
    NAMES,
    st.binary(max_size=100),
)


@given(st.lists(MESSAGES, max_size=5))
def test_a_content_decodes_to_the_published_message_whatever_was_encoded_before(messages: list[Message]) -> None:
    writer = ContentWriter()
    for message in messages:
        stored = decode_content(writer.encode(message))
        assert (stored.exchange, stored.routing_key, stored.body) == (
            message.exchange,
            message.routing_key,
            message.body,
        )
        assert (stored.header_format, stored.header) == (NATIVE.name, message.header.stored_raw)


@given(MESSAGES, st.binary(max_size=20))
def test_the_body_follows_the_envelope_at_any_position(message: Message, before: bytes) -> None:
    writer = ContentWriter()
    data = before + writer.encode(message)
    assert body_at(data, len(before)) == len(before) + len(writer.envelope(message))


def test_a_content_of_a_newer_layout_is_refused() -> None:
    record = bytes([CONTENT_VERSION + 1]) + ContentWriter().encode(Message("x", "k", HEADER, b""))[1:]
    for read in (decode_content, body_at):
        with pytest.raises(StorageError, match=f"a message has layout {CONTENT_VERSION + 1}"):
            read(record)


@pytest.mark.parametrize("name", ["k" * 65_535, "k" * 65_536, "\ud800" * 40_000, "\u20ac" * 100_000])
def test_a_name_of_any_length_is_preserved(name: str) -> None:
    writer = ContentWriter()
    for message in (Message(name, "k", HEADER, b"body"), Message("x", name, HEADER, b"body")):
        stored = decode_content(writer.encode(message))
        assert (stored.exchange, stored.routing_key, stored.body) == (message.exchange, message.routing_key, b"body")
        assert body_at(b"--" + writer.encode(message), 2) == 2 + len(writer.envelope(message))


def test_short_names_are_encoded_in_layout_version_1() -> None:
    record = ContentWriter().encode(Message("x", "k" * 65_535, HEADER, b""))
    assert record[:5] == b"\x01\x00\x01\xff\xff"


@given(st.binary(max_size=40), st.integers(0, 60))
def test_an_incomplete_content_raises_only_storage_errors(noise: bytes, cut: int) -> None:
    whole = ContentWriter().encode(Message("x", "k", HEADER, b""))
    for record in (noise, whole[:cut], b"\x01" + noise, b"\x02" + noise):
        with suppress(StorageError):
            decode_content(record)
    with pytest.raises(UnreadableRecord):
        decode_content(whole[: min(cut, len(whole) - 1)])


FEW_NAMES = st.sampled_from(["", "x", "xy", "k" * 65_536])
REPETITIVE = st.builds(
    lambda exchange, key, header, body: Message(exchange, key, header, body),
    FEW_NAMES,
    FEW_NAMES,
    st.sampled_from([HEADER, native_header(Properties(priority=3)), native_header(Properties(type="t" * 600))]),
    st.binary(max_size=20),
)


@given(st.lists(REPETITIVE, max_size=20), st.integers(0, 30))
def test_a_decoder_returns_the_same_whatever_it_decoded_before(messages: list[Message], cut: int) -> None:
    decoder = ContentDecoder()
    for message in messages:
        record = ContentWriter().encode(message)
        assert decoder.decode(record) == decode_content(record)
        with suppress(StorageError):
            assert decoder.decode(record[:cut]) == decode_content(record[:cut])


def test_contents_with_the_same_envelope_share_its_parts() -> None:
    decoder, writer = ContentDecoder(), ContentWriter()
    first, second, other = (
        decoder.decode(writer.encode(Message("x", key, HEADER, body)))
        for key, body in (("key", b"first"), ("key", b""), ("other", b"third"))
    )
    assert first.header is second.header
    assert first.routing_key is second.routing_key
    assert (second.body, other.routing_key, other.body) == (b"", "other", b"third")
    assert len({first, second, decode_content(writer.encode(Message("x", "key", HEADER, b"first")))}) == 2
    assert "b'first'" in repr(first)


def test_an_incomplete_content_is_refused_after_a_whole_one() -> None:
    decoder, whole = ContentDecoder(), ContentWriter().encode(Message("x", "key", HEADER, b""))
    decoder.decode(whole)
    with pytest.raises(UnreadableRecord):
        decoder.decode(whole[:-1])
