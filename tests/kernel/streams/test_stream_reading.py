"""Decoding of stream chunks: each message gets its own names and header, whatever its neighbours are."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.kernel.messages.chunks import encode_chunk
from gateway.kernel.messages.contents import ContentReader, ContentWriter
from gateway.kernel.messages.message import Message, Properties
from gateway.kernel.messages.native_header import NATIVE, native_header
from gateway.kernel.streams.reading import queued_messages

#: Names whose concatenations are ambiguous.
NAMES = st.sampled_from(["", "a", "b", "ab", "ba", "aplain", "é"])
IDS = st.sampled_from([None, "", "1", "2", "12", "plain"])
MESSAGES = st.lists(st.tuples(NAMES, NAMES, IDS, st.binary(max_size=3)), min_size=1, max_size=12)


@given(expected=MESSAGES, cut=st.integers(0, 12))
def test_each_message_is_decoded_as_it_was_encoded(
    expected: list[tuple[str, str, str | None, bytes]], cut: int
) -> None:
    writer, reader = ContentWriter(), ContentReader({"plain": NATIVE})
    contents = [
        writer.encode(Message(exchange, key, native_header(Properties(correlation_id=id)), body))
        for exchange, key, id, body in expected
    ]
    data = b"".join(
        encode_chunk(first, [(7, b"", content) for content in part])
        for first, part in ((0, contents[:cut]), (min(cut, len(contents)), contents[cut:]))
        if part
    )
    found = list(queued_messages(data, 0, len(expected), reader, None))
    assert [entry.position for entry in found] == list(range(len(expected)))
    messages = [entry.message for entry in found]
    assert [
        (each.exchange, each.routing_key, each.properties.correlation_id, each.body) for each in messages
    ] == expected
