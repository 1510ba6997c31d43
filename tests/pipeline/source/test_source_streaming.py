"""Every message is in exactly one micro-batch, whatever happens to the stream, the limits and the driver."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxBytes, ReadMaxRows, ReadMinRows

from gateway_spark.errors import DataLoss, OptionError
from gateway_spark.options import source_options
from gateway_spark.schema import MESSAGE_SCHEMA
from gateway_spark.stream_reader import StreamReader
from tests.pipeline.fake_broker import EPOCH_MS, FakeBroker

Offset = dict[str, Any]


def reader(broker: FakeBroker, **options: str) -> StreamReader:
    """Return a new reader, as after a restart."""
    if not options.keys() & {"queue", "queues", "queuePattern"}:
        options["queue"] = "orders"
    return StreamReader(source_options(broker.options(**options), is_stream=True), MESSAGE_SCHEMA)


def as_spark_keeps_it(offset: Offset) -> Offset:
    return json.loads(json.dumps(offset))  # type: ignore[no-any-return]  # JSON


def batch(made: StreamReader, start: Offset, limit: ReadLimit | None = None) -> tuple[Offset, list[tuple[str, int]]]:
    """Plan a batch and read it; return its end and (stream, offset) of each row."""
    end = as_spark_keeps_it(made.latestOffset(start, limit or made.getDefaultReadLimit()))
    return end, read(made, start, end)


def read(made: StreamReader, start: Offset, end: Offset) -> list[tuple[str, int]]:
    if start == end:
        return []
    return [
        (task.stream, offset)  # type: ignore[attr-defined]  # a Task
        for task in made.partitions(start, end)
        for rows in made.read(task)
        for offset in rows["offset"].to_pylist()
    ]


def offsets(rows: list[tuple[str, int]]) -> list[int]:
    return [offset for _, offset in rows]


# ---- Where it begins ------------------------------------------------------------------------------------------------


def test_a_query_starts_with_an_empty_offset(broker: FakeBroker) -> None:
    assert reader(broker).initialOffset() == {}
    assert broker.requests == []


BEGINNINGS = [
    ({}, 105),
    ({"startingOffsets": "latest"}, 105),
    ({"startingOffsets": "earliest"}, 5),
    ({"startingOffsets": '{"orders":{"0":42}}'}, 42),
    ({"startingTimestamp": str(EPOCH_MS + 50_001)}, 51),
]


@pytest.mark.parametrize(("options", "first"), BEGINNINGS, ids=str)
def test_the_first_batch_records_its_start(broker: FakeBroker, options: dict[str, str], first: int) -> None:
    end, rows = batch(reader(broker, **options), {})
    assert end == {"orders": {"0": {"from": first, "next": 105}}}
    assert offsets(rows) == list(range(first, 105))


def test_a_repeated_first_batch_is_the_same_batch(broker: FakeBroker) -> None:
    """The driver died before the end of the batch. Meanwhile messages were added and truncated."""
    end, rows = batch(reader(broker, startingOffsets='{"orders":{"0":42}}'), {})
    broker.declare("orders", 30, 500)
    assert read(reader(broker, startingOffsets="latest"), {}, end) == rows


def test_starting_options_apply_only_to_a_new_query(broker: FakeBroker) -> None:
    broker.declare("orders", 5, 120)
    end, rows = batch(reader(broker, startingOffsets="latest"), {"orders": {"0": 105}})
    assert (end, offsets(rows)) == ({"orders": {"0": 120}}, list(range(105, 120)))


def test_without_new_messages_the_offset_is_identical(broker: FakeBroker) -> None:
    made = reader(broker, startingOffsets="earliest")
    end, _ = batch(made, {})
    assert json.dumps(made.latestOffset(end, ReadAllAvailable())) == json.dumps(end)


# ---- Queues that are added and deleted
# ------------------------------------------------------------------------------


def test_a_queue_added_later_is_read_from_its_first_message(broker: FakeBroker) -> None:
    made = reader(broker, queuePattern=".*", startingOffsets="latest")
    end, rows = batch(made, {})
    assert rows == []
    broker.declare("late", 3, 9)
    end, rows = batch(made, end)
    assert end["late"] == {"0": {"from": 3, "next": 9}}
    assert rows == [("late", offset) for offset in range(3, 9)]


def test_the_first_queue_added_later_is_read_from_its_first_message(broker: FakeBroker) -> None:
    made = reader(broker, queuePattern="late.*", startingOffsets="latest")
    end, _ = batch(made, {})
    assert end == {}
    broker.declare("late", 0, 4)
    assert offsets(batch(made, end)[1]) == [0, 1, 2, 3]


def test_a_super_stream_may_grow(broker: FakeBroker) -> None:
    broker.declare_super("sales", (0, 3))
    made = reader(broker, queue="sales", startingOffsets="earliest")
    end, _ = batch(made, {})
    broker.declare_super("sales", (0, 3), (0, 2))
    assert batch(made, end)[1] == [("sales-1", 0), ("sales-1", 1)]


# ---- What is lost ---------------------------------------------------------------------------------------------------

PLACE = "queue 'orders', partition 0"


def truncated(broker: FakeBroker) -> None:
    broker.declare("orders", 150, 200)


def made_anew(broker: FakeBroker) -> None:
    broker.declare("orders", 0, 30)


LOSSES = [
    pytest.param(truncated, f"messages 105 to 149 of {PLACE} are gone", (150, 200), id="truncated by retention"),
    pytest.param(made_anew, f"{PLACE} ends at 30, before 105: it was recreated", (0, 30), id="made anew"),
]


# ---- The identity of a stream ----------------------------------------------------------------------------------------

#: A query that read the first 105 messages of a stream that had a successor since.
OF_FIRST = {"orders": {"0": {"incarnation": "1-1", "next": 105}}}


@pytest.mark.parametrize("end", [30, 105, 500])
def test_a_recreated_stream_stops_the_query_however_long_it_is(broker: FakeBroker, end: int) -> None:
    broker.recreate("orders", 0, end, "2-1")
    with pytest.raises(DataLoss, match=f"{PLACE} was deleted and declared again, read up to 105 before"):
        batch(reader(broker), OF_FIRST)


@pytest.mark.parametrize("end", [30, 105, 500])
def test_a_recreated_stream_is_read_from_its_beginning_if_losses_are_ignored(broker: FakeBroker, end: int) -> None:
    broker.recreate("orders", 3, end, "2-1")
    with pytest.warns(UserWarning, match="declared again"):
        reached, rows = batch(reader(broker, failOnDataLoss="false"), OF_FIRST)
    assert offsets(rows) == list(range(3, end))
    assert reached == {"orders": {"0": {"incarnation": "2-1", "from": 3, "next": end}}}
    broker.recreate("orders", 3, end + 7, "2-1")
    reached, rows = batch(reader(broker), reached)
    assert (reached, offsets(rows)) == (
        {"orders": {"0": {"incarnation": "2-1", "next": end + 7}}},
        list(range(end, end + 7)),
    )


def test_a_planned_batch_of_a_recreated_stream_is_not_read_from_its_successor(broker: FakeBroker) -> None:
    broker.recreate("orders", 0, 105, "1-1")
    end = as_spark_keeps_it(reader(broker).latestOffset({}, ReadAllAvailable()))
    (task,) = reader(broker, startingOffsets="earliest").partitions(
        {}, {"orders": {"0": {**end["orders"]["0"], "from": 0}}}
    )
    broker.recreate("orders", 0, 500, "2-1")
    with pytest.raises(DataLoss, match=f"{PLACE} was deleted and declared again: messages 0 to 104 are gone"):
        reader(broker).partitions({}, {"orders": {"0": {**end["orders"]["0"], "from": 0}}})
    with pytest.raises(DataLoss, match="stream 'orders' was deleted and declared again: messages 0 to 104 are gone"):
        list(reader(broker).read(task))


def test_a_checkpoint_without_an_incarnation_adopts_that_of_the_stream(broker: FakeBroker) -> None:
    broker.recreate("orders", 0, 110, "1-1")
    reached, rows = batch(reader(broker), {"orders": {"0": {"from": 20, "next": 105}}})
    assert offsets(rows) == list(range(105, 110))
    assert reached == {"orders": {"0": {"incarnation": "1-1", "from": 105, "next": 110}}}


def test_starting_offsets_of_another_incarnation_are_refused(broker: FakeBroker) -> None:
    broker.recreate("orders", 0, 500, "2-1")
    with pytest.raises(OptionError, match="was deleted and declared again since that offset"):
        batch(reader(broker, startingOffsets=json.dumps(OF_FIRST)), {})


def test_progress_names_the_incarnation(broker: FakeBroker) -> None:
    broker.recreate("orders", 0, 500, "1-1")
    reader(broker).commit(OF_FIRST)
    assert broker.progress["spark orders"] == {"offsets": OF_FIRST}


# ---- Losses ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("happens", "line", "rest"), LOSSES)
def test_a_loss_stops_the_query(broker: FakeBroker, happens: Any, line: str, rest: tuple[int, int]) -> None:
    happens(broker)
    with pytest.raises(DataLoss, match=line):
        batch(reader(broker), {"orders": {"0": 105}})


@pytest.mark.parametrize(("happens", "line", "rest"), LOSSES)
def test_losses_can_be_ignored(broker: FakeBroker, happens: Any, line: str, rest: tuple[int, int]) -> None:
    happens(broker)
    first, last = rest
    made = reader(broker, failOnDataLoss="false")
    with pytest.warns(UserWarning, match=line):
        end, rows = batch(made, {"orders": {"0": 105}})
    assert end == {"orders": {"0": {"from": first, "next": last}}}
    assert offsets(rows) == list(range(first, last))
    assert offsets(read(made, {"orders": {"0": 105}}, end)) == offsets(rows), "and the batch can be repeated"


def test_a_deleted_queue_stops_the_query(broker: FakeBroker) -> None:
    broker.partitions.clear()
    with pytest.raises(DataLoss, match=f"{PLACE} is gone"):
        batch(reader(broker, queuePattern=".*"), {"orders": {"0": 105}})


def test_other_queues_are_read_when_losses_are_ignored(broker: FakeBroker) -> None:
    broker.partitions.clear()
    broker.declare("returns", 0, 5)
    made = reader(broker, queuePattern=".*", failOnDataLoss="false")
    with pytest.warns(UserWarning, match=f"{PLACE} is gone"):
        end, rows = batch(made, {"orders": {"0": 105}, "returns": {"0": 3}})
    assert rows == [("returns", 3), ("returns", 4)]
    assert end == {"orders": {"0": 105}, "returns": {"0": 5}}


def test_a_missing_named_queue_is_an_option_error(broker: FakeBroker) -> None:
    broker.partitions.clear()
    with pytest.raises(OptionError, match="queues 'orders' cannot be read: no stream 'orders'"):
        batch(reader(broker, failOnDataLoss="false"), {"orders": {"0": 105}})


@pytest.mark.parametrize("fails", ["true", "false"])
def test_truncation_of_a_repeated_batch_is_detected(broker: FakeBroker, fails: str) -> None:
    start, end = {"orders": {"0": 10}}, {"orders": {"0": 100}}
    broker.declare("orders", 60, 105)
    made = reader(broker, failOnDataLoss=fails)
    if fails == "true":
        with pytest.raises(DataLoss, match=f"messages 10 to 59 of {PLACE} are gone"):
            made.partitions(start, end)
    else:
        with pytest.warns(UserWarning, match="messages 10 to 59"):
            assert offsets(read(made, start, end)) == list(range(60, 100))


# ---- Limits ---------------------------------------------------------------------------------------------------------

LIMITS = [
    ({}, ReadAllAvailable()),
    ({"maxOffsetsPerTrigger": "10"}, ReadMaxRows(10)),
    ({"maxBytesPerTrigger": "10"}, ReadMaxBytes(10)),
    ({"minOffsetsPerTrigger": "10"}, ReadMinRows(10)),
    ({"maxOffsetsPerTrigger": "10", "maxBytesPerTrigger": "5", "minOffsetsPerTrigger": "2"}, ReadMaxRows(10)),
]


@pytest.mark.parametrize(("options", "limit"), LIMITS, ids=str)
def test_spark_gets_the_limit_of_the_options(broker: FakeBroker, options: dict[str, str], limit: ReadLimit) -> None:
    assert reader(broker, **options).getDefaultReadLimit() == limit


def sizes(made: StreamReader, start: Offset, batches: int, limit: ReadLimit | None = None) -> list[int]:
    found = []
    for _ in range(batches):
        start, rows = batch(made, start, limit)
        found.append(len(rows))
    return found


def test_no_batch_exceeds_the_row_limit(broker: FakeBroker) -> None:
    made = reader(broker, startingOffsets="earliest", maxOffsetsPerTrigger="30")
    assert sizes(made, {}, 5) == [30, 30, 30, 10, 0]


def test_batches_hardly_exceed_the_byte_limit(broker: FakeBroker) -> None:
    """A message of the fake has a hundred bytes."""
    made = reader(broker, startingOffsets="earliest", maxBytesPerTrigger="4000")
    assert sizes(made, {}, 4) == [40, 40, 20, 0]


def test_the_lower_of_two_limits_applies(broker: FakeBroker) -> None:
    made = reader(broker, startingOffsets="earliest", maxBytesPerTrigger="4000", maxOffsetsPerTrigger="60")
    assert sizes(made, {}, 3) == [40, 40, 20]
    made = reader(broker, startingOffsets="earliest", maxBytesPerTrigger="4000", maxOffsetsPerTrigger="30")
    assert sizes(made, {}, 3) == [30, 30, 30]


def test_a_message_larger_than_the_limit_is_read_alone(broker: FakeBroker) -> None:
    made = reader(broker, startingOffsets="earliest", maxBytesPerTrigger="7")
    assert sizes(made, {}, 3) == [1, 1, 1]


def test_limits_are_ignored_if_spark_requests_everything(broker: FakeBroker) -> None:
    made = reader(broker, startingOffsets="earliest", maxOffsetsPerTrigger="3", minOffsetsPerTrigger="1000")
    assert sizes(made, {}, 1, ReadAllAvailable()) == [100]


class Hours:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_too_few_messages_wait_for_more_for_a_limited_time(broker: FakeBroker) -> None:
    clock = Hours()
    options = broker.options(queue="orders", minOffsetsPerTrigger="50", maxTriggerDelay="10m")
    made = StreamReader(source_options(options, is_stream=True), MESSAGE_SCHEMA, clock)
    start = {"orders": {"0": 100}}
    assert batch(made, start)[1] == []
    clock.now_s += 599
    assert batch(made, start)[1] == []
    clock.now_s += 1
    assert offsets(batch(made, start)[1]) == list(range(100, 105))
    assert batch(made, {"orders": {"0": 105}})[1] == [], "and the delay starts again"


def test_enough_messages_do_not_wait(broker: FakeBroker) -> None:
    made = reader(broker, minOffsetsPerTrigger="5")
    assert len(batch(made, {"orders": {"0": 100}})[1]) == 5
    assert len(batch(made, {"orders": {"0": 101}})[1]) == 0


# ---- Available now --------------------------------------------------------------------------------------------------


def test_available_now_stops_at_the_present_end(broker: FakeBroker) -> None:
    made = reader(broker, queuePattern=".*", startingOffsets="earliest", maxOffsetsPerTrigger="60")
    made.prepareForTriggerAvailableNow()
    broker.declare("orders", 5, 300)
    broker.declare("late", 0, 10)
    end, found = {}, []
    for _ in range(6):
        end, rows = batch(made, end)
        found += rows
    assert found == [("orders", offset) for offset in range(5, 105)]


def test_available_now_does_not_wait(broker: FakeBroker) -> None:
    made = reader(broker, startingOffsets="earliest", minOffsetsPerTrigger="1000")
    made.prepareForTriggerAvailableNow()
    assert len(batch(made, {})[1]) == 100


def test_available_now_ends_even_if_the_query_is_ahead(broker: FakeBroker) -> None:
    made = reader(broker)
    made.prepareForTriggerAvailableNow()
    start = {"orders": {"0": 105}}
    broker.declare("orders", 5, 110)
    assert made.latestOffset(start, ReadAllAvailable()) == start


# ---- Progress -------------------------------------------------------------------------------------------------------


def test_the_reported_progress_is_that_of_complete_batches(broker: FakeBroker) -> None:
    made = reader(broker, consumerName="job", startingOffsets="earliest", maxOffsetsPerTrigger="10")
    end, _ = batch(made, {})
    assert broker.progress == {}
    made.latestOffset(end, ReadMaxRows(10))
    assert broker.progress == {"job": {"offsets": {"orders": {"0": 15}}}}


def test_the_same_progress_is_reported_once(broker: FakeBroker) -> None:
    made = reader(broker, consumerName="job")
    for _ in range(3):
        made.latestOffset({"orders": {"0": 105}}, ReadAllAvailable())
    made.commit({"orders": {"0": 105}})
    assert broker.requests.count("PUT progress/job") == 1


def test_a_query_continues_if_progress_cannot_be_reported(broker: FakeBroker) -> None:
    made = reader(broker)
    broker.faults.append(404)
    with pytest.warns(UserWarning, match="progress is not shown"):
        made.commit({"orders": {"0": 50}})


def test_the_end_is_reported_with_the_position(broker: FakeBroker) -> None:
    broker.declare_super("sales", (0, 3), (7, 9))
    assert reader(broker, queue="sales").reportLatestOffset() == {"sales": {"0": 3, "1": 9}}


# ---- Random sequences
# -----------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["grow", "batch", "crash", "partition"]), st.integers(1, 40)), min_size=1, max_size=25
    ),
    most=st.integers(1, 50),
)
def test_every_message_is_in_one_batch(broker: FakeBroker, steps: list[tuple[str, int]], most: int) -> None:
    """The stream grows; batches are planned, read, and repeated after crashes; in the end every message is read
    once.
    """
    ends = {"0": 5}
    broker.declare_super("sales", (0, 5))
    options = {"queue": "sales", "startingOffsets": "earliest", "maxOffsetsPerTrigger": str(most)}
    made, start, seen = reader(broker, **options), {}, []
    for step, number in [*steps, *[("batch", 0)] * 60]:
        if step == "grow":
            ends[str(number % len(ends))] += number
        elif step == "partition":
            ends[str(len(ends))] = number
        else:
            end, rows = batch(made, start)
            assert len(rows) <= most
            if step == "crash":
                made = reader(broker, **options)
                assert read(made, start, end) == rows
            if not number and end == start:  # everything is read
                break
            start, seen = end, seen + rows
        broker.declare_super("sales", *((0, end) for end in ends.values()))
    if most >= 25:
        expected = [(f"sales-{number}", offset) for number, end in ends.items() for offset in range(end)]
        assert sorted(seen) == sorted(expected)
    assert len(set(seen)) == len(seen)
