"""Chunks: written entries are read back from any offset, and after merging."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.kernel.errors import StorageError
from gateway.kernel.messages.chunks import (
    CHUNK_VERSION,
    HEAD_SIZE,
    LONGEST_FILTER,
    ChunkBuilder,
    Entry,
    chunk_heads,
    encode_chunk,
    entries,
    merge_chunks,
    read_head,
)
from gateway.kernel.messages.contents import ContentWriter, EnvelopeNames
from gateway.kernel.messages.message import Header, Message
from gateway.kernel.messages.native_header import NATIVE, NativeFormat

MOMENTS = st.integers(0, 2**48)
ENTRY = st.tuples(MOMENTS, st.binary(max_size=LONGEST_FILTER), st.binary(max_size=200))


@st.composite
def runs(draw: st.DrawFn) -> tuple[int, list[list[Entry]]]:
    """Draw a first offset, and the entries of consecutive chunks with rising timestamps."""
    first = draw(st.integers(0, 2**40))
    chunks = draw(st.lists(st.lists(ENTRY, min_size=1, max_size=6), min_size=1, max_size=5))
    moments = iter(sorted(entry[0] for chunk in chunks for entry in chunk))
    return first, [[(next(moments), *entry[1:]) for entry in chunk] for chunk in chunks]


def encoded(first: int, chunks: list[list[Entry]]) -> list[bytes]:
    """Return the chunks as bytes."""
    pieces = []
    for chunk in chunks:
        pieces.append(encode_chunk(first, chunk))
        first += len(chunk)
    return pieces


def numbered(first: int, chunks: list[list[Entry]]) -> list[tuple[int, int, bytes, bytes]]:
    """Return the entries with their offsets."""
    flat = [entry for chunk in chunks for entry in chunk]
    return [(first + index, *entry) for index, entry in enumerate(flat)]


@given(runs(), st.integers(-3, 40))
def test_entries_can_be_read_from_any_offset(run: tuple[int, list[list[Entry]]], skipped: int) -> None:
    first, chunks = run
    expected = [entry for entry in numbered(first, chunks) if entry[0] >= first + skipped]
    assert list(entries(b"".join(encoded(first, chunks)), first + skipped)) == expected


@given(runs())
def test_a_chunk_head_describes_its_entries_and_its_position(run: tuple[int, list[list[Entry]]]) -> None:
    first, chunks = run
    pieces = encoded(first, chunks)
    position = 0
    for head, chunk, piece in zip(chunk_heads(b"".join(pieces)), chunks, pieces, strict=True):
        assert (head.first, head.count, head.end) == (first, len(chunk), first + len(chunk))
        assert (head.first_ms, head.last_ms) == (chunk[0][0], chunk[-1][0])
        assert (head.position, head.size) == (position, len(piece))
        assert head.entries_size == len(piece) - HEAD_SIZE
        first, position = head.end, position + len(piece)


@given(runs())
def test_a_merged_chunk_equals_one_encoded_from_all_entries(run: tuple[int, list[list[Entry]]]) -> None:
    first, chunks = run
    merged = merge_chunks(encoded(first, chunks))
    assert len(list(chunk_heads(merged))) == 1
    assert merged == encode_chunk(first, [entry for chunk in chunks for entry in chunk])


def test_chunks_with_a_gap_between_them_are_not_merged() -> None:
    one, other = encode_chunk(0, [(5, b"", b"a")]), encode_chunk(2, [(5, b"", b"b")])
    with pytest.raises(StorageError, match="ends before offset 1, but the next one begins with 2"):
        merge_chunks([one, other])


@given(st.data())
def test_an_incomplete_chunk_is_detected_wherever_it_is_cut(data: st.DataObject) -> None:
    whole = encode_chunk(7, [(1, b"f", b"content"), (2, b"", b"")])
    cut = data.draw(st.integers(1, len(whole) - 1))
    with pytest.raises(StorageError, match="incomplete"):
        list(entries(whole[:cut]))


def test_a_chunk_of_another_layout_is_refused() -> None:
    chunk = encode_chunk(7, [(1, b"", b"")])
    with pytest.raises(StorageError, match=f"layout {CHUNK_VERSION + 1}"):
        read_head(bytes([CHUNK_VERSION + 1]) + chunk[1:])


class OtherFormat(NativeFormat):
    """A format of headers with another name."""

    name = "other"


NAMES = st.sampled_from(["", "orders", "\ud800", "k" * 70_000])
MESSAGE = st.builds(
    lambda exchange, key, header_format, raw, body: Message(exchange, key, Header(header_format, raw), body),
    NAMES,
    NAMES,
    st.sampled_from([NATIVE, OtherFormat()]),
    st.sampled_from([b"", b"a", b"b"]),
    st.sampled_from([b"", b"a", b"b"]),
)
ADDED = st.tuples(st.integers(0, 2), st.sampled_from([b"", b"f", b"g"]), MESSAGE, st.booleans())


@given(st.lists(ADDED, min_size=1, max_size=12))
def test_a_message_is_added_as_its_encoded_content_would_be(added: list[tuple[int, bytes, Message, bool]]) -> None:
    expected, found, writer = ChunkBuilder(7), ChunkBuilder(7), ContentWriter()
    names: EnvelopeNames | None = None
    for timestamp_ms, filter_value, message, is_encoded in added:
        expected.add(timestamp_ms, filter_value, writer.envelope(message), message.body)
        if is_encoded:
            found.add(timestamp_ms, filter_value, writer.envelope(message), message.body)
            continue
        if names is None or not names.are_of(message):
            names = EnvelopeNames(message)
        found.add_message(timestamp_ms, filter_value, names, message)
    assert (len(found), found.size) == (len(expected), expected.size)
    assert found.encoded() == expected.encoded()
