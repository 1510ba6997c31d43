"""Streams as Arrow for other programs: any columns, filters, bounds; resumable; what is lost is reported."""

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gateway_arrow
from gateway.columnar.encoding.schema import MESSAGES
from gateway_arrow.schema import MESSAGES as COLUMNS
from gateway_spark.errors import DataLoss, OptionError, PipelineError
from tests.pipeline.fake_broker import EPOCH_MS, FakeBroker, fake_broker

EPOCH = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=EPOCH_MS)


def url(broker: FakeBroker) -> str:
    return broker.options()["url"]


def offsets(broker: FakeBroker, stream: str = "orders", **arguments: Any) -> list[int]:
    found = gateway_arrow.read(url(broker), stream, columns=["offset"], **arguments)
    return [offset for batch in found for offset in batch["offset"].to_pylist()]


def test_the_columns_are_those_of_the_broker() -> None:
    assert COLUMNS.equals(MESSAGES, check_metadata=True)
    assert str(COLUMNS) == str(MESSAGES)


def test_it_needs_no_spark() -> None:
    program = "import sys, gateway_arrow; sys.exit('pyspark' in sys.modules or 'twisted' in sys.modules)"
    path = [entry for entry in sys.path if entry]
    assert (
        subprocess.run(
            [sys.executable, "-c", f"import sys; sys.path[:0] = {path!r}; {program}"], check=False
        ).returncode
        == 0
    )


def test_all_messages_are_read_in_order(broker: FakeBroker) -> None:
    broker.rows_per_answer = 30
    table = gateway_arrow.read(url(broker), "orders").read_all()
    assert table.schema.equals(COLUMNS)
    assert table["body"].to_pylist() == [b"orders:%d" % offset for offset in range(5, 105)]


def test_an_empty_stream_has_the_columns(broker: FakeBroker) -> None:
    broker.declare("empty", 3, 3)
    table = gateway_arrow.read(url(broker), "empty", columns=["body", "offset"]).read_all()
    assert (table.num_rows, table.schema.names) == (0, ["body", "offset"])


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(columns=st.lists(st.sampled_from(COLUMNS.names), min_size=1, unique=True))
def test_any_columns_in_any_order(broker: FakeBroker, columns: list[str]) -> None:
    whole = gateway_arrow.read(url(broker), "orders").read_all()
    assert gateway_arrow.read(url(broker), "orders", columns=columns).read_all().equals(whole.select(columns))


BOUNDS = [
    ({}, 5, 105),
    ({"start": 50}, 50, 105),
    ({"start": 50, "end": 60}, 50, 60),
    ({"start": "latest"}, 105, 105),
    ({"start": 60, "end": 50}, 0, 0),
    ({"start": EPOCH + timedelta(seconds=50)}, 50, 105),
    ({"start": (EPOCH + timedelta(seconds=50)).isoformat(), "end": EPOCH + timedelta(seconds=60)}, 50, 60),
]


@pytest.mark.parametrize(("arguments", "begin", "end"), BOUNDS, ids=str)
def test_bounds(broker: FakeBroker, arguments: dict[str, Any], begin: int, end: int) -> None:
    assert offsets(broker, **arguments) == list(range(begin, end))


FILTERS = [
    [("offset", ">=", 100)],
    [[("offset", "<", 6)], [("offset", ">=", 102)]],
    pc.field("offset") == 50,
    pc.field("body") == b"orders:77",
]


@pytest.mark.parametrize("filter", FILTERS, ids=str)
def test_filters_are_those_of_pyarrow(broker: FakeBroker, filter: Any) -> None:
    whole = gateway_arrow.read(url(broker), "orders").read_all()
    expected = whole.filter(filter if isinstance(filter, pc.Expression) else pa.parquet.filters_to_expression(filter))
    assert 0 < expected.num_rows < 100
    found = gateway_arrow.read(url(broker), "orders", columns=["body"], filter=filter).read_all()
    assert found.equals(expected.select(["body"]))


def test_a_super_stream_is_read_partition_by_partition(broker: FakeBroker) -> None:
    broker.declare_super("sales", (0, 2), (7, 9))
    rows = gateway_arrow.read(url(broker), "sales", columns=["queue", "partition", "offset"]).read_all().to_pylist()
    assert [tuple(row.values()) for row in rows] == [("sales", 0, 0), ("sales", 0, 1), ("sales", 1, 7), ("sales", 1, 8)]


# Resumption


@pytest.mark.parametrize("taken", range(4))
def test_a_reading_goes_on_where_another_one_ended(broker: FakeBroker, taken: int) -> None:
    """In the middle, too: the position is behind the last batch that was taken."""
    broker.rows_per_answer = 40
    first = gateway_arrow.StreamReading(url(broker), "orders", columns=["body"])
    bodies = [body for _ in range(taken) for body in first.reader.read_next_batch()["body"].to_pylist()]
    position = json.loads(json.dumps(first.position))
    broker.declare("orders", 5, 130)
    second = gateway_arrow.StreamReading(url(broker), "orders", columns=["body"], position=position)
    bodies += second.reader.read_all()["body"].to_pylist()
    assert bodies == [b"orders:%d" % offset for offset in range(5, 130)]
    assert second.position == {"orders": {"0": 130}}


def test_a_position_is_behind_messages_that_a_filter_leaves_out(broker: FakeBroker) -> None:
    reading = gateway_arrow.StreamReading(url(broker), "orders", filter=[("offset", "<", 0)])
    assert reading.reader.read_all().num_rows == 0
    assert reading.position == {"orders": {"0": 105}}


def test_a_restart_of_the_broker_is_not_noticed(broker: FakeBroker) -> None:
    broker.rows_per_answer = 30
    broker.faults.extend(["hang up", 503])
    assert offsets(broker) == list(range(5, 105))


# Loss


def test_lost_messages_are_an_error(broker: FakeBroker) -> None:
    position = {"orders": {"0": 10}}
    broker.declare("orders", 50, 105)
    with pytest.raises(DataLoss, match="messages 10 to 49 of queue 'orders', partition 0 are gone"):
        gateway_arrow.StreamReading(url(broker), "orders", position=position)
    with pytest.warns(UserWarning, match="messages 10 to 49"):
        reading = gateway_arrow.StreamReading(url(broker), "orders", position=position, failOnDataLoss=False)
    assert reading.reader.read_all()["offset"].to_pylist() == list(range(50, 105))


def test_a_stream_that_was_declared_again_is_an_error(broker: FakeBroker) -> None:
    broker.recreate("orders", 0, 9, "1-1")
    reading = gateway_arrow.StreamReading(url(broker), "orders")
    reading.reader.read_all()
    broker.recreate("orders", 0, 20, "2-2")
    with pytest.raises(DataLoss, match="queue 'orders', partition 0 was deleted and declared again"):
        gateway_arrow.StreamReading(url(broker), "orders", position=reading.position)


def test_messages_that_are_lost_while_reading_are_an_error(broker: FakeBroker) -> None:
    broker.rows_per_answer = 10
    reading = gateway_arrow.StreamReading(url(broker), "orders")
    reading.reader.read_next_batch()
    broker.declare("orders", 90, 105)
    with pytest.raises(Exception, match="are gone") as raised:
        reading.reader.read_all()
    assert isinstance(raised.value, DataLoss)


# Arguments


INVALID = [
    ({"columns": ["bodi"]}, "there is no column 'bodi'; there are vhost,"),
    ({"columns": ["body", "body"]}, "a column is named twice"),
    ({"filter": [("bodi", "=", 1)]}, "there is no column 'bodi'"),
    ({"filter": 7}, "'filter' must be an expression or tuples"),
    ({"start": -1}, "'start' must be earliest, latest, an offset from 0, or a time, not -1"),
    ({"start": "soon"}, "'start' must be earliest, latest, an offset from 0, or a time, not 'soon'"),
    ({"end": "earliest"}, "'end' must be latest, an offset from 0, or a time, not 'earliest'"),
    ({"end": 200}, "option 'end': queue 'orders', partition 0 ends at 105, before 200"),
    ({"vhots": "/"}, "there is no option 'vhots'"),
    ({"failOnDataLoss": "maybe"}, "option 'failOnDataLoss' must be true or false"),
    ({"position": {"orders": {"0": 7}}, "start": 3}, "give one of 'start' and 'position', not both"),
    ({"position": {"orders": 7}}, "this is not an offset of a gateway source"),
]


@pytest.mark.parametrize(("arguments", "error"), INVALID, ids=str)
def test_invalid_arguments_are_refused(broker: FakeBroker, arguments: dict[str, Any], error: str) -> None:
    with pytest.raises(OptionError) as raised:
        gateway_arrow.StreamReading(url(broker), "orders", **arguments)
    assert str(raised.value).startswith(error)


def test_a_stream_that_does_not_exist_is_an_error(broker: FakeBroker) -> None:
    with pytest.raises(PipelineError, match="queues 'nothing' cannot be read: no stream 'nothing'"):
        gateway_arrow.read(url(broker), "nothing")


def test_the_nodes_of_a_cluster_are_a_list(broker: FakeBroker) -> None:
    with fake_broker() as other:
        other.declare("orders", 5, 105)
        found = gateway_arrow.read([url(broker), url(other)], "orders", columns=["offset"]).read_all()
    assert found.num_rows == 100
