"""A task reads its messages in order and each once, however the broker splits its answers, and reports losses."""

import json
import os
import re
import warnings
from contextlib import closing
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql.datasource import InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import StructType

from gateway_spark.batch_reader import BatchReader, FilteringReader
from gateway_spark.client import Client
from gateway_spark.errors import DataLoss, OptionError, PipelineError, Unreachable
from gateway_spark.one_line import HIDING, WORKERS_VARIABLES
from gateway_spark.options import source_options
from gateway_spark.reading import batches, loss_rule
from gateway_spark.refusing_reader import RefusingReader
from gateway_spark.schema import MESSAGE_SCHEMA
from gateway_spark.source import GatewaySource
from gateway_spark.stream_reader import StreamReader
from gateway_spark.tasks import Task
from tests.pipeline.fake_broker import EPOCH_MS, FakeBroker, fake_broker

#: What Spark expects of all columns.
SCHEMA = to_arrow_schema(MESSAGE_SCHEMA, timezone="UTC")


def reader(broker: FakeBroker, **options: str) -> BatchReader:
    source = GatewaySource(broker.options(**({"queue": "orders"} | options)))
    made = source.reader(source.schema())
    assert isinstance(made, BatchReader)
    return made


def rows(made: BatchReader) -> list[tuple[str, int, int]]:
    """Read all tasks; check the body of each row and return its queue, partition and offset."""
    found = []
    for task in made.partitions():
        for batch in made.read(task):
            for row in batch.to_pylist():
                stream = task.stream  # type: ignore[attr-defined]  # a Task
                assert row["body"] == f"{stream}:{row['offset']}".encode()
                found.append((row["queue"], row["partition"], row["offset"]))
    return found


def offsets(made: BatchReader) -> list[int]:
    return [offset for _, _, offset in rows(made)]


# ---- In order and each once -----------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    begin=st.integers(5, 104),
    size=st.integers(1, 100),
    answer=st.integers(1, 40),
    batch=st.integers(1, 40),
    faults=st.lists(st.sampled_from(["hang up", 503]), max_size=2),
)
def test_messages_are_the_same_for_any_split_of_answers(
    broker: FakeBroker, begin: int, size: int, answer: int, batch: int, faults: list[str | int]
) -> None:
    broker.rows_per_answer, broker.batch_rows = answer + batch, batch
    broker.faults.extend(faults)
    end = min(105, begin + size)
    address = source_options(broker.options(queue="orders"), is_stream=True).brokers[""]
    with closing(Client(address, pause=lambda seconds: None)) as client:
        task = Task("orders", "orders", 0, begin, end)
        found = [row for batch in batches(client, task, SCHEMA, loss_rule(True)) for row in batch.to_pylist()]
    assert [row["offset"] for row in found] == list(range(begin, end))


@pytest.mark.parametrize("wish", [{}, {"minPartitions": "7"}, {"maxOffsetsPerPartition": "9"}], ids=str)
def test_a_table_has_every_message_once(broker: FakeBroker, wish: dict[str, str]) -> None:
    broker.batch_rows = 8
    assert offsets(reader(broker, **wish)) == list(range(5, 105))


def test_tasks_read_from_different_nodes(broker: FakeBroker) -> None:
    with fake_broker() as other:
        other.declare("orders", 5, 105)
        urls = f"http://127.0.0.1:{broker.port},http://127.0.0.1:{other.port}"
        source = GatewaySource({"urls": urls, "queue": "orders", "minPartitions": "4"})
        made = source.reader(source.schema())
        assert isinstance(made, BatchReader)
        assert offsets(made) == list(range(5, 105))
        assert (broker.requests.count("GET read"), other.requests.count("GET read")) == (2, 2)


def test_the_number_of_tasks_can_be_chosen(broker: FakeBroker) -> None:
    assert len(reader(broker).partitions()) == 1
    assert len(reader(broker, minPartitions="7").partitions()) == 7
    assert len(reader(broker, maxOffsetsPerPartition="9").partitions()) == 12


def test_an_empty_stream_has_no_task(broker: FakeBroker) -> None:
    broker.declare("empty", 0, 0)
    made = reader(broker, queue="empty")
    assert made.partitions() == []
    assert list(made.read(InputPartition(None))) == []  # Spark's replacement for no task


def test_a_super_stream_is_one_queue(broker: FakeBroker) -> None:
    broker.declare_super("sales", (0, 3), (7, 9))
    assert rows(reader(broker, queue="sales")) == [("sales", 0, n) for n in range(3)] + [
        ("sales", 1, 7),
        ("sales", 1, 8),
    ]


def test_several_queues_and_a_pattern_can_be_read(broker: FakeBroker) -> None:
    broker.declare("returns", 0, 2)
    for chosen in ({"queuePattern": "orders|ret.*"}, {"queues": "returns,orders"}):
        source = GatewaySource(broker.options(**chosen))
        made = source.reader(source.schema())
        assert isinstance(made, BatchReader)
        assert len(rows(made)) == 102


# ---- Columns --------------------------------------------------------------------------------------------------------

LEFT_OUT = [
    ({}, set()),
    ({"includeBody": "false"}, {"body"}),
    ({"includeHeaders": "FALSE"}, {"headers", "headers_json", "x_death"}),
    ({"includeBody": "false", "includeHeaders": "false"}, {"body", "headers", "headers_json", "x_death"}),
]


@pytest.mark.parametrize(("options", "missing"), LEFT_OUT, ids=str)
def test_an_option_omits_columns(broker: FakeBroker, options: dict[str, str], missing: set[str]) -> None:
    source = GatewaySource(broker.options(queue="orders", **options))
    schema = source.schema()
    made = source.reader(schema)
    (batch,) = [batch for task in made.partitions() for batch in made.read(task)][:1]
    assert batch.schema.equals(to_arrow_schema(schema, timezone="UTC"))
    assert set(MESSAGE_SCHEMA.names) - set(schema.names) == missing


NAMES = st.lists(st.sampled_from(MESSAGE_SCHEMA.names), min_size=1, unique=True)


@given(names=NAMES, queue=st.sampled_from(["orders", "s"]))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20, deadline=None)
def test_any_columns_are_read_in_any_order(broker: FakeBroker, names: list[str], queue: str) -> None:
    broker.declare_super("s", (0, 3), (4, 9))
    source = GatewaySource(broker.options(queue=queue, maxOffsetsPerPartition="30"))
    whole = [row for batch in all_batches(source, source.schema()) for row in batch.to_pylist()]
    schema = StructType([MESSAGE_SCHEMA[name] for name in names])
    batches = all_batches(source, schema)
    assert all(batch.schema.equals(to_arrow_schema(schema, timezone="UTC")) for batch in batches)
    assert [row for batch in batches for row in batch.to_pylist()] == [{n: row[n] for n in names} for row in whole]


def all_batches(source: GatewaySource, schema: StructType) -> list[Any]:
    made = source.reader(schema)
    return [batch for task in made.partitions() for batch in made.read(task)]


def test_a_column_may_be_declared_as_never_null(broker: FakeBroker) -> None:
    schema = StructType().add("offset", "long", nullable=False).add("body", "binary")
    batch, *_ = all_batches(GatewaySource(broker.options(queue="orders")), schema)
    assert batch.schema.equals(to_arrow_schema(schema, timezone="UTC"))


WRONG_COLUMNS = [
    ("mood", "string", {}, "there is no column 'mood'; the columns are vhost, queue"),
    ("body", "string", {}, "column 'body' is binary, not string"),
    ("body", "binary", {"includeBody": "false"}, "option 'includeBody' = false omits column 'body'"),
    ("headers_json", "string", {"includeHeaders": "false"}, "option 'includeHeaders' = false omits"),
]


@pytest.mark.parametrize(("name", "kind", "options", "error"), WRONG_COLUMNS)
def test_a_wrong_column_is_refused(
    broker: FakeBroker, name: str, kind: str, options: dict[str, str], error: str
) -> None:
    source = GatewaySource(broker.options(queue="orders", **options))
    schema = StructType().add(name, kind)
    with pytest.raises(OptionError, match=error):
        source.reader(schema)
    refusing = source.streamReader(schema)
    assert isinstance(refusing, RefusingReader)
    with pytest.raises(OptionError, match=error):
        refusing.initialOffset()


# ---- Tables ----------------------------------------------------------------------------------------------------------


def of_new_table(options: dict[str, str]) -> GatewaySource:
    """Return the source as Spark makes it for ``CREATE TABLE``."""
    twice = options | {f"option.{name}": value for name, value in options.items()}
    return GatewaySource(twice | {"provider": "gateway", "owner": "root"})


def test_a_table_is_read_with_its_options(broker: FakeBroker) -> None:
    columns = of_new_table(broker.options(queue="orders")).schema()
    (task,) = GatewaySource({}).reader(columns).partitions()
    assert (task.begin, task.end) == (5, 105)  # type: ignore[attr-defined]  # a Task
    start = {"startingOffsets": '{"orders":{"0":100}}'}
    (task,) = GatewaySource(start).reader(columns).partitions()
    assert task.begin == 100  # type: ignore[attr-defined]
    stream = GatewaySource({"startingOffsets": "earliest"}).streamReader(columns)
    assert isinstance(stream, StreamReader)
    assert stream.latestOffset({}, ReadAllAvailable()) == {"orders": {"0": {"from": 5, "next": 105}}}


WRONG_TABLES = [
    ({"queu": "orders"}, "there is no option 'queu', did you mean 'queue'?"),
    ({"queue": "orders", "password": "secret"}, "a table shows its options: use 'passwordFile' or 'passwordEnv'"),
]


@pytest.mark.parametrize(("options", "error"), WRONG_TABLES)
def test_a_table_with_wrong_options_is_refused_when_it_is_created(options: dict[str, str], error: str) -> None:
    with pytest.raises(OptionError, match=re.escape(error)):
        of_new_table(options).schema()


def test_a_table_with_columns_of_its_own_has_no_options() -> None:
    with pytest.raises(OptionError, match="only if that lists no columns; or create a temporary view"):
        GatewaySource({}).reader(MESSAGE_SCHEMA)


def test_the_schema_of_other_reads_has_no_options(broker: FakeBroker) -> None:
    assert not any(field.metadata for field in GatewaySource(broker.options(queue="orders")).schema())


# ---- Errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("variable", "hides"), [("PYTHON_WORKER_FACTORY_SECRET", True), ("ELSEWHERE", False)])
def test_a_worker_reports_errors_of_ours_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, variable: str, hides: bool
) -> None:
    for name in (*WORKERS_VARIABLES, HIDING):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, "x")
    with pytest.raises(OptionError):
        GatewaySource({"queu": "x"}).schema()
    hidden = os.environ.pop(HIDING, None)
    assert hidden == ("1" if hides else None)


def test_a_broker_of_another_version_is_detected(broker: FakeBroker) -> None:
    schema = StructType([*MESSAGE_SCHEMA.fields]).add("mood", "string")
    made = BatchReader(source_options(broker.options(queue="orders"), is_stream=False), schema)
    with pytest.raises(PipelineError, match="no column mood: its version does not match"):
        list(made.read(made.partitions()[0]))


# ---- Bounds ---------------------------------------------------------------------------------------------------------


def json_of(offset: int) -> str:
    return json.dumps({"orders": {"0": offset}})


BOUNDS = [
    ({"startingOffsets": json_of(100)}, range(100, 105)),
    ({"startingOffsets": json_of(-2), "endingOffsets": json_of(8)}, range(5, 8)),
    ({"startingOffsets": json_of(50), "endingOffsets": json_of(-1)}, range(50, 105)),
    ({"startingOffsets": "latest"}, range(0)),
    ({"startingTimestamp": str(EPOCH_MS + 100_000)}, range(100, 105)),
    ({"startingTimestamp": str(EPOCH_MS + 99_001)}, range(100, 105)),
    ({"endingTimestamp": str(EPOCH_MS + 8_000)}, range(5, 8)),
    ({"endingTimestamp": str(EPOCH_MS + 7_001)}, range(5, 8)),
    ({"startingTimestamp": str(EPOCH_MS + 8_000), "endingTimestamp": str(EPOCH_MS + 8_000)}, range(0)),
    ({"startingTimestamp": str(EPOCH_MS), "endingTimestamp": str(EPOCH_MS + 10**9)}, range(5, 105)),
    ({"startingTimestamp": str(EPOCH_MS + 50_000), "endingTimestamp": str(EPOCH_MS + 20_000)}, range(0)),
]


@pytest.mark.parametrize(("options", "expected"), BOUNDS, ids=str)
def test_the_bounds_of_a_read_apply(broker: FakeBroker, options: dict[str, str], expected: range) -> None:
    assert offsets(reader(broker, **options)) == list(expected)


PLACE = "queue 'orders', partition 0"

WRONG_BOUNDS = [
    (
        {"startingOffsets": json_of(106)},
        "option 'startingOffsets': queue 'orders', partition 0 ends at 105, before 106",
    ),
    ({"endingOffsets": json_of(106)}, "option 'endingOffsets': queue 'orders', partition 0 ends at 105, before 106"),
    ({"startingOffsets": "{}"}, "option 'startingOffsets' names no offset of queue 'orders', partition 0"),
    (
        {"startingOffsets": '{"orders":{"0":7},"other":{"0":1}}'},
        "option 'startingOffsets' names queue 'other', partition 0, which is not selected",
    ),
    ({"queue": "none"}, "queues 'none' cannot be read: no stream 'none' in vhost '/'"),
]


@pytest.mark.parametrize(("options", "line"), WRONG_BOUNDS, ids=str)
def test_invalid_bounds_are_refused(broker: FakeBroker, options: dict[str, str], line: str) -> None:
    with pytest.raises(OptionError) as refusal:
        reader(broker, **options).partitions()
    assert str(refusal.value) == line


# ---- What is lost ---------------------------------------------------------------------------------------------------


def test_an_offset_before_the_first_is_lost(broker: FakeBroker) -> None:
    with pytest.raises(DataLoss, match=f"messages 2 to 4 of {PLACE} are gone; option 'failOnDataLoss'"):
        reader(broker, startingOffsets=json_of(2)).partitions()


def test_losses_can_be_ignored(broker: FakeBroker) -> None:
    with pytest.warns(UserWarning, match="messages 2 to 4 of queue 'orders', partition 0 are gone"):
        assert offsets(reader(broker, startingOffsets=json_of(2), failOnDataLoss="false")) == list(range(5, 105))


def test_truncation_before_a_task_starts_is_detected(broker: FakeBroker) -> None:
    made = reader(broker)
    (task,) = made.partitions()
    broker.declare("orders", 60, 105)
    with pytest.raises(DataLoss, match="messages 5 to 59 of stream 'orders' are gone"):
        list(made.read(task))


def test_truncation_during_a_task_can_be_ignored(broker: FakeBroker) -> None:
    broker.rows_per_answer = 10
    made = reader(broker, failOnDataLoss="false")
    (task,) = made.partitions()
    seen: list[int] = []
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for batch in made.read(task):
            seen += batch["offset"].to_pylist()
            if seen[-1] == 24:
                broker.declare("orders", 60, 105)
    assert seen == [*range(5, 25), *range(60, 105)]
    assert [str(each.message) for each in said] == ["gateway: messages 25 to 59 of stream 'orders' are gone"]


def test_truncation_beyond_a_task_leaves_it_empty(broker: FakeBroker) -> None:
    made = reader(broker, failOnDataLoss="false", endingOffsets=json_of(50))
    (task,) = made.partitions()
    broker.declare("orders", 80, 105)
    with pytest.warns(UserWarning, match="messages 5 to 49"):
        assert list(made.read(task)) == []


@pytest.mark.parametrize("fails", ["true", "false"])
def test_a_stream_that_was_deleted_is_lost(broker: FakeBroker, fails: str) -> None:
    made = reader(broker, failOnDataLoss=fails)
    (task,) = made.partitions()
    broker.bounds.clear()
    if fails == "true":
        with pytest.raises(DataLoss, match="stream 'orders' is gone, with its messages 5 to 104"):
            list(made.read(task))
    else:
        with pytest.warns(UserWarning, match="stream 'orders' is gone"):
            assert list(made.read(task)) == []


def test_a_task_fails_if_the_broker_does_not_return(broker: FakeBroker) -> None:
    made = reader(broker, retryTimeout="100ms")
    (task,) = made.partitions()
    broker.faults.extend(["hang up"] * 50)
    with pytest.raises(Unreachable):
        list(made.read(task))


# ---- Filters --------------------------------------------------------------------------------------------------------


def test_the_reader_accepts_filters_only_with_pushdown(broker: FakeBroker) -> None:
    """Spark refuses to read with a class that has the method, unless its setting allows filters to be pushed."""
    assert "pushFilters" not in vars(BatchReader)
    assert isinstance(reader(broker, pushdown="true"), FilteringReader)
    assert not isinstance(reader(broker), FilteringReader)
