"""Contents: what a publisher sent comes back byte for byte."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.kernel.contents import CONTENT_VERSION, ContentWriter, body_at, decode_content
from gateway.kernel.errors import StorageError
from gateway.kernel.message import Message, Properties
from gateway.kernel.plain import PLAIN, plain_header

HEADER = plain_header(Properties())
NAMES = st.text(max_size=50)
MESSAGES = st.builds(
    lambda exchange, key, body: Message(exchange, key, HEADER, body),
    NAMES,
    NAMES,
    st.binary(max_size=100),
)


@given(st.lists(MESSAGES, max_size=5))
def test_a_content_is_what_was_published_whatever_was_written_before(messages: list[Message]) -> None:
    writer = ContentWriter()
    for message in messages:
        stored = decode_content(writer.encode(message))
        assert (stored.exchange, stored.routing_key, stored.body) == (
            message.exchange,
            message.routing_key,
            message.body,
        )
        assert (stored.header_format, stored.header) == (PLAIN.name, message.header.kept)


@given(MESSAGES, st.binary(max_size=20))
def test_the_body_is_found_behind_the_envelope_wherever_the_content_begins(message: Message, before: bytes) -> None:
    writer = ContentWriter()
    data = before + writer.encode(message)
    assert body_at(data, len(before)) == len(before) + len(writer.envelope(message))


def test_a_content_of_a_newer_layout_is_refused() -> None:
    record = bytes([CONTENT_VERSION + 1]) + ContentWriter().encode(Message("x", "k", HEADER, b""))[1:]
    for read in (decode_content, body_at):
        with pytest.raises(StorageError, match=f"a message has layout {CONTENT_VERSION + 1}"):
            read(record)
