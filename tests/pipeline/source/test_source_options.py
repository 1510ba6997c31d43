"""Every invalid option is refused in one line with its name and the permitted values."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway_spark.address import NodeUrl
from gateway_spark.bounds import EARLIEST, LATEST, exact_time
from gateway_spark.choices import ceil_ms, moment_ms
from gateway_spark.errors import OptionError
from gateway_spark.offsets import Key, PartitionOffset
from gateway_spark.options import SINK, SOURCE, QueueSelection, ReadLimits, sink_options, source_options

QUEUE = {"queue": "orders"}

TIME = "milliseconds since 1970, or ISO 8601 such as 2026-01-31T12:00:00Z"
OFFSETS = 'earliest, latest or JSON such as {"orders": {"0": 23}} (-2 for earliest, -1 for latest)'
ENDS = "latest or JSON offsets from 0, or -1 for latest (-2, earliest, is not an end)"
DURATION = "a number with ms, s, m, h or d, such as 15m"

#: Option of a batch read, an invalid value, and the permitted ones.
MUST_BE = [
    ("queue", "", "a name that is not empty"),
    ("queues", "a,,b", "names with commas between them, or a list of names in JSON"),
    ("queues", '["a", 1]', "names with commas between them, or a list of names in JSON"),
    ("queuePattern", "(", "a regular expression (missing ), unterminated subpattern at position 0)"),
    ("startingOffsets", "first", OFFSETS),
    ("startingOffsets", '{"q":{"0":-3}}', OFFSETS),
    ("startingOffsets", '{"q":[1]}', OFFSETS),
    ("endingOffsets", '{"q":{"0":-2}}', ENDS),
    ("startingTimestamp", "yesterday", TIME),
    ("endingTimestamp", "2026-13-01", TIME),
    ("minPartitions", "0", "a whole number from 1"),
    ("maxOffsetsPerPartition", "1.5", "a whole number from 1"),
    ("failOnDataLoss", "maybe", "true or false"),
    ("includeBody", "1", "true or false"),
    ("retryTimeout", "15", DURATION),
]

ONE_PASSWORD = "give one of the options 'password', 'passwordFile' or 'passwordEnv', not 'password' and 'passwordEnv'"
NO_URL = "option 'url' must be http://host:port or https://host:port, the broker's management port"

NO_URLS = "option 'urls' must be http://host:port or https://host:port, the management ports of a cluster's nodes"

#: Options of a batch read and the error.
WRONG_SOURCE = [
    ({}, "one of the options 'queue', 'queues' or 'queuePattern' is required"),
    (
        QUEUE | {"queues": "a,b"},
        "give one of the options 'queue', 'queues' or 'queuePattern', not 'queue' and 'queues'",
    ),
    (QUEUE | {"startingOffset": "x"}, "there is no option 'startingOffset', did you mean 'startingOffsets'?"),
    (
        QUEUE | {"endingTimestamp": "5", "endingOffsets": "latest"},
        "give one of the options 'endingOffsets' or 'endingTimestamp', not 'endingOffsets' and 'endingTimestamp'",
    ),
    (QUEUE | {"url": "localhost:15672"}, NO_URL),
    (QUEUE | {"url": "http://host:1/path"}, NO_URL),
    (QUEUE | {"url": "http://[host:1"}, NO_URL),
    (QUEUE | {"url": "http://host:port"}, NO_URL),
    (QUEUE | {"urls": "http://a:1,b:2"}, NO_URLS),
    (
        QUEUE | {"url": "http://a:1", "urls": "http://b:2"},
        "give one of the options 'url', 'urls' or 'brokers', not 'url' and 'urls'",
    ),
    (QUEUE | {"urls": "http://a:1,https://b:2"}, "option 'urls' must begin all with http or all with https"),
    (QUEUE | {"tls.ca": "x.pem"}, "option 'tls.ca' needs an 'url' that begins with https"),
    (QUEUE | {"urls": "http://a", "tls.ca": "x.pem"}, "option 'tls.ca' needs an 'urls' that begins with https"),
    (QUEUE | {"password": "a", "passwordEnv": "B"}, ONE_PASSWORD),
    (
        QUEUE | {"passwordEnv": "NOT_SET"},
        "option 'passwordEnv': the environment of the driver's workers has no NOT_SET",
    ),
    (
        QUEUE | {"passwordFile": "/not/there"},
        "option 'passwordFile': /not/there cannot be read: No such file or directory",
    ),
    (QUEUE | {"maxOffsetsPerTrigger": "5"}, "option 'maxOffsetsPerTrigger' is for streaming queries"),
    (QUEUE | {"consumerName": "5"}, "option 'consumerName' is for streaming queries"),
]

NO_END = "is for batch reads: a streaming query has no end"

#: The same for a streaming query.
WRONG_STREAM = [
    (QUEUE | {"endingOffsets": "latest"}, f"option 'endingOffsets' {NO_END}"),
    (QUEUE | {"pushdown": "true"}, f"option 'pushdown' {NO_END}"),
    (QUEUE | {"maxTriggerDelay": "x"}, f"option 'maxTriggerDelay' must be {DURATION}, not 'x'"),
]

BOTH = "options 'deadLetterExchange' and 'unroutable' = deadletter require each other"

#: The same for a batch write.
WRONG_SINK = [
    ({"unroutable": "ignore"}, "option 'unroutable' must be fail, drop or deadletter, not 'ignore'"),
    ({"unroutable": "deadletter"}, BOTH),
    ({"deadLetterExchange": "x"}, BOTH),
    ({"batchId": "1"}, "options 'batchId' and 'producerName' go together in a batch write"),
    ({"producerName": "p"}, "options 'batchId' and 'producerName' go together in a batch write"),
    ({"maxInFlight": "-1"}, "option 'maxInFlight' must be a whole number from 1, not '-1'"),
]


def ids(value: object) -> str:
    return str(value)[:40]


@pytest.mark.parametrize(("option", "value", "allowed"), MUST_BE, ids=ids)
def test_an_invalid_value_is_refused_with_the_permitted_ones(option: str, value: str, allowed: str) -> None:
    others = {} if option.startswith("queue") else QUEUE
    with pytest.raises(OptionError) as refusal:
        source_options(others | {option: value}, is_stream=False)
    assert str(refusal.value) == f"option '{option}' must be {allowed}, not '{value}'"


@pytest.mark.parametrize(("options", "line"), WRONG_SOURCE, ids=ids)
def test_a_batch_read_refuses_invalid_options(options: dict[str, str], line: str) -> None:
    with pytest.raises(OptionError) as refusal:
        source_options(options, is_stream=False)
    assert str(refusal.value) == line


@pytest.mark.parametrize(("options", "line"), WRONG_STREAM, ids=ids)
def test_a_streaming_query_refuses_invalid_options(options: dict[str, str], line: str) -> None:
    with pytest.raises(OptionError) as refusal:
        source_options(options, is_stream=True)
    assert str(refusal.value) == line


@pytest.mark.parametrize(("options", "line"), WRONG_SINK, ids=ids)
def test_a_sink_refuses_invalid_options(options: dict[str, str], line: str) -> None:
    with pytest.raises(OptionError) as refusal:
        sink_options(options, is_stream=False)
    assert str(refusal.value) == line


def test_a_streaming_sink_refuses_a_batch_id() -> None:
    with pytest.raises(OptionError, match="'batchId' is for batch writes"):
        sink_options({"batchId": "1"}, is_stream=True)


def test_an_unknown_option_without_a_similar_one_lists_all() -> None:
    with pytest.raises(OptionError) as refusal:
        source_options(QUEUE | {"zzz": "1"}, is_stream=False)
    assert all(f"'{name}'" in str(refusal.value) for name in SOURCE)


def test_option_names_are_case_insensitive() -> None:
    """Spark passes them in lower case."""
    options = source_options({"QUEUE": "q", "minpartitions": "3"}, is_stream=False)
    assert (options.selection, options.min_partitions) == (QueueSelection(("q",)), 3)


def test_options_added_by_spark_are_ignored() -> None:
    added = {"checkpointLocation": "/x", "queryName": "q", "path": "p"}
    assert sink_options(added, is_stream=True) == sink_options({}, is_stream=True)


def test_the_defaults() -> None:
    batch, stream = source_options(QUEUE, is_stream=False), source_options(QUEUE, is_stream=True)
    assert (batch.start, batch.end, stream.start) == (EARLIEST, LATEST, LATEST)
    assert (batch.fails_on_loss, batch.pushes_filters, stream.limits) == (True, False, ReadLimits())
    assert stream.consumer == "spark orders"
    address = batch.brokers[""]
    assert (address.nodes, address.vhost) == ((NodeUrl("http", "127.0.0.1", 15672),), "/")
    assert (address.username, address.password, address.retry_s) == ("guest", "guest", 60)


def test_several_nodes_are_parsed() -> None:
    address = source_options(QUEUE | {"urls": "https://a, https://b:1,https://[::1]:2"}, is_stream=True).brokers[""]
    assert [str(node) for node in address.nodes] == ["https://a:15671", "https://b:1", "https://[::1]:2"]


def test_tasks_begin_at_different_nodes() -> None:
    address = source_options(QUEUE | {"urls": "http://a:1,http://b:2,http://c:3"}, is_stream=True).brokers[""]
    orders = ["".join(node.host for node in address.beginning_at(number).nodes) for number in range(4)]
    assert orders == ["abc", "bca", "cab", "abc"]


@pytest.mark.parametrize("value", ["a,b", " a , b ", '["a", "b"]', "a,b,a"])
def test_several_queues_are_parsed(value: str) -> None:
    assert source_options({"queues": value}, is_stream=True).selection == QueueSelection(("a", "b"))


def test_a_name_with_a_comma_is_written_in_json() -> None:
    assert source_options({"queues": '["a,b"]'}, is_stream=True).selection == QueueSelection(("a,b",))


def test_offsets_are_parsed_from_json() -> None:
    start = source_options(QUEUE | {"startingOffsets": '{"orders":{"0":23,"1":-2}}'}, is_stream=True).start
    assert start.offset_by_key == {Key("orders", "0"): PartitionOffset(23), Key("orders", "1"): PartitionOffset(-2)}


def test_an_offset_from_a_checkpoint_is_accepted() -> None:
    offset = '{"orders":{"0":{"incarnation":"5-1","from":2,"next":9}}}'
    start = source_options(QUEUE | {"startingOffsets": offset}, is_stream=True).start
    assert start.offset_by_key == {Key("orders", "0"): PartitionOffset(9, 2, "5-1")}


# ---- Passwords ------------------------------------------------------------------------------------------------------


def test_a_password_is_read_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s3cret \n")
    options = source_options(QUEUE | {"passwordFile": str(tmp_path / "secret")}, is_stream=True)
    assert options.brokers[""].password == "s3cret "


def test_a_password_is_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROKER_PASSWORD", "s3cret")
    assert source_options(QUEUE | {"passwordEnv": "BROKER_PASSWORD"}, is_stream=True).brokers[""].password == "s3cret"


def test_a_password_is_never_shown() -> None:
    assert "s3cret" not in repr(source_options(QUEUE | {"password": "s3cret"}, is_stream=True))
    assert "s3cret" not in repr(sink_options({"password": "s3cret"}, is_stream=True))


# ---- Times ----------------------------------------------------------------------------------------------------------

MOMENTS = [
    ("0", 0),
    ("1700000000123", 1_700_000_000_123),
    ("2023-11-14T22:13:20Z", 1_700_000_000_000),
    ("2023-11-14T22:13:20", 1_700_000_000_000),
    ("2023-11-14T23:13:20+01:00", 1_700_000_000_000),
    ("2023-11-14T22:13:20.0001Z", 1_700_000_000_001),
    ("2023-11-14", 1_699_920_000_000),
]


@pytest.mark.parametrize(("written", "expected"), MOMENTS)
def test_times_are_parsed(written: str, expected: int) -> None:
    assert moment_ms(written) == expected
    options = source_options(QUEUE | {"startingTimestamp": written, "endingTimestamp": written}, is_stream=False)
    assert options.start == options.end == exact_time(expected)


@given(moment=st.datetimes(timezones=st.timezones()))
def test_a_time_is_rounded_up_to_milliseconds(moment: datetime) -> None:
    behind = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ceil_ms(moment)) - moment
    assert timedelta(0) <= behind < timedelta(milliseconds=1)


def test_every_option_is_documented() -> None:
    page = (Path(__file__).parents[3] / "docs" / "spark.md").read_text()
    missing = [name for name in {**SOURCE, **SINK} if f"`{name}`" not in page]
    assert not missing
