"""Streams of one name at several brokers are partitions of one queue, each with offsets of its own."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.datasource import EqualTo
from pyspark.sql.types import StructType

from gateway_spark.__main__ import main
from gateway_spark.address import NodeUrl
from gateway_spark.batch_reader import BatchReader, FilteringReader
from gateway_spark.errors import DataLoss, OptionError, Unreachable
from gateway_spark.options import source_options
from gateway_spark.source import GatewaySource
from gateway_spark.stream_reader import StreamReader
from gateway_spark.usage import USAGE
from tests.pipeline.fake_broker import FakeBroker, fake_broker
from tests.pipeline.test_pipeline_status import checkpoint_in
from tests.ports import free_port

Offset = dict[str, Any]
Place = tuple[str, int, int]


@pytest.fixture(scope="module")
def running_rome() -> Iterator[FakeBroker]:
    with fake_broker() as broker:
        yield broker


@pytest.fixture
def oslo(broker: FakeBroker) -> FakeBroker:
    """A broker with ``orders``, messages 0 to 3."""
    broker.declare("orders", 0, 4)
    return broker


@pytest.fixture
def rome(running_rome: FakeBroker) -> FakeBroker:
    """Another one, whose ``orders`` has messages 10 to 12."""
    running_rome.reset()
    running_rome.declare("orders", 10, 13)
    return running_rome


@pytest.fixture
def both(oslo: FakeBroker, rome: FakeBroker) -> dict[str, str]:
    """The options of a source that reads ``orders`` of both."""
    return {"brokers": json.dumps({"oslo": url(oslo), "rome": {"url": url(rome)}}), "queue": "orders"}


def url(broker: FakeBroker) -> str:
    return broker.options()["url"]


def table(options: dict[str, str], schema: StructType | None = None) -> BatchReader:
    source = GatewaySource(options)
    made = source.reader(schema or source.schema())
    assert isinstance(made, BatchReader)
    return made


def places(made: BatchReader | StreamReader, *bounds: Offset) -> list[Place]:
    """Read all tasks; return broker, partition and offset of each row."""
    return [
        (row["broker"], row["partition"], row["offset"])
        for task in made.partitions(*bounds)
        for rows in made.read(task)
        for row in rows.to_pylist()
    ]


def stream(options: dict[str, str]) -> StreamReader:
    source = GatewaySource(options)
    made = source.streamReader(source.schema())
    assert isinstance(made, StreamReader)
    return made


def batch(made: StreamReader, start: Offset) -> tuple[Offset, list[Place]]:
    """Plan a batch and read it."""
    end = json.loads(json.dumps(made.latestOffset(start, made.getDefaultReadLimit())))
    return end, [] if end == start else places(made, start, end)


OF_OSLO = [("oslo", 0, offset) for offset in range(4)]
OF_ROME = [("rome", 0, offset) for offset in range(10, 13)]


def test_a_table_has_the_messages_of_all_brokers(both: dict[str, str]) -> None:
    assert places(table(both)) == OF_OSLO + OF_ROME


def test_the_broker_is_the_last_column(both: dict[str, str]) -> None:
    assert GatewaySource(both).schema().names[-2:] == ["body", "broker"]


def test_the_broker_may_be_any_column(both: dict[str, str]) -> None:
    schema = GatewaySource(both).schema()
    chosen = StructType([schema[name] for name in ("offset", "broker", "queue")])
    made = table(both, chosen)
    rows = [tuple(row.values()) for task in made.partitions() for each in made.read(task) for row in each.to_pylist()]
    assert rows == [(offset, broker, "orders") for broker, _, offset in OF_OSLO + OF_ROME]


def test_one_broker_has_no_such_column(oslo: FakeBroker, both: dict[str, str]) -> None:
    schema = StructType([GatewaySource(both).schema()["broker"]])
    with pytest.raises(OptionError, match="there is no column 'broker'"):
        table(oslo.options(queue="orders"), schema)


def test_partitions_of_super_streams_keep_their_numbers(
    oslo: FakeBroker, rome: FakeBroker, both: dict[str, str]
) -> None:
    oslo.declare_super("sales", (0, 1), (5, 6))
    rome.declare_super("sales", (2, 3))
    assert places(table(both | {"queue": "sales"})) == [("oslo", 0, 0), ("oslo", 1, 5), ("rome", 0, 2)]


def test_each_broker_has_offsets_of_its_own(oslo: FakeBroker, rome: FakeBroker, both: dict[str, str]) -> None:
    made = stream(both | {"startingOffsets": "earliest", "maxOffsetsPerTrigger": "5"})
    first, rows = batch(made, {})
    assert first == {"orders": {"oslo:0": {"from": 0, "next": 3}, "rome:0": {"from": 10, "next": 12}}}
    rome.declare("orders", 10, 14)
    last, more = batch(stream(both), first)
    assert last == {"orders": {"oslo:0": 4, "rome:0": 14}}
    assert sorted(rows + more) == [*OF_OSLO, *OF_ROME, ("rome", 0, 13)]


def test_a_broker_with_another_url_is_the_same(oslo: FakeBroker, rome: FakeBroker, both: dict[str, str]) -> None:
    end, _ = batch(stream(both | {"startingOffsets": "earliest"}), {})
    rome.declare("orders", 10, 15)
    moved = both | {"brokers": json.dumps({"rome": url(rome) + "/", "oslo": {"urls": url(oslo)}})}
    assert batch(stream(moved), end)[1] == [("rome", 0, 13), ("rome", 0, 14)]


def test_offsets_of_each_broker_can_be_given(both: dict[str, str]) -> None:
    start = '{"orders": {"oslo:0": 3, "rome:0": -1}}'
    assert places(table(both | {"startingOffsets": start})) == [("oslo", 0, 3)]
    with pytest.raises(OptionError, match="names no offset of queue 'orders', partition rome:0"):
        places(table(both | {"startingOffsets": '{"orders": {"oslo:0": 3}}'}))


def retention(rome: FakeBroker) -> None:
    rome.declare("orders", 20, 22)


def deletion(rome: FakeBroker) -> None:
    rome.recreate("orders", 0, 2, "2-1")


LOSSES = [
    (retention, "messages 13 to 19 of queue 'orders', partition rome:0 are gone", [20, 21]),
    (deletion, "queue 'orders', partition rome:0 was deleted and declared again", [0, 1]),
]


@pytest.mark.parametrize(("lose", "error", "left"), LOSSES, ids=["retention", "deletion"])
def test_a_loss_is_that_of_one_partition(
    rome: FakeBroker, both: dict[str, str], lose: Callable[[FakeBroker], None], error: str, left: list[int]
) -> None:
    rome.recreate("orders", 10, 13, "1-1")
    end, _ = batch(stream(both | {"startingOffsets": "earliest"}), {})
    lose(rome)
    if lose is retention:
        rome.incarnations["orders"] = "1-1"
    with pytest.raises(DataLoss, match=error):
        batch(stream(both), end)
    with pytest.warns(UserWarning, match=error):
        last, rows = batch(stream(both | {"failOnDataLoss": "false"}), end)
    assert rows == [("rome", 0, offset) for offset in left]
    assert last["orders"]["oslo:0"] == end["orders"]["oslo:0"]


def test_a_broker_that_is_no_longer_named_is_a_loss(oslo: FakeBroker, both: dict[str, str]) -> None:
    end, _ = batch(stream(both | {"startingOffsets": "earliest"}), {})
    alone = both | {"brokers": json.dumps({"oslo": url(oslo)})}
    with pytest.raises(DataLoss, match="queue 'orders', partition rome:0 is gone"):
        batch(stream(alone), end)


def test_a_broker_that_does_not_answer_fails_the_query(oslo: FakeBroker) -> None:
    silent = f"http://127.0.0.1:{free_port()}"
    brokers = json.dumps({"oslo": url(oslo), "rome": silent})
    with pytest.raises(Unreachable, match=f"no answer from {silent}"):
        places(table({"brokers": brokers, "queue": "orders", "retryTimeout": "1ms"}))


def test_a_queue_that_one_broker_lacks_is_an_error(rome: FakeBroker, both: dict[str, str]) -> None:
    rome.reset()
    with pytest.raises(OptionError, match="queues 'orders' cannot be read at broker 'rome': no stream 'orders'"):
        places(table(both))
    assert places(table({"brokers": both["brokers"], "queuePattern": "ord.*"})) == OF_OSLO


def test_each_broker_shows_the_progress_in_its_own_partitions(
    oslo: FakeBroker, rome: FakeBroker, both: dict[str, str]
) -> None:
    end, _ = batch(stream(both | {"startingOffsets": "earliest"}), {})
    stream(both).commit(end)
    assert oslo.progress == {"spark orders": {"offsets": {"orders": {"0": 4}}}}
    assert rome.progress == {"spark orders": {"offsets": {"orders": {"0": 13}}}}


def test_a_filter_on_the_broker_reads_from_that_one(both: dict[str, str]) -> None:
    made = table(both | {"pushdown": "true"})
    assert isinstance(made, FilteringReader)
    made.pushFilters([EqualTo(("broker",), "rome")])
    assert places(made) == OF_ROME


def test_the_status_of_a_query_names_the_brokers(
    tmp_path: Path, both: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    checkpoint = checkpoint_in(tmp_path, {"orders": {"oslo:0": 3, "rome:0": 11}}, commits=1)
    assert main(["status", str(checkpoint), "--brokers", both["brokers"]]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == [
        "  orders/oslo:0: at 3, of 4: 1 to go",
        "  orders/rome:0: at 11, of 13: 2 to go",
    ]


# ---- Options --------------------------------------------------------------------------------------------------------


def test_a_broker_has_options_of_its_own() -> None:
    """They apply in place of the common ones; a password replaces any other kind of password."""
    rome = {"urls": "http://rome1:1,http://rome2:2", "username": "reader", "password": "y", "vhost": "v"}
    brokers = json.dumps({"oslo": "http://oslo", "rome": rome})
    given = {"queue": "q", "brokers": brokers, "username": "spark", "passwordFile": "/dev/null", "retryTimeout": "5s"}
    found = source_options(given, is_stream=True).brokers
    assert [(each.username, each.password, each.vhost, each.retry_s) for each in found.values()] == [
        ("spark", "", "/", 5.0),
        ("reader", "y", "v", 5.0),
    ]
    assert found["rome"].nodes == (NodeUrl("http", "rome1", 1), NodeUrl("http", "rome2", 2))


INVALID = [
    ('{"a": "http://a"', "option 'brokers' must be JSON such as"),
    ("{}", "option 'brokers' must be JSON such as"),
    ('{"a:b": "http://a"}', "option 'brokers' must be JSON such as"),
    ('{"a": 7}', "option 'brokers' must be JSON such as"),
    ('{"a": "http://a", "a": "http://b"}', "option 'brokers' must be JSON such as"),
    ('{"a": {"vhost": "v"}}', "option 'brokers', broker 'a': one of the options 'url' or 'urls' is required"),
    ('{"a": {"ulr": "http://a"}}', "option 'brokers', broker 'a': there is no option 'ulr', did you mean 'url'?"),
    ('{"a": {"brokers": "x"}}', "option 'brokers', broker 'a': there is no option 'brokers'"),
    ('{"a": "oslo:15672"}', "option 'brokers', broker 'a': option 'urls' must be http://host:port"),
]


@pytest.mark.parametrize(("brokers", "error"), INVALID)
def test_an_invalid_option_is_refused(brokers: str, error: str) -> None:
    with pytest.raises(OptionError) as raised:
        source_options({"queue": "q", "brokers": brokers}, is_stream=True)
    assert str(raised.value).startswith(error)


def test_a_job_that_publishes_has_one_broker(capsys: pytest.CaptureFixture[str]) -> None:
    refused = "--brokers is for jobs that only read"
    given = ["--queue", "orders", "--brokers", '{"a": "http://127.0.0.1:1"}', "--option", "retryTimeout=1ms"]
    assert main(["run", "replay", *given, "--name", "n"]) == USAGE
    assert refused in capsys.readouterr().err
    assert main(["run", "presence", *given, "--alert-exchange", "e"]) == USAGE
    assert refused in capsys.readouterr().err


# ---- The nodes of one cluster ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("incarnation", ["1-1", "2-2", None], ids=["the same", "another stream", "no stream"])
def test_urls_of_different_brokers_are_refused(oslo: FakeBroker, rome: FakeBroker, incarnation: str | None) -> None:
    oslo.recreate("orders", 0, 4, "1-1")
    rome.reset()
    if incarnation is not None:
        rome.recreate("orders", 0, 4, incarnation)
    given = {"urls": f"{url(oslo)},{url(rome)}", "queue": "orders"}
    if incarnation == "1-1":
        assert sum(1 for _ in table(given).partitions()) == 1
        assert stream(given | {"startingOffsets": "earliest"}).latestOffset({}, None)  # type: ignore[arg-type]
        return
    error = f"{url(rome)} has other streams than {url(oslo)}: 'urls' are the nodes of one cluster"
    with pytest.raises(OptionError, match=error):
        table(given).partitions()
    with pytest.raises(OptionError, match=error):
        batch(stream(given), {})


def test_a_node_that_does_not_answer_is_not_compared(oslo: FakeBroker) -> None:
    given = {"urls": f"{url(oslo)},http://127.0.0.1:{free_port()}", "queue": "orders"}
    made = table(given)
    assert [row["offset"] for task in made.partitions() for rows in made.read(task) for row in rows.to_pylist()] == [
        *range(4)
    ]
