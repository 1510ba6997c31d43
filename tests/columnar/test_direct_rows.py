"""Rows read directly beside the same rows read one by one; ``make test-wheel`` runs these tests against the C code."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.columnar.encoding import direct_rows
from gateway.columnar.encoding.direct_rows import DirectReader, DirectRows
from gateway.columnar.encoding.formats import envelope_reader
from gateway.columnar.encoding.messages import MessageColumns
from gateway.columnar.encoding.pieces import Piece
from gateway.columnar.encoding.rows import MOST_ROWS
from gateway.kernel.errors import GatewayError
from gateway.kernel.messages.chunks import encode_chunk
from gateway.kernel.messages.message import Properties
from gateway.kernel.messages.stored_message import StoredMessage
from gateway_amqp.header import AMQP
from tests.columnar.streams import MIDNIGHT_MS, NOON_MS, amqp, chunk, message
from tests.columnar.test_direct_headers import AMQP_HEADERS, ANY_TEXT, STORED, damaged, record

EVERYTHING = 1 << 60

#: Mostly batches that can be read directly: few of their messages have unusual headers.
USUAL = st.builds(
    StoredMessage,
    st.sampled_from(["", "orders"]) | ANY_TEXT,
    st.sampled_from(["a", "b", "größer"]) | ANY_TEXT,
    st.just(AMQP.name),
    AMQP_HEADERS,
    st.binary(max_size=9),
)
UNUSUAL = st.builds(StoredMessage, ANY_TEXT, ANY_TEXT, st.just(AMQP.name), damaged(AMQP_HEADERS), st.binary(max_size=9))
MESSAGES = st.lists(USUAL, min_size=1, max_size=12) | st.lists(USUAL | UNUSUAL | STORED, min_size=1, max_size=6)
STEPS = st.lists(st.sampled_from([0, 1, 43_200_000, 1 << 62]), min_size=12, max_size=12)


def chunks_of(messages: Sequence[StoredMessage], steps: Sequence[int], sizes: Sequence[int]) -> bytes:
    """Return chunks of these sizes; each message comes a step after the one before."""
    time_ms, data = NOON_MS, b""
    entries = []
    for each, step in zip(messages, steps, strict=False):
        time_ms += step
        entries.append((min(time_ms, (1 << 64) - 1), b"filter"[: len(each.body)], record(each)))
    first = 0
    for size in (*sizes, len(entries)):
        part = entries[first : first + size]
        if part:
            data += encode_chunk(first, part)
        first += len(part)
    return data


def outcome(direct: DirectReader | None, data: bytes, first: int, end: int) -> tuple[list[Piece], str]:
    """Return the pieces up to an error, and the error."""
    found: list[Piece] = []
    try:
        for each in MessageColumns(envelope_reader(), direct).pieces([data], first, end, vhost="/", queue="q"):
            each.batch.validate(full=True)
            found.append(each)
    except GatewayError as error:
        return found, f"{type(error).__name__}: {error}"
    return found, ""


def require_equal(data: bytes, first: int = 0, end: int = EVERYTHING) -> list[Piece]:
    """Check that both ways find the same; return it."""
    expected, failure = outcome(None, data, first, end)
    reader = DirectReader()
    for _ in range(2):  # the second time with warm caches
        found, other = outcome(reader, data, first, end)
        assert other == failure
        assert [each[:4] for each in found] == [each[:4] for each in expected]
        for one, two in zip(found, expected, strict=True):
            assert one.batch.equals(two.batch)
    return found


@given(MESSAGES, STEPS, st.lists(st.integers(1, 4), max_size=4), st.integers(0, 12), st.integers(0, 12))
def test_both_ways_find_the_same(
    messages: list[StoredMessage], steps: list[int], sizes: list[int], first: int, count: int
) -> None:
    require_equal(chunks_of(messages, steps, sizes), first, first + count)


@given(MESSAGES, st.lists(st.integers(1, 4), max_size=4), st.data())
def test_both_ways_find_the_same_damage(messages: list[StoredMessage], sizes: list[int], damage: st.DataObject) -> None:
    data = bytearray(chunks_of(messages, [1] * len(messages), sizes))
    for at in damage.draw(st.lists(st.integers(0, len(data) - 1), max_size=3)):
        data[at] = damage.draw(st.integers(0, 255))
    require_equal(bytes(data[: damage.draw(st.integers(0, len(data)))]))


def test_batches_have_the_same_limits() -> None:
    count = 2 * MOST_ROWS + 5
    messages = [message(b"body", amqp(Properties(correlation_id=f"{number}"))) for number in range(count)]
    data = b"".join(chunk(messages[at : at + 500], first=at, at_ms=NOON_MS + at) for at in range(0, count, 500))
    assert [each.batch.num_rows for each in require_equal(data)] == [MOST_ROWS, MOST_ROWS, 5]
    large = [message(bytes(3 << 20)) for _ in range(5)]
    assert [each.batch.num_rows for each in require_equal(chunk(large))] == [2, 2, 1]
    at_midnight = chunk([message(), message(), message()], at_ms=MIDNIGHT_MS - 1)
    assert [each.batch.num_rows for each in require_equal(at_midnight)] == [1, 2]


def test_a_batch_that_cannot_be_read_directly_does_not_stop_the_next() -> None:
    unusual = message(header=amqp(Properties(headers={"CC": ["other"]})))
    messages = [unusual, *(message() for _ in range(2 * MOST_ROWS))]
    data = b"".join(chunk(messages[at : at + 900], first=at) for at in range(0, len(messages), 900))
    require_equal(data)
    batches = list(DirectReader().batches(data, 0, EVERYTHING))
    assert [len(each) for each in batches] == [MOST_ROWS, MOST_ROWS, 1]
    is_native = direct_rows.native is not None
    assert [isinstance(each, DirectRows) for each in batches] == [False, is_native, is_native]


def test_chunks_that_are_not_consecutive_are_read_one_by_one() -> None:
    one, other = chunk([message(), message()], first=5), chunk([message()], first=9)
    pieces = require_equal(one + other)
    assert [each.batch["offset"].to_pylist() for each in pieces] == [[5, 6], [9]]


@pytest.mark.parametrize("at_ms", [0, NOON_MS])
def test_the_first_row_has_its_own_offset_on_the_first_day_of_all_too(at_ms: int) -> None:
    pieces = require_equal(chunk([message(), message()], first=7, at_ms=at_ms))
    assert [each.batch["offset"].to_pylist() for each in pieces] == [[7, 8]]


@pytest.mark.parametrize("count", [1, 7, 8, 9, 17])
def test_a_value_in_one_row_only(count: int) -> None:
    header = amqp(Properties(message_id="ü", priority=7, app_id=""))
    for place in range(count):
        require_equal(chunk([message(header=header) if at == place else message(b"") for at in range(count)]))
