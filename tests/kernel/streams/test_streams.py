"""Streams: messages are kept, can be read any number of times, and only once they are durable."""

from datetime import UTC, datetime
from itertools import pairwise
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.kernel.errors import NotImplementedHere, PreconditionFailed, Refused
from gateway.kernel.journal.changes import Appended, StreamSegment
from gateway.kernel.journal.records.topology import PolicyRecord
from gateway.kernel.messages.message import Value
from gateway.kernel.queueing.consumer import Consumer
from gateway.kernel.queueing.delivery_outcome import DeliveryOutcome
from gateway.kernel.queueing.queue_operations import require_queue
from gateway.kernel.streams.cursor import READ_SIZE
from gateway.kernel.streams.read_scheduler import TURN_BUDGET
from gateway.kernel.streams.stream import Stream
from gateway.testing import MemoryBroker, Recipient
from gateway.testing.clock import BEGINNING_MS

#: A segment size so small that every segment holds two of the messages in these tests.
TINY: Final = 500


def stream_of(broker: MemoryBroker, name: str = "log", **arguments: Value) -> Stream:
    """Declare and return a stream; arguments without ``x-`` and with underscores."""
    asked: dict[str, Value] = {f"x-{key.replace('_', '-')}": value for key, value in arguments.items()}
    stream = broker.vhost.declare_queue(name, is_durable=True, arguments={"x-queue-type": "stream", **asked})
    assert isinstance(stream, Stream)
    return stream


def crash_and_restart(broker: MemoryBroker, name: str = "log") -> tuple[MemoryBroker, Stream]:
    """Crash the broker; return a broker started from its store, and the stream."""
    after = broker.crashed()
    stream = after.vhost.queue(name)
    assert isinstance(stream, Stream)
    return after, stream


def publish(broker: MemoryBroker, *numbers: int, value: str = "", to: str = "log") -> None:
    """Publish messages and make them durable."""
    for number in numbers:
        headers: dict[str, Value] = {"x-stream-filter-value": value} if value else {}
        broker.publish(to, b"%d" % number, headers=headers)
    broker.commit()
    broker.advance(0)


def reader(broker: MemoryBroker, stream: Stream, prefetch: int = 100, **arguments: Value) -> Recipient:
    """Return a recipient that reads the stream, by default from its first message."""
    asked: dict[str, Value] = {f"x-stream-{key.replace('_', '-')}": value for key, value in arguments.items()}
    recipient = Recipient()
    recipient.consume(stream, prefetch=prefetch, arguments={"x-stream-offset": "first", **asked})
    broker.advance(0)
    return recipient


def numbers_received(recipient: Recipient) -> list[int]:
    """Return the numbers that a recipient received."""
    return [int(body) for body in recipient.bodies]


def settle(
    broker: MemoryBroker, recipient: Recipient, tag: int = 0, outcome: DeliveryOutcome = DeliveryOutcome.ACCEPTED
) -> None:
    """Settle one delivery, or all."""
    recipient.settle(tag, outcome, up_to=not tag)
    broker.advance(0)


# Storage and durability


def test_messages_are_readable_once_they_are_durable_and_not_before(broker: MemoryBroker) -> None:
    stream = stream_of(broker)
    recipient = reader(broker, stream)
    broker.publish("log", b"0")
    broker.advance(0)
    assert (numbers_received(recipient), stream.durable_end, len(stream)) == ([], 0, 1)
    assert stream.read(0, 1000) is None
    broker.commit()
    broker.advance(0)
    assert (numbers_received(recipient), stream.durable_end, len(stream)) == ([0], 1, 1)


def test_every_reader_gets_all_messages_and_none_is_removed(broker: MemoryBroker) -> None:
    stream = stream_of(broker)
    publish(broker, 0, 1, 2)
    recipients = [reader(broker, stream) for _ in range(3)]
    settle(broker, recipients[0])
    publish(broker, 3)
    assert [numbers_received(recipient) for recipient in recipients] == [[0, 1, 2, 3]] * 3
    assert (len(stream), stream.unsettled) == (4, 0)


def test_a_message_is_stored_whatever_its_delivery_mode(broker: MemoryBroker) -> None:
    stream_of(broker)
    broker.publish("log", b"0", is_persistent=False)
    broker.publish("log", b"1", is_persistent=True)
    broker.commit()
    after, stream = crash_and_restart(broker)
    assert numbers_received(reader(after, stream)) == [0, 1]


def test_deliveries_have_offset_and_timestamp(broker: MemoryBroker) -> None:
    stream = stream_of(broker)
    publish(broker, 0)
    broker.advance(1.5)
    publish(broker, 1)
    recipient = reader(broker, stream)
    entries = [delivery.entry for delivery in recipient.ledger]
    assert [(entry.position, entry.enqueued_at_ms - BEGINNING_MS) for entry in entries] == [(0, 0), (1, 1500)]
    assert not any(received.redelivered for received in recipient.received)


def test_a_message_read_from_the_store_is_as_it_was_published(broker: MemoryBroker) -> None:
    stream = stream_of(broker)
    broker.vhost.bind(broker.vhost.exchange("amq.topic"), stream, "#")
    broker.publish("a.b", b"body", exchange="amq.topic", headers={"h": [1, "two"]})
    broker.commit()
    message = reader(broker, stream).received[0].message
    assert (message.exchange, message.routing_key, message.headers) == ("amq.topic", "a.b", {"h": [1, "two"]})


def test_timestamps_never_decrease(broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = stream_of(broker)
    broker.advance(10)
    publish(broker, 0)
    monkeypatch.setattr(broker.clock, "wall_ms", lambda: BEGINNING_MS)
    publish(broker, 1)
    recipient = reader(broker, stream)
    assert [delivery.entry.enqueued_at_ms - BEGINNING_MS for delivery in recipient.ledger] == [10_000, 10_000]


def test_messages_of_all_committed_turns_become_readable_together(broker: MemoryBroker) -> None:
    stream = stream_of(broker)
    for number in range(5):
        broker.publish("log", b"%d" % number)
        broker.end_turn()
    assert stream.durable_end == 0
    broker.store.commit()
    assert stream.durable_end == 5


def test_messages_of_the_current_turn_are_not_readable_after_a_commit(broker: MemoryBroker) -> None:
    stream = stream_of(broker)
    broker.publish("log", b"0")
    broker.end_turn()
    broker.publish("log", b"1")
    broker.store.commit()
    assert (stream.durable_end, stream.next_offset) == (1, 2)


def test_callbacks_are_called_for_new_durable_messages(broker: MemoryBroker) -> None:
    stream = stream_of(broker)
    durable_ends: list[int] = []
    stream.on_durable.append(lambda: durable_ends.append(stream.durable_end))
    broker.publish("log", b"0")
    broker.commit()
    broker.publish("log", b"1")
    broker.commit()
    assert durable_ends == [1, 2]


# Credit and scheduling


def test_a_reader_gets_messages_within_its_credit_and_more_when_it_settles(broker: MemoryBroker) -> None:
    stream = stream_of(broker)
    publish(broker, *range(10))
    recipient = reader(broker, stream, prefetch=3)
    assert numbers_received(recipient) == [0, 1, 2]
    settle(broker, recipient, 2)
    assert numbers_received(recipient) == [0, 1, 2, 3]
    settle(broker, recipient)
    assert numbers_received(recipient) == list(range(7))


@pytest.mark.parametrize("outcome", DeliveryOutcome)
def test_a_settled_message_gives_credit_back_and_is_not_redelivered(
    broker: MemoryBroker, outcome: DeliveryOutcome
) -> None:
    stream = stream_of(broker)
    publish(broker, *range(4))
    recipient = reader(broker, stream, prefetch=2)
    settle(broker, recipient, 1, outcome)
    assert numbers_received(recipient) == [0, 1, 2]


def test_a_reader_with_a_full_output_buffer_is_skipped(broker: MemoryBroker) -> None:
    stream = stream_of(broker)
    publish(broker, 0)
    slow, quick = reader(broker, stream), reader(broker, stream)
    slow.is_open = False
    publish(broker, 1, 2)
    assert (numbers_received(slow), numbers_received(quick)) == ([0], [0, 1, 2])
    assert not stream.lacks_capacity
    slow.is_open = True
    slow.resume()
    broker.advance(0)
    assert numbers_received(slow) == [0, 1, 2]


def test_long_reads_take_many_turns_and_do_not_block_other_readers(broker: MemoryBroker) -> None:
    stream = stream_of(broker)
    stream_of(broker, "other")
    for number in range(3 * TURN_BUDGET):
        broker.publish("log", b"%d" % number)
    publish(broker, 7, to="other")
    greedy, other = Recipient(), Recipient()
    greedy.consume(stream, prefetch=60_000, arguments={"x-stream-offset": "first"})
    other.consume(broker.vhost.queue("other"), prefetch=10, arguments={"x-stream-offset": "first"})
    calls: list[int] = []

    def watch() -> None:
        calls.append(len(greedy.received))
        if len(greedy.received) < 3 * TURN_BUDGET:
            broker.clock.call_later(0, watch)

    broker.clock.call_later(0, watch)
    broker.advance(0)
    assert numbers_received(greedy) == list(range(3 * TURN_BUDGET))
    handed_out = [later - earlier for earlier, later in pairwise(calls)]
    assert max(handed_out) <= TURN_BUDGET
    assert numbers_received(other) == [7]


def test_a_reader_far_behind_gets_all_messages_in_order(broker: MemoryBroker) -> None:
    stream = stream_of(broker, stream_max_segment_size_bytes=50_000)
    recipient = reader(broker, stream, prefetch=1)
    for start in range(0, 3000, 100):
        publish(broker, *range(start, start + 100))
        if start % 1000 == 0:
            settle(broker, recipient)
    while len(recipient.received) < 3000:
        before = len(recipient.received)
        settle(broker, recipient)
        assert len(recipient.received) > before
    assert numbers_received(recipient) == list(range(3000))


# Start offset


STARTS = [
    pytest.param("first", 2, id="first: the first message"),
    pytest.param("last", 9, id="last: the last message"),
    pytest.param("next", 10, id="next: new messages only"),
    pytest.param(None, 10, id="default: new messages only"),
    pytest.param(5, 5, id="an offset"),
    pytest.param(0, 2, id="a truncated offset"),
    pytest.param(-7, 2, id="a negative offset"),
    pytest.param(1000, 10, id="a future offset"),
    pytest.param(datetime.fromtimestamp((BEGINNING_MS + 6000) / 1000, UTC), 6, id="the time of a message"),
    pytest.param(datetime.fromtimestamp((BEGINNING_MS + 6001) / 1000, UTC), 7, id="a time between two messages"),
    pytest.param(datetime(2001, 1, 1, tzinfo=UTC), 2, id="a time before all messages"),
    pytest.param(datetime(2101, 1, 1, tzinfo=UTC), 10, id="a time after all messages"),
    pytest.param("3s", 7, id="an age"),
    pytest.param("1h", 2, id="an age before all messages"),
]


@pytest.mark.parametrize(("start", "first"), STARTS)
def test_the_start_offset_of_a_reader(broker: MemoryBroker, start: Value, first: int) -> None:
    stream = stream_of(broker, stream_max_segment_size_bytes=TINY)
    for number in range(10):
        publish(broker, number)
        broker.advance(1)
    stream.truncate(2)
    recipient = Recipient()
    recipient.consume(stream, prefetch=100, arguments={} if start is None else {"x-stream-offset": start})
    broker.advance(0)
    publish(broker, 10)
    assert numbers_received(recipient) == list(range(first, 11))


def test_next_starts_after_all_published_messages_durable_or_not(broker: MemoryBroker) -> None:
    stream = stream_of(broker)
    broker.publish("log", b"0")
    recipient = reader(broker, stream, offset="next")
    publish(broker, 1)
    assert numbers_received(recipient) == [1]


def test_last_starts_with_the_last_durable_message(broker: MemoryBroker) -> None:
    stream = stream_of(broker)
    publish(broker, 0, 1)
    broker.publish("log", b"2")
    recipient = reader(broker, stream, offset="last")
    assert numbers_received(recipient) == [1]


@pytest.mark.volume
@given(
    gaps=st.lists(st.integers(0, 3), min_size=1, max_size=40),
    commits=st.sets(st.integers(0, 40)),
    size=st.integers(1, 3000),
    asked=st.integers(-1, 60),
)
def test_a_timestamp_finds_the_first_message_at_or_after_it(
    gaps: list[int], commits: set[int], size: int, asked: int
) -> None:
    broker = MemoryBroker()
    stream = stream_of(broker, stream_max_segment_size_bytes=size)
    moments: list[int] = []
    for number, gap in enumerate(gaps):
        broker.advance(gap / 1000)
        broker.publish("log", b"")
        moments.append(broker.clock.wall_ms())
        if number in commits:
            broker.store.commit()
    broker.commit()
    wanted = BEGINNING_MS + asked
    expected = next((offset for offset, moment in enumerate(moments) if moment >= wanted), len(moments))
    assert stream.offset_at(wanted) == expected
    _, restarted = crash_and_restart(broker)
    assert restarted.offset_at(wanted) == expected


# Refusals

ENTITY = "queue 'log' in vhost '/'"
REFUSALS = [
    pytest.param({"x-stream-offset": "5"}, '{invalid_stream_offset_arg,{longstr,<<"5">>}}', id="offset: digits"),
    pytest.param({"x-stream-offset": "0s"}, '{invalid_stream_offset_arg,{longstr,<<"0s">>}}', id="offset: zero age"),
    pytest.param({"x-stream-offset": "FIRST"}, '{invalid_stream_offset_arg,{longstr,<<"FIRST">>}}', id="offset: word"),
    pytest.param({"x-stream-offset": True}, "{invalid_stream_offset_arg,{bool,true}}", id="offset: boolean"),
    pytest.param({"x-stream-offset": [1]}, "{invalid_stream_offset_arg,{array,...}}", id="offset: list"),
    pytest.param({"x-stream-offset": None}, "{invalid_stream_offset_arg,{void,undefined}}", id="offset: void"),
    pytest.param({"x-stream-offset": b"first"}, '{invalid_stream_offset_arg,{binary,<<"first">>}}', id="offset: bytes"),
    pytest.param({"x-stream-filter": 3}, "{unacceptable_type,signedint}", id="filter: number"),
    pytest.param({"x-stream-filter": ["a", 3]}, "{unacceptable_type,array}", id="filter: list with a number"),
    pytest.param({"x-stream-match-unfiltered": "yes"}, "{unacceptable_type,longstr}", id="match unfiltered: text"),
    pytest.param({"x-stream-consumer": 3}, "{unacceptable_type,signedint}", id="name: number"),
    pytest.param({"x-stream-consumer": ""}, "the name must have 1 to 256 bytes, but has 0", id="name: empty"),
    pytest.param({"x-stream-consumer": "ä" * 129}, "the name must have 1 to 256 bytes, but has 258", id="name: long"),
]


@pytest.mark.parametrize(("arguments", "wrong"), REFUSALS)
def test_an_invalid_argument_is_refused(broker: MemoryBroker, arguments: dict[str, Value], wrong: str) -> None:
    stream = stream_of(broker)
    with pytest.raises(PreconditionFailed) as refusal:
        Recipient().consume(stream, prefetch=1, arguments=arguments)
    assert str(refusal.value) == f"invalid arg '{next(iter(arguments))}' for {ENTITY}: {wrong}"
    assert not len(stream.consumers)


def test_a_reader_needs_a_prefetch_and_manual_acknowledgement(broker: MemoryBroker) -> None:
    stream = stream_of(broker)
    with pytest.raises(PreconditionFailed, match="consumer prefetch count is not set for 'queue 'log' in vhost '/''"):
        Recipient().consume(stream)
    with pytest.raises(NotImplementedHere, match=f"automatic acknowledgement not supported by stream queues {ENTITY}"):
        Recipient().consume(stream, prefetch=1, settles=False)
    with pytest.raises(NotImplementedHere, match=f"{ENTITY} does not support global qos"):
        Recipient(prefetch=5).consume(stream, prefetch=1)


def test_get_and_purge_are_not_supported(broker: MemoryBroker) -> None:
    stream = stream_of(broker)
    publish(broker, 0)
    with pytest.raises(NotImplementedHere, match=f"basic.get not supported by stream queues {ENTITY}"):
        require_queue(stream, "basic.get")
    with pytest.raises(NotImplementedHere, match=f"queue.purge not supported by stream queues {ENTITY}"):
        require_queue(stream, "queue.purge")
    assert not {"get", "take", "purge", "purge_steps", "ready"} & set(dir(stream))
    assert len(stream) == 1


@pytest.mark.parametrize("kind", [{"is_durable": False}, {"owner": object()}, {"is_auto_delete": True}])
def test_a_stream_must_be_durable_and_neither_exclusive_nor_auto_delete(
    broker: MemoryBroker, kind: dict[str, bool]
) -> None:
    with pytest.raises(Refused, match="invalid property"):
        broker.vhost.declare_queue("log", **{"is_durable": True, **kind}, arguments={"x-queue-type": "stream"})  # type: ignore[arg-type]  # a table of cases


# Filters


def test_a_filtered_reader_gets_matching_messages_only(broker: MemoryBroker) -> None:
    stream = stream_of(broker)
    for number, value in enumerate(["a", "b", "", "a", "c"]):
        publish(broker, number, value=value)
    wants = [{"filter": "a"}, {"filter": ["a", "c"]}, {"filter": "a", "match_unfiltered": True}, {"filter": []}, {}]
    asked: list[dict[str, Value]] = [dict(want) for want in wants]
    assert [numbers_received(reader(broker, stream, **want)) for want in asked] == [
        [0, 3],
        [0, 3, 4],
        [0, 2, 3],
        [],
        [0, 1, 2, 3, 4],
    ]


def test_a_filter_is_exact_for_messages_read_from_memory(broker: MemoryBroker) -> None:
    stream = stream_of(broker)
    recipient = reader(broker, stream, filter="a")
    for number, value in enumerate(["a", "b", "", "a", "c"]):
        publish(broker, number, value=value)
    assert numbers_received(recipient) == [0, 3]


def test_segments_without_matching_values_are_not_read(broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = stream_of(broker, stream_max_segment_size_bytes=1, stream_filter_size_bytes=32)
    for number in range(200):
        publish(broker, number, value="rare" if number % 50 == 0 else f"common {number % 3}")
    after, stream = crash_and_restart(broker)
    asked: list[int] = []
    chunks = after.store.stream_chunks
    monkeypatch.setattr(after.store, "stream_chunks", lambda *read: [asked.append(read[1]), chunks(*read)][1])
    assert numbers_received(reader(after, stream, filter="rare")) == [0, 50, 100, 150]
    assert len(asked) < 10, "nearly every segment was read"


def test_a_segment_without_a_bloom_filter_is_read(broker: MemoryBroker) -> None:
    stream_of(broker)
    publish(broker, 0, value="a")
    after, stream = crash_and_restart(broker)  # the Bloom filter of an unsealed segment is lost
    publish(after, 1, value="b")
    stream.seal()
    after.commit()
    assert numbers_received(reader(after, stream, filter="a")) == [0]
    assert numbers_received(reader(after, stream, filter="b")) == [1]


@pytest.mark.parametrize("value", [3, None, "v" * 256, ["a"]])
def test_an_invalid_filter_value_is_ignored(broker: MemoryBroker, value: Value) -> None:
    stream = stream_of(broker)
    broker.publish("log", b"0", headers={"x-stream-filter-value": value})
    publish(broker, 1, value="v" * 255)
    assert numbers_received(reader(broker, stream, filter="other", match_unfiltered=True)) == [0]
    assert numbers_received(reader(broker, stream, filter="v" * 255)) == [1]


# Segments and retention


def bounds(stream: Stream) -> list[tuple[int, int, bool]]:
    """Return begin, end and sealed flag of a stream's segments."""
    return [(segment.first, segment.end, segment.is_sealed) for segment in stream.segments]


def test_a_segment_is_sealed_once_it_is_large_enough(broker: MemoryBroker) -> None:
    stream = stream_of(broker, stream_max_segment_size_bytes=TINY)
    sealed: list[StreamSegment] = []
    stream.log.on_sealed.append(sealed.append)
    for number in range(5):
        broker.publish("log", b"%d" % number)
    assert bounds(stream) == [(0, 2, True), (2, 4, True), (4, 5, False)]
    assert sealed == [], "a seal is not reported before it is durable"
    broker.commit()
    assert sealed == stream.segments[:2]
    stream.seal()
    stream.seal()
    assert bounds(stream) == [(0, 2, True), (2, 4, True), (4, 5, True), (5, 5, False)]


def test_segments_are_restored_after_a_crash(broker: MemoryBroker) -> None:
    stream = stream_of(broker, stream_max_segment_size_bytes=TINY)
    for number in range(7):
        publish(broker, number, value="a")
        broker.advance(1)
    _, restarted = crash_and_restart(broker)
    assert restarted.segments[:-1] == stream.segments[:-1]
    assert bounds(restarted) == bounds(stream)
    assert restarted.size_bytes == stream.size_bytes


def test_the_segment_size_is_set_by_argument_policy_or_node(broker: MemoryBroker) -> None:
    plain, configured = stream_of(broker), stream_of(broker, "configured", stream_max_segment_size_bytes=4000)
    assert (plain.log.segment_size, configured.log.segment_size) == (32 * 1024 * 1024, 4000)
    policy = PolicyRecord("/", "p", False, ".*", "streams", 0, {"stream-max-segment-size-bytes": 5000})
    broker.kernel.put_policy(policy)
    assert (plain.log.segment_size, configured.log.segment_size) == (5000, 4000)
    broker.kernel.remove_policy(policy)
    assert plain.log.segment_size == 32 * 1024 * 1024


def test_the_oldest_segments_are_deleted_beyond_the_size_limit(broker: MemoryBroker) -> None:
    stream = stream_of(broker, stream_max_segment_size_bytes=TINY, max_length_bytes=3000)
    for number in range(50):
        publish(broker, number)
    assert 2000 < stream.size_bytes <= 3000 + TINY
    assert 30 < stream.first_offset < 50
    assert numbers_received(reader(broker, stream)) == list(range(stream.first_offset, 50))
    broker.commit()
    _, restarted = crash_and_restart(broker)
    assert (restarted.first_offset, restarted.durable_end) == (stream.first_offset, 50)


def test_segments_beyond_the_maximum_age_are_deleted(broker: MemoryBroker) -> None:
    stream = stream_of(broker, stream_max_segment_size_bytes=TINY, max_age="60s")
    for number in range(10):
        publish(broker, number)
        broker.advance(10)
    assert bounds(stream)[0] == (4, 6, True)
    assert stream.segments[0].last_ms > broker.clock.wall_ms() - 60_000


def test_the_maximum_age_is_enforced_without_publishes(broker: MemoryBroker) -> None:
    stream = stream_of(broker, max_age="60s")
    publish(broker, 0, 1)
    broker.advance(59)
    assert len(stream) == 2
    for _ in range(5):
        broker.advance(1)
        broker.commit()
    assert (len(stream), stream.first_offset) == (0, 2)
    publish(broker, 2)
    after, restarted = crash_and_restart(broker)
    assert numbers_received(reader(after, restarted)) == [2]


def test_a_policy_limits_existing_streams(broker: MemoryBroker) -> None:
    stream = stream_of(broker, stream_max_segment_size_bytes=TINY)
    publish(broker, *range(20))
    policy = PolicyRecord("/", "p", False, ".*", "queues", 0, {"max-length-bytes": 1000, "max-length": 1})
    broker.kernel.put_policy(policy)
    broker.advance(0)
    assert stream.size_bytes <= 1000
    broker.kernel.remove_policy(policy)
    publish(broker, *range(20, 40))
    assert len(stream) > 20


def test_limits_are_enforced_after_a_restart(broker: MemoryBroker) -> None:
    stream_of(broker, stream_max_segment_size_bytes=TINY, max_age="60s")
    publish(broker, *range(20))
    broker.commit()
    broker.clock.advance(100)
    after, stream = crash_and_restart(broker)
    assert len(stream) == 20, "nothing is deleted during recovery"
    after.advance(0)
    assert len(stream) == 0


def test_a_reader_behind_a_truncation_continues_with_the_first_message(broker: MemoryBroker) -> None:
    stream = stream_of(broker, stream_max_segment_size_bytes=TINY)
    for number in range(5):
        publish(broker, number)
        broker.publish("log", b"9" * READ_SIZE)
    broker.commit()
    recipient = reader(broker, stream, prefetch=1)
    stream.truncate(6)
    while recipient.ledger:
        settle(broker, recipient)
    assert [body[:1] for body in recipient.bodies] == [b"0", b"3", b"9", b"4", b"9"]


def test_only_whole_sealed_durable_segments_are_truncated(broker: MemoryBroker) -> None:
    stream = stream_of(broker, stream_max_segment_size_bytes=TINY)
    publish(broker, 0, 1, 2)
    broker.publish("log", b"3")
    broker.publish("log", b"4")
    stream.truncate(1)
    assert stream.first_offset == 0
    stream.truncate(100)
    assert stream.first_offset == 2, "the second segment is not durable yet"
    broker.commit()
    stream.truncate(100)
    assert bounds(stream) == [(4, 5, False)]


def test_offsets_continue_after_everything_was_truncated(broker: MemoryBroker) -> None:
    stream = stream_of(broker)
    publish(broker, 0, 1)
    stream.seal()
    broker.commit()
    stream.truncate(2)
    broker.commit()
    after, restarted = crash_and_restart(broker)
    publish(after, 2)
    recipient = reader(after, restarted)
    assert [delivery.entry.position for delivery in recipient.ledger] == [2]


# Stored offsets


def named(broker: MemoryBroker, stream: Stream, prefetch: int = 100) -> Recipient:
    """Return a named recipient, which continues at its stored offset."""
    recipient = Recipient()
    recipient.consume(stream, prefetch=prefetch, arguments={"x-stream-consumer": "me"})
    broker.advance(0)
    return recipient


def test_a_name_may_have_256_bytes(broker: MemoryBroker) -> None:
    stream = stream_of(broker)
    publish(broker, 0)
    recipient = reader(broker, stream, consumer="ä" * 128)
    settle(broker, recipient, 0)
    assert stream.offsets == {"ä" * 128: 0}


def test_a_named_reader_continues_after_its_settled_messages(broker: MemoryBroker) -> None:
    stream = stream_of(broker)
    publish(broker, *range(10))
    recipient = reader(broker, stream, prefetch=5, consumer="me")
    settle(broker, recipient, 3)
    settle(broker, recipient, 1)
    assert (stream.offsets, stream.lag) == ({"me": 0}, {"me": 9})
    settle(broker, recipient, 2)
    assert (stream.offsets, stream.lag) == ({"me": 2}, {"me": 7})
    recipient.leave()
    assert numbers_received(named(broker, stream)) == list(range(3, 10))


def test_offsets_survive_a_crash_and_are_stored_at_most_once_a_second(broker: MemoryBroker) -> None:
    stream = stream_of(broker)
    publish(broker, *range(10))
    recipient = reader(broker, stream, consumer="me")
    for tag in (1, 2, 3):
        settle(broker, recipient, tag)
    broker.commit()
    assert crash_and_restart(broker)[1].offsets == {}
    broker.advance(1)
    broker.commit()
    after, restarted = crash_and_restart(broker)
    assert restarted.offsets == {"me": 2}
    assert numbers_received(named(after, restarted)) == list(range(3, 10))


@pytest.mark.parametrize("ending", ["cancel", "stop"])
def test_an_offset_is_stored_when_its_reader_or_the_node_stops(broker: MemoryBroker, ending: str) -> None:
    stream = stream_of(broker)
    publish(broker, 0, 1)
    recipient = reader(broker, stream, consumer="me")
    settle(broker, recipient, 1)
    if ending == "cancel":
        recipient.cancel(recipient.consumers[0])
    else:
        broker.kernel.stop()
    broker.commit()
    assert crash_and_restart(broker)[1].offsets == {"me": 0}


def test_a_requeued_message_is_delivered_to_the_next_reader_of_the_name(broker: MemoryBroker) -> None:
    stream = stream_of(broker)
    publish(broker, *range(6))
    recipient = reader(broker, stream, consumer="me")
    settle(broker, recipient, 3, DeliveryOutcome.REQUEUED)
    settle(broker, recipient, 1)
    settle(broker, recipient)
    assert stream.offsets == {"me": 1}
    recipient.leave()
    assert numbers_received(named(broker, stream)) == [2, 3, 4, 5]


def test_a_reader_that_disconnects_settles_nothing(broker: MemoryBroker) -> None:
    stream = stream_of(broker)
    publish(broker, *range(6))
    recipient = reader(broker, stream, consumer="me")
    settle(broker, recipient, 1)
    recipient.leave()
    assert stream.offsets == {"me": 0}


def test_a_requested_offset_has_precedence_over_the_stored_one(broker: MemoryBroker) -> None:
    stream = stream_of(broker)
    publish(broker, *range(6))
    stream.store_offset("me", 4)
    assert numbers_received(named(broker, stream)) == [5]
    recipient = reader(broker, stream, prefetch=2, consumer="me")
    assert numbers_received(recipient) == [0, 1]
    settle(broker, recipient, 1)
    assert stream.offsets == {"me": 0}, "the stored offset follows the new start"


def test_offsets_can_be_stored_and_deleted_explicitly(broker: MemoryBroker) -> None:
    stream = stream_of(broker)
    publish(broker, *range(6))
    stream.store_offset("me", 4)
    stream.store_offset("you", 1000)
    broker.commit()
    after, restarted = crash_and_restart(broker)
    assert (restarted.offsets, restarted.lag) == ({"me": 4, "you": 1000}, {"me": 1, "you": 0})
    assert restarted.forget_offset("me")
    assert not restarted.forget_offset("me")
    after.commit()
    assert crash_and_restart(after)[1].offsets == {"you": 1000}


# Deletion and other features


def test_a_deleted_stream_leaves_nothing_behind(broker: MemoryBroker) -> None:
    stream = stream_of(broker, stream_max_segment_size_bytes=TINY, max_age="60s")
    publish(broker, *range(6))
    stream.store_offset("you", 3)
    recipient = reader(broker, stream, prefetch=2, consumer="me")
    settle(broker, recipient, 1)
    assert broker.vhost.delete_queue(stream) == 6
    assert recipient.cancelled_tags == ["consumer-1"]
    settle(broker, recipient)
    broker.advance(100)
    broker.commit()
    after = broker.crashed()
    assert "log" not in after.vhost.queue_by_name
    anew = stream_of(after)
    assert (len(anew), anew.next_offset, anew.offsets) == (0, 0, {})


def test_a_stream_can_be_a_target_of_routing_and_dead_lettering(broker: MemoryBroker) -> None:
    stream = stream_of(broker)
    arguments: dict[str, Value] = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "log"}
    queue = broker.vhost.declare_queue("work", is_durable=True, arguments=arguments)
    broker.publish("work", b"7", is_persistent=True)
    worker = Recipient()
    worker.consume(queue)
    worker.settle(1, DeliveryOutcome.REJECTED)
    broker.commit()
    received = reader(broker, stream).received[0]
    assert (received.body, "x-death" in received.message.headers) == (b"7", True)


def test_a_queue_without_a_type_is_a_stream_if_that_is_the_default() -> None:
    broker = MemoryBroker(default_queue_type="stream")
    assert isinstance(broker.vhost.declare_queue("log", is_durable=True), Stream)
    assert not isinstance(broker.vhost.declare_queue("passing", owner=object()), Stream)
    broker.commit()
    assert isinstance(crash_and_restart(broker)[1], Stream)


def test_a_run_subscriber_gets_messages_in_runs(broker: MemoryBroker) -> None:
    class RunRecipient(Recipient):
        def deliver_run(self, consumer: Consumer, run: list[object]) -> None:
            runs.append(len(run))

    runs: list[int] = []
    stream = stream_of(broker)
    publish(broker, *range(10))
    RunRecipient().consume(stream, prefetch=7, arguments={"x-stream-offset": "first"})
    broker.advance(0)
    assert runs == [7]
    assert stream.counters.deliver == 7


def test_publishing_records_one_change_for_each_message(broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    stream_of(broker)
    broker.commit()
    appended: list[object] = []
    append = broker.store.append
    monkeypatch.setattr(broker.store, "append", lambda changes: [appended.extend(changes), append(changes)][1])
    publish(broker, 0, 1, 2)
    assert [type(change) for change in appended] == [Appended] * 3


# Damage


def damage(broker: MemoryBroker, stream: Stream, offset: int, *, is_cut: bool = False) -> None:
    """Damage a stored message: its header, or the length of its content."""
    image = broker.store._durable.streams[stream.log.id]
    time_ms, value, content = image._entries[offset]
    image._entries[offset] = time_ms, value, content[:3] if is_cut else content.replace(b"plain", b"plane")


def faults_of(broker: MemoryBroker) -> int:
    return broker.kernel.faults.total


@pytest.mark.parametrize("is_cut", [False, True])
def test_a_damaged_message_is_skipped_and_reported(broker: MemoryBroker, is_cut: bool) -> None:
    stream_of(broker)
    publish(broker, 0, 1, 2)
    after, stream = crash_and_restart(broker)
    damage(after, stream, 1, is_cut=is_cut)
    assert numbers_received(reader(after, stream)) == [0, 2]
    assert faults_of(after) == 1
    publish(after, 3)
    assert numbers_received(reader(after, stream, offset=2)) == [2, 3]


def test_damage_of_one_stream_does_not_delay_the_readers_of_others(broker: MemoryBroker) -> None:
    stream_of(broker)
    stream_of(broker, "other")
    publish(broker, 0, 1)
    publish(broker, 5, to="other")
    after, stream = crash_and_restart(broker)
    other = after.vhost.queue("other")
    assert isinstance(other, Stream)
    damage(after, stream, 0)
    first, second = Recipient(), Recipient()
    for recipient, read in ((first, stream), (second, other)):
        recipient.consume(read, prefetch=10, arguments={"x-stream-offset": "first"})
    after.advance(0)
    assert (numbers_received(first), numbers_received(second)) == ([1], [5])
