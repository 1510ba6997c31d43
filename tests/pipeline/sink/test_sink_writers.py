"""The sink's writers: rows are framed, attempts are named, and one commit lists the valid attempts."""

import json
import pickle
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import IntegerType, MapType, StringType, StructType

from gateway_spark.errors import BatchHeld, OptionError, PipelineError, StagedLost
from gateway_spark.framing import LENGTHS, framed
from gateway_spark.options import sink_options
from gateway_spark.rows import require_publishable
from gateway_spark.sink import MicroBatchWriter, TableWriter, TaskCommit
from gateway_spark.source import GatewaySource
from tests.pipeline.fake_broker import FakeBroker, fake_broker


@pytest.fixture
def broker() -> Iterator[FakeBroker]:
    with fake_broker() as broker:
        yield broker


def table(**columns: list[Any]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(columns)


def unframed(part: bytes) -> list[tuple[dict[str, Any], bytes]]:
    found, position, said = [], 0, b""
    while position < len(part):
        head, body = LENGTHS.unpack_from(part, position)
        position += LENGTHS.size
        said = part[position : position + head] or said
        found.append((json.loads(said), part[position + head : position + head + body]))
        position += head + body
    return found


# ---- Rows -----------------------------------------------------------------------------------------------------------


def test_a_row_with_only_a_body_has_an_empty_head() -> None:
    ((part, count),) = framed([table(body=[b"one", b"two"])], 1000)
    assert (unframed(part), count) == ([({}, b"one"), ({}, b"two")], 2)


def test_a_row_with_all_columns_has_all_fields() -> None:
    columns = {
        "body": ["text"],
        "exchange": ["x"],
        "routing_key": ["k"],
        "headers": pa.array([[("a", "b")]], pa.map_(pa.string(), pa.string())),
        "priority": [3],
        "message_id": ["m"],
        "message_timestamp": [datetime(2026, 1, 1, 0, 0, 1, 999_999, UTC)],
    }
    ((part, _),) = framed([pa.RecordBatch.from_pydict(columns)], 1000)
    properties = {"priority": 3, "message_id": "m", "timestamp": 1_767_225_601}
    head = {"exchange": "x", "routing_key": "k", "headers": {"a": "b"}, "properties": properties}
    assert unframed(part) == [(head, b"text")]


def test_null_columns_are_omitted() -> None:
    ((part, _),) = framed([table(body=[b""], routing_key=[None], priority=pa.array([None], pa.int32()))], 1000)
    assert unframed(part) == [({}, b"")]


def test_a_row_without_a_body_is_refused() -> None:
    with pytest.raises(PipelineError, match="column 'body' is null"):
        list(framed([table(body=[b"x", None])], 1000))


@given(
    rows=st.lists(st.tuples(st.binary(max_size=30), st.sampled_from(["a", "b", None])), max_size=40),
    cuts=st.integers(1, 10),
    part_bytes=st.integers(1, 300),
)
def test_rows_are_decoded_for_any_size_of_parts(
    rows: list[tuple[bytes, str | None]], cuts: int, part_bytes: int
) -> None:
    kinds = pa.schema([("body", pa.binary()), ("routing_key", pa.string())])
    whole = pa.Table.from_pylist([{"body": body, "routing_key": key} for body, key in rows], schema=kinds)
    parts = list(framed(whole.to_batches(max_chunksize=cuts), part_bytes))
    expected = [({} if key is None else {"routing_key": key}, body) for body, key in rows]
    assert [row for part, _ in parts for row in unframed(part)] == expected
    assert [count for _, count in parts] == [len(unframed(part)) for part, _ in parts]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.large_binary()])
def test_headers_and_bodies_are_those_of_their_rows_in_a_piece_of_a_batch(kind: pa.DataType) -> None:
    headers: list[list[tuple[str, str | None]] | None] = [[("a", "b")], [], None, [("a", "b")], [("c", None)]]
    bodies = ["", "é", "text", "", "x"]
    columns = {
        "body": pa.array([body.encode() for body in bodies]).cast(kind),
        "headers": pa.array(headers, pa.map_(pa.string(), pa.string())),
    }
    whole = pa.RecordBatch.from_pydict(columns)
    expected = [
        ({} if pairs is None else {"headers": dict(pairs)}, body.encode())
        for pairs, body in zip(headers, bodies, strict=True)
    ]
    for first in range(len(bodies)):
        ((part, count),) = framed([whole.slice(first), whole.slice(0, 0), whole.slice(1, 1)], 1000)
        assert (unframed(part), count) == ([*expected[first:], expected[1]], 6 - first)


# ---- Columns --------------------------------------------------------------------------------------------------------

TAKEN = "body, exchange, routing_key, headers, headers_json, "
WRONG_COLUMNS = [
    ("exchange string", "column 'body' is required: binary or string"),
    ("body integer", "column 'body' must be binary or string, not int"),
    ("body binary, priority string", "column 'priority' must be int, not string"),
    ("body binary, headers map<string,int>", "column 'headers' must be map<string,string>, not map<string,int>"),
    ("body binary, message_timestamp string", "column 'message_timestamp' must be timestamp, not string"),
    ("body binary, offset long", f"column 'offset' is not a message column; the sink accepts {TAKEN}"),
]


@pytest.mark.parametrize(("ddl", "line"), WRONG_COLUMNS)
def test_columns_that_do_not_form_a_message_are_refused(ddl: str, line: str) -> None:
    with pytest.raises(OptionError) as refusal:
        require_publishable(parsed(ddl), sink_options({"exchange": "x"}, is_stream=True))
    assert str(refusal.value).startswith(line)


def test_an_exchange_is_required() -> None:
    with pytest.raises(OptionError, match="column 'exchange' or option 'exchange' is required"):
        require_publishable(parsed("body binary"), sink_options({}, is_stream=True))
    require_publishable(parsed("body binary, exchange string"), sink_options({}, is_stream=True))
    require_publishable(parsed("body binary"), sink_options({"exchange": ""}, is_stream=True))


def parsed(ddl: str) -> StructType:
    """Parse the subset of DDL used here; Spark's own parser needs a session."""
    schema = StructType()
    for column in ddl.split(", "):
        name, kind = column.split(" ")
        schema = schema.add(name, MapType(StringType(), IntegerType()) if kind == "map<string,int>" else kind)
    return schema


# ---- Attempts and commits -------------------------------------------------------------------------------------------

BODY = StructType().add("body", "binary")


def writers(broker: FakeBroker, **options: str) -> tuple[MicroBatchWriter, MicroBatchWriter]:
    """Return the writer that runs in tasks and the one that commits: Spark creates two."""
    source = GatewaySource(broker.options(exchange="x", **options))
    return source.streamWriter(BODY, False), source.streamWriter(BODY, False)


def test_rows_staged_by_tasks_are_committed_by_another_object(broker: FakeBroker) -> None:
    tasks, driver = writers(broker, producerName="job", routingKey="k")
    messages = [passed_on(tasks.write(iter([table(body=[b"%d" % n])]))) for n in range(2)]
    for message in messages:
        message.query = "query-1"
    driver.commit(messages, 7)
    (commit,) = broker.commits
    assert commit == {
        "producer": "job",
        "query": "query-1",
        "batch": 7,
        "attempts": [[message.attempt, 1, 1] for message in messages],
        "exchange": "x",
        "routing_key": "k",
        "unroutable": "fail",
        "dead_letter_exchange": None,
        "wait_s": 10.0,
    }
    assert {name for name, _ in broker.parts} == {message.attempt for message in messages}


def passed_on(message: Any) -> TaskCommit:
    """Send a message to the driver, as Spark does."""
    received = pickle.loads(pickle.dumps(message))
    assert isinstance(received, TaskCommit)
    return received


def test_two_runs_of_a_task_are_two_attempts(broker: FakeBroker) -> None:
    """As with speculative execution: only one of the two messages is committed."""
    tasks, driver = writers(broker)
    first, second = (tasks.write(iter([table(body=[b"x"])])) for _ in range(2))
    assert first.attempt != second.attempt
    second.query = "q"
    driver.commit([second], 0)
    assert [name for name, _, _ in broker.commits[0]["attempts"]] == [second.attempt]


def test_a_large_task_is_staged_in_parts(broker: FakeBroker) -> None:
    tasks, _ = writers(broker, maxInFlight="100")
    staged = tasks.write(iter([table(body=[b"x" * 40] * 10)]))
    assert (staged.parts, staged.rows) == (4, 10)
    assert sorted(broker.parts) == [(staged.attempt, str(part)) for part in range(4)]


def test_a_task_without_rows_stages_nothing(broker: FakeBroker) -> None:
    tasks, driver = writers(broker)
    staged = tasks.write(iter([]))
    staged.query = "q"
    driver.commit([staged], 0)
    assert (broker.parts, broker.commits) == ({}, [])


def test_staging_is_retried(broker: FakeBroker) -> None:
    tasks, _ = writers(broker)
    broker.faults.extend(["hang up", 503])
    staged = tasks.write(iter([table(body=[b"x"])]))
    assert list(broker.parts) == [(staged.attempt, "0")]


def test_a_stream_without_a_query_id_is_refused(broker: FakeBroker) -> None:
    tasks, driver = writers(broker)
    with pytest.raises(PipelineError, match="does not provide the query id to tasks"):
        driver.commit([tasks.write(iter([table(body=[b"x"])]))], 0)


def test_a_failed_batch_is_discarded(broker: FakeBroker) -> None:
    tasks, driver = writers(broker)
    driver.abort([None, tasks.write(iter([table(body=[b"x"])]))], 3)
    assert broker.requests == ["POST stage", "POST discard"]
    driver.abort([None, None], 3)
    assert broker.requests == ["POST stage", "POST discard"]


def batch_writer(broker: FakeBroker, **options: str) -> TableWriter:
    return GatewaySource(broker.options(exchange="x", **options)).writer(BODY, False)


def test_a_repeated_batch_write_with_a_name_is_a_duplicate(broker: FakeBroker) -> None:
    writer = batch_writer(broker, producerName="job", batchId="2026-01-31")
    writer.commit([writer.write(iter([table(body=[b"x"])]))])
    (commit,) = broker.commits
    assert (commit["producer"], commit["query"], commit["batch"]) == ("job", "batch 2026-01-31", 0)


def test_a_repeated_batch_write_without_a_name_is_not_a_duplicate(broker: FakeBroker) -> None:
    """Each write has an identity of its own, so that a commit that is repeated after a restart is recognised."""
    for _ in range(2):
        writer = batch_writer(broker)
        writer.commit([writer.write(iter([table(body=[b"x"])]))])
    first, second = (commit["query"] for commit in broker.commits)
    assert first.startswith("job ")
    assert first != second


@pytest.mark.parametrize("state", ["publishing", "published"])
def test_a_job_that_runs_again_stages_nothing_of_a_committed_batch(broker: FakeBroker, state: str) -> None:
    broker.batch_state = state
    broker.commit_answer = (200, {"published": 0, "duplicate": True})
    rows = iter([table(body=[b"x"]), table(body=[b"y"])])
    writer = batch_writer(broker, producerName="job", batchId="b")
    writer.commit([passed_on(writer.write(rows))])
    assert list(rows) == []  # Spark leaks memory for a task that leaves rows
    assert broker.parts == {}
    (commit,) = broker.commits
    assert (commit["query"], commit["attempts"], commit["is_repeated"]) == ("batch b", [], True)


def test_a_broker_that_does_not_know_states_of_batches_gets_all_rows(broker: FakeBroker) -> None:
    broker.batch_state = None
    writer = batch_writer(broker, producerName="job", batchId="b")
    writer.commit([writer.write(iter([table(body=[b"x"])]))])
    assert len(broker.parts) == 1
    assert "is_repeated" not in broker.commits[0]


def test_a_later_run_of_a_batch_write_has_a_later_name(broker: FakeBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    """The broker deletes what earlier runs of the batch have staged, by these names."""
    names = []
    for started_ms in (1_790_000_000_009, 1_790_000_000_010):
        monkeypatch.setattr(time, "time_ns", lambda now_ms=started_ms: now_ms * 1_000_000)
        writer = batch_writer(broker, producerName="job", batchId="b")
        first, second = (writer.write(iter([table(body=[b"x"])])).attempt.split(".") for _ in range(2))
        assert first[:2] == second[:2]
        assert first[2] != second[2]
        names.append(first)
    assert names[0][0] == names[1][0]
    assert names[0][1] < names[1][1]


def test_batch_writes_without_an_id_do_not_replace_one_another(broker: FakeBroker) -> None:
    batches = [batch_writer(broker).write(iter([table(body=[b"x"])])).attempt.split(".")[0] for _ in range(2)]
    assert batches[0] != batches[1]


def test_overwriting_is_refused(broker: FakeBroker) -> None:
    source = GatewaySource(broker.options(exchange="x"))
    for make in (source.writer, source.streamWriter):
        with pytest.raises(OptionError, match="mode 'overwrite' is not possible"):
            make(BODY, True)


def test_a_commit_is_repeated_until_the_batch_is_published(broker: FakeBroker) -> None:
    """Also while the broker restarts."""
    writer = batch_writer(broker)
    message = writer.write(iter([table(body=[b"x"])]))
    broker.progress_answers += [
        {"state": "checked"},
        {"state": "held", "reason": "low on memory"},
        {"state": "publishing"},
    ]
    broker.faults += [503, "hang up"]
    writer.commit([message])
    assert len(broker.commits) == 1
    assert broker.requests.count("POST commit") == 6


def test_a_batch_that_stays_held_fails_the_query(broker: FakeBroker) -> None:
    writer = batch_writer(broker, retryTimeout="1ms")
    message = writer.write(iter([table(body=[b"x"])]))
    broker.progress_answers += [{"state": "held", "reason": "no exchange 'x'"}] * 3
    line = "the batch is committed, and is published once this is over: no exchange 'x'"
    with pytest.raises(BatchHeld, match=line):
        writer.commit([message])


def test_a_task_whose_earlier_rows_are_lost_runs_again(broker: FakeBroker) -> None:
    """Another node of a cluster took over."""
    writer = batch_writer(broker, maxInFlight="1024")
    broker.lost_parts = 1
    with pytest.raises(StagedLost, match="which has to run again"):
        writer.write(iter([table(body=[b"x" * 2000, b"y" * 2000])]))


REFUSALS = [
    (409, {"error": "damaged", "reason": "it is damaged"}, StagedLost, "it is damaged; restart the query"),
    (409, {"error": "not_staged", "reason": "it is not here"}, StagedLost, "it is not here; restart the query"),
    (409, {"error": "unroutable", "reason": "no queue"}, PipelineError, "nothing of the batch was published: no queue"),
    (413, {"error": "too_large", "reason": "too much"}, PipelineError, "nothing of the batch was published: too much"),
]


@pytest.mark.parametrize(("status", "answer", "kind", "line"), REFUSALS)
def test_refused_commits_are_explained(broker: FakeBroker, status: int, answer: Any, kind: type, line: str) -> None:
    writer = batch_writer(broker)
    broker.commit_answer = status, answer
    with pytest.raises(kind, match=line):
        writer.commit([writer.write(iter([table(body=[b"x"])]))])


def test_refusals_by_full_queues_are_reported(broker: FakeBroker) -> None:
    writer = batch_writer(broker)
    broker.commit_answer = 200, {"published": 3, "refused": 2}
    with pytest.warns(UserWarning, match="2 messages were refused by full queues"):
        writer.commit([writer.write(iter([table(body=[b"x"])]))])
