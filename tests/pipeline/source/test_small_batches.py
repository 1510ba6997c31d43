"""The driver reads a small micro-batch while it plans, and Spark gets its rows with the plan."""

from typing import Any

import pytest
from pyspark.sql.datasource_internal import _SimpleStreamReaderWrapper
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import BinaryType, StructField, StructType

from gateway_spark.errors import DataLoss, OptionError
from gateway_spark.options import DEFAULT_SMALL_BATCH, source_options
from gateway_spark.schema import MESSAGE_SCHEMA
from gateway_spark.small_batches import MAX_BYTES, SmallBatch, SmallBatchReader
from gateway_spark.source import GatewaySource
from gateway_spark.spark_versions import require_supported
from tests.pipeline.fake_broker import FakeBroker

Offset = dict[str, Any]

#: Ends of the stream ``orders`` of the fake broker, after its first and after all of its messages.
BEGIN, END = {"orders": {"0": 5}}, {"orders": {"0": 105}}


def reader(broker: FakeBroker, **options: str) -> SmallBatchReader:
    options.setdefault("queue", "orders")
    return SmallBatchReader(source_options(broker.options(**options), is_stream=True), MESSAGE_SCHEMA)


def rows_in_plan(made: SmallBatchReader, start: Offset, end: Offset) -> list[int] | None:
    """Plan a batch as Spark does; return the offsets of its rows, or ``None`` if its tasks read them."""
    tasks = made.partitions(start, end)
    if not isinstance(made, _SimpleStreamReaderWrapper):
        assert not any(isinstance(task, SmallBatch) for task in tasks)
        return None
    rows = made.getCache(start, end)
    assert rows is not None
    assert len(tasks) == 1, "Spark gives the rows to one task"
    return [offset for batch in rows for offset in batch["offset"].to_pylist()]


def test_the_rows_of_a_small_batch_come_with_its_plan(broker: FakeBroker) -> None:
    assert rows_in_plan(reader(broker), BEGIN, END) == list(range(5, 105))


def test_a_repeated_plan_has_the_same_rows_whatever_was_published_since(broker: FakeBroker) -> None:
    first = rows_in_plan(reader(broker), BEGIN, END)
    broker.declare("orders", 5, 500)
    again = reader(broker)
    assert rows_in_plan(again, BEGIN, END) == rows_in_plan(again, BEGIN, END) == first


def test_a_task_that_lost_its_rows_reads_them_from_the_broker(broker: FakeBroker) -> None:
    broker.declare_super("sales", (0, 3), (4, 6))
    made = reader(broker, queue="sales")
    end = {"sales": {"0": {"from": 0, "next": 3}, "1": {"from": 4, "next": 6}}}
    (task,) = made.partitions({}, end)
    of_executor = reader(broker, queue="sales")
    rows = [(row["partition"], row["offset"]) for batch in of_executor.read(task) for row in batch.to_pylist()]
    assert rows == [(0, 0), (0, 1), (0, 2), (1, 4), (1, 5)]


def test_spark_asks_for_the_latest_offset_between_batches(broker: FakeBroker) -> None:
    """It does not ask a reader of the class to which it gives rows."""
    made = reader(broker)
    assert rows_in_plan(made, BEGIN, END) is not None
    assert not isinstance(made, _SimpleStreamReaderWrapper)
    assert made.latestOffset(END, ReadAllAvailable()) == made.reportLatestOffset() == END


def test_an_empty_batch_has_no_task(broker: FakeBroker) -> None:
    assert reader(broker).partitions(END, END) == []


TASKS = [{"smallBatch": "99"}, {"smallBatch": "0"}, {"minPartitions": "2"}]


@pytest.mark.parametrize("options", TASKS, ids=str)
def test_tasks_read_what_is_more_or_needs_several_of_them(broker: FakeBroker, options: dict[str, str]) -> None:
    assert rows_in_plan(reader(broker, **options), BEGIN, END) is None


def test_tasks_read_a_table(broker: FakeBroker) -> None:
    """Its options are metadata of a column, which Spark misses in the rows of a plan."""
    columns = [*MESSAGE_SCHEMA.fields[:-1], StructField("body", BinaryType(), metadata={"of": "a table"})]
    made = SmallBatchReader(source_options(broker.options(queue="orders"), is_stream=True), StructType(columns))
    assert rows_in_plan(made, BEGIN, END) is None


def test_the_default_limit_is_a_thousand_messages(broker: FakeBroker) -> None:
    broker.declare("orders", 0, 2 * DEFAULT_SMALL_BATCH)
    made = reader(broker)
    ends = [{"orders": {"0": DEFAULT_SMALL_BATCH + more}} for more in (0, 1)]
    found = [rows_in_plan(made, {"orders": {"0": 0}}, end) for end in ends]
    assert found == [list(range(DEFAULT_SMALL_BATCH)), None]


def test_large_messages_are_read_by_tasks(broker: FakeBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether they are large is estimated; the driver stops reading at the limit if they are larger than that."""
    broker.rows_per_answer = 10
    monkeypatch.setattr("gateway_spark.small_batches.estimate", lambda waiting, partition: MAX_BYTES)
    monkeypatch.setattr("gateway_spark.small_batches.MAX_BYTES", MAX_BYTES + 1)
    assert rows_in_plan(reader(broker), BEGIN, END) == list(range(5, 105))
    monkeypatch.setattr("gateway_spark.small_batches.MAX_BYTES", MAX_BYTES - 1)
    assert rows_in_plan(reader(broker), BEGIN, END) is None
    monkeypatch.setattr("gateway_spark.small_batches.estimate", lambda waiting, partition: 0)
    monkeypatch.setattr("gateway_spark.small_batches.MAX_BYTES", 1)
    broker.requests.clear()
    assert rows_in_plan(reader(broker), BEGIN, END) is None
    assert broker.requests.count("GET read") == 1


def test_lost_messages_are_an_error_of_the_plan(broker: FakeBroker) -> None:
    broker.declare("orders", 50, 105)
    with pytest.raises(DataLoss, match="messages 5 to 49"):
        reader(broker).partitions(BEGIN, END)


def test_of_lost_messages_the_others_come_with_the_plan(broker: FakeBroker) -> None:
    broker.declare("orders", 50, 105)
    with pytest.warns(UserWarning, match="messages 5 to 49"):
        assert rows_in_plan(reader(broker, failOnDataLoss="false"), BEGIN, END) == list(range(50, 105))


def test_the_option_is_a_number() -> None:
    with pytest.raises(OptionError, match=r"'smallBatch' .*a whole number from 0"):
        source_options({"queue": "orders", "smallBatch": "-1"}, is_stream=True)


def test_a_spark_without_the_private_class_reads_by_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    made = GatewaySource({"queue": "orders", "url": "http://127.0.0.1:1"})
    assert isinstance(made.streamReader(MESSAGE_SCHEMA), SmallBatchReader)
    monkeypatch.setattr("gateway_spark.source.HAS_ROWS_OF_PLANS", False)
    monkeypatch.setattr("gateway_spark.spark_versions.HAS_ROWS_OF_PLANS", False)
    assert not isinstance(made.streamReader(MESSAGE_SCHEMA), SmallBatchReader)
    with pytest.raises(OptionError, match="option 'smallBatch' needs an older Spark"):
        require_supported(source_options({"queue": "orders", "smallBatch": "5"}, is_stream=True), is_stream=True)
