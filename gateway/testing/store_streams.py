"""The contract of a store for streams; see ``gateway.testing.store``."""

from collections.abc import Callable
from typing import Final

from gateway.kernel.journal.changes import (
    EVERYTHING,
    Appended,
    Change,
    Enqueued,
    Put,
    Removed,
    Sealed,
    Stored,
    StreamSegment,
    Truncated,
)
from gateway.kernel.messages.chunks import chunk_heads, entries
from gateway.kernel.messages.contents import decode_content
from gateway.testing.store_session import (
    StorePlace,
    StoreSession,
    content_of,
    message_with,
    places_in,
    queue_record,
    segments_in,
)

#: A fixed time, in milliseconds since the epoch.
_MOMENT_MS: Final = 1_700_000_000_000

#: More than any check stores, in bytes.
_ALL: Final = 1 << 30


def stream_message(stream_id: int, offset: int, size: int = 4) -> Appended:
    """Return a message of a stream; all its fields follow from its offset."""
    message = message_with(0, bytes([offset % 256]) * size, "ex\u00e4mple", f"key {offset % 7}")
    return Appended(stream_id, offset, _MOMENT_MS + offset, b"filter" * (offset % 3), message)


def segment(stream_id: int, first: int, end: int, bloom: bytes = b"\x01bits") -> StreamSegment:
    """Return the record that a kernel writes when it seals a segment."""
    return StreamSegment(stream_id, first, end, 1000, _MOMENT_MS + first, _MOMENT_MS + end - 1, True, bloom)


def read_all(session: StoreSession, stream_id: int, offset: int, most_bytes: int = _ALL) -> list[int]:
    """Read a stream from an offset to its end, check everything, and return the offsets."""
    read: list[int] = []
    while (data := session.store.stream_chunks(stream_id, offset, most_bytes)) is not None:
        first = next(chunk_heads(data)).first
        assert first <= offset, f"for offset {offset} the store returns chunks from {first} on"
        for found, moment_ms, value, content in entries(data, offset):
            assert found == offset, f"offset {found} follows {offset - 1} in stream {stream_id}"
            sent = stream_message(stream_id, found, len(decode_content(content).body))
            assert (moment_ms, value) == (sent.timestamp_ms, sent.filter_value), f"offset {found} is another message's"
            assert decode_content(content) == content_of(sent.message), f"the content at offset {found} differs"
            read.append(found)
            offset += 1
    return read


def _expect(session: StoreSession, stream_id: int, first: int, end: int) -> None:
    """Check that exactly these messages are stored."""
    found = read_all(session, stream_id, first)
    expected = list(range(first, end))
    assert found == expected, f"stream {stream_id} holds {first} up to {end}, but the store reads {found}"
    if first:
        before = session.store.stream_chunks(stream_id, first - 1, _ALL)
        assert before is None, f"offset {first - 1} of stream {stream_id} was truncated, and is read"


def _bounds(session: StoreSession) -> list[tuple[int, int, int, bool]]:
    return [(found.stream_id, found.first, found.end, found.is_sealed) for found in segments_in(session.found)]


def _messages_of_a_stream_come_back_in_order_from_any_offset(place: StorePlace) -> None:
    session = StoreSession(place)
    assert session.store.stream_chunks(1, 0, _ALL) is None, "a new store returns chunks of a stream"
    session.append(Put(queue_record(1)), stream_message(1, 0))
    session.append(*(stream_message(1, offset) for offset in range(1, 10)))
    session.append(
        stream_message(1, 10, size=300_000), *(stream_message(1, offset, size=50_000) for offset in range(11, 20))
    )
    for _ in range(2):
        session.settle()
        for offset in (0, 5, 10, 19):
            offsets = read_all(session, 1, offset)
            assert offsets == list(range(offset, 20)), f"read from offset {offset} on: {offsets}"
        assert session.store.stream_chunks(1, 20, _ALL) is None, "the store returns chunks beyond the end of a stream"
        session.crash()
    assert _bounds(session) == [(1, 0, 20, False)], f"a stream of 20 messages is recovered as {_bounds(session)}"
    found = segments_in(session.found)[0]
    moments = (found.first_ms, found.last_ms)
    assert moments == (_MOMENT_MS, _MOMENT_MS + 19), f"the segment is reported with the times {moments}"
    assert 750_000 < found.size_bytes < 760_000, f"750,036 bytes of bodies are reported as {found.size_bytes}"


def _a_read_of_a_stream_is_bounded(place: StorePlace) -> None:
    session = StoreSession(place)
    session.append(Put(queue_record(1)))
    for start in range(0, 600, 100):
        session.append(*(stream_message(1, offset, size=1000) for offset in range(start, start + 100)))
        session.settle()
    data = session.store.stream_chunks(1, 250, 400_000)
    assert data is not None, "offset 250 of 600 is not found"
    assert len(data) <= 400_000, f"limited to 400,000 bytes, the store returns {len(data)}"
    assert session.store.stream_chunks(1, 250, 1) is not None, "a chunk larger than the limit is not returned"
    assert read_all(session, 1, 3, 1) == list(range(3, 600)), "read chunk by chunk, something is missing"


def _streams_do_not_mix(place: StorePlace) -> None:
    session = StoreSession(place)
    session.append(*(Put(queue_record(number)) for number in (1, 2, 256)))
    for offset in range(40):
        session.append(*(stream_message(number, offset) for number in (1, 2, 256) if offset < 30 or number == 2))
    session.append(Truncated(2, 0), Sealed(segment(256, 0, 30)))
    session.crash_settled()
    for number, end in ((1, 30), (2, 40), (256, 30)):
        _expect(session, number, 0, end)
    expected = [(1, 0, 30, False), (2, 0, 40, False), (256, 0, 30, True), (256, 30, 30, False)]
    assert sorted(_bounds(session)) == expected, f"recovered {_bounds(session)}"
    kinds = [type(change) for change in session.found]
    assert kinds == [Put] * 3 + [StreamSegment] * 4, f"segments come behind every Put, but recovery gave {kinds}"


def _sealed_segments_keep_their_metadata(place: StorePlace) -> None:
    session = StoreSession(place)
    session.append(Put(queue_record(1)), Stored(message_with(7)), Enqueued(1, 1, 7, 0))
    for start in (0, 100, 200):
        session.append(*(stream_message(1, offset, size=3000) for offset in range(start, start + 100)))
        session.append(Sealed(segment(1, start, start + 100, bytes([start]) * 17)))
    session.append(*(stream_message(1, offset) for offset in range(300, 310)))
    for _ in range(2):
        session.crash_settled()
        _expect(session, 1, 0, 310)
        found = segments_in(session.found)
        assert found[:3] == [segment(1, start, start + 100, bytes([start]) * 17) for start in (0, 100, 200)], (
            f"sealed segments were recovered as {found[:3]}"
        )
        assert _bounds(session)[3:] == [(1, 300, 310, False)], f"recovered {_bounds(session)}"
        assert len(places_in(session.found)) == 1, "the message of a queue beside the stream was lost"


def _a_sealed_segment_may_be_in_a_file(place: StorePlace) -> None:
    session = StoreSession(place)
    session.append(Put(queue_record(1)), *(stream_message(1, offset, size=2000) for offset in range(300)))
    session.append(Sealed(segment(1, 0, 300)), stream_message(1, 300))
    session.settle()
    assert session.store.segment_path(1, 300) is None, "a segment that is not sealed is reported to be in a file"
    assert session.store.segment_path(2, 0) is None, "a segment of an unknown stream is reported to be in a file"
    path = session.filed(1, 0)
    if path is not None:
        found = [offset for offset, *_ in entries(path.read_bytes())]
        assert found == list(range(300)), f"the file of a segment of 300 messages holds {found}"
    _expect(session, 1, 0, 301)
    session.append(Truncated(1, 300))
    session.settle()
    assert session.store.segment_path(1, 0) is None, "a segment that was truncated is reported to be in a file"
    _expect(session, 1, 300, 301)


def _truncated_messages_are_not_recovered_and_offsets_continue(place: StorePlace) -> None:
    session = StoreSession(place)
    session.append(Put(queue_record(1)))
    for first in (0, 10, 20):
        session.append(
            *(stream_message(1, offset) for offset in range(first, first + 10)), Sealed(segment(1, first, first + 10))
        )
    session.append(Truncated(1, 10))
    session.settle()
    _expect(session, 1, 10, 30)
    session.crash()
    assert _bounds(session) == [(1, 10, 20, True), (1, 20, 30, True), (1, 30, 30, False)], f"found {_bounds(session)}"
    session.append(Truncated(1, 30))
    session.append(Truncated(1, 20))
    session.crash_settled()
    assert _bounds(session) == [(1, 30, 30, False)], f"a stream that is empty is recovered as {_bounds(session)}"
    session.append(*(stream_message(1, offset) for offset in range(30, 35)))
    session.crash_settled()
    _expect(session, 1, 30, 35)


def _segments_are_added_and_removed_within_a_step(place: StorePlace) -> None:
    session = StoreSession(place)
    steps: list[Change] = [
        stream_message(1, 0),
        Sealed(segment(1, 0, 1)),
        stream_message(1, 1),
        Sealed(segment(1, 1, 2)),
        Truncated(1, 1),
        stream_message(1, 2),
    ]
    session.append(Put(queue_record(1)), *steps)
    session.settle()
    _expect(session, 1, 1, 3)
    session.crash()
    assert _bounds(session) == [(1, 1, 2, True), (1, 2, 3, False)], f"recovered {_bounds(session)}"


def _appending_to_a_stream_twice_is_the_same_as_once(place: StorePlace) -> None:
    session = StoreSession(place)
    changes: list[Change] = [
        Put(queue_record(1)),
        stream_message(1, 0),
        stream_message(1, 1),
        stream_message(1, 2),
        Sealed(segment(1, 0, 2)),
        Truncated(1, 2),
    ]
    for _ in range(2):
        session.append(*changes)
        session.append(*changes)
        session.settle()
    session.crash()
    session.append(*changes)
    session.crash_settled()
    _expect(session, 1, 2, 3)
    assert _bounds(session) == [(1, 2, 3, False)], f"recovered {_bounds(session)}"


def _a_deleted_stream_leaves_nothing(place: StorePlace) -> None:
    session = StoreSession(place)
    for number in (1, 2):
        session.append(Put(queue_record(number)), *(stream_message(number, offset) for offset in range(10)))
        session.append(Sealed(segment(number, 0, 10)), *(stream_message(number, offset) for offset in range(10, 20)))
    session.settle()
    session.append(Truncated(1, EVERYTHING), Removed("queue", ("/", "q1")))
    session.append(Removed("queue", ("/", "q2")))
    session.crash_settled()
    assert _bounds(session) == [], f"both streams are gone, but recovered {_bounds(session)}"
    session.append(*(Put(queue_record(number)) for number in (1, 2)), stream_message(1, 0), stream_message(2, 0))
    session.crash_settled()
    for number in (1, 2):
        _expect(session, number, 0, 1)
    assert _bounds(session) == [(1, 0, 1, False), (2, 0, 1, False)], f"recovered {_bounds(session)}"


def _a_step_that_appends_survives_whole_or_not_at_all(place: StorePlace) -> None:
    session = StoreSession(place)
    session.append(Put(queue_record(1)), Put(queue_record(2)))
    session.settle()
    for step in range(60):
        session.append(
            stream_message(1, 2 * step, 2000),
            stream_message(2, step, 2000),
            stream_message(1, 2 * step + 1),
            Enqueued(1, step + 1, 1, 0),
        )
        if step % 10 == 9:
            session.append(Sealed(segment(1, 2 * step - 18, 2 * step + 2)))
    session.crash()
    steps = len(places_in(session.found))
    _expect(session, 1, 0, 2 * steps)
    _expect(session, 2, 0, steps)


STREAM_CHECKS: Final[tuple[Callable[[StorePlace], None], ...]] = (
    _messages_of_a_stream_come_back_in_order_from_any_offset,
    _a_read_of_a_stream_is_bounded,
    _streams_do_not_mix,
    _sealed_segments_keep_their_metadata,
    _a_sealed_segment_may_be_in_a_file,
    _truncated_messages_are_not_recovered_and_offsets_continue,
    _segments_are_added_and_removed_within_a_step,
    _appending_to_a_stream_twice_is_the_same_as_once,
    _a_deleted_stream_leaves_nothing,
    _a_step_that_appends_survives_whole_or_not_at_all,
)
"""All single checks; each is called with an empty place."""
