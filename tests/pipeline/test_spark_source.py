"""Spark reads streams of a real gateway: all columns, bounds in time, continued queries, and errors."""

import json
from base64 import b64encode
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr, lit

from gateway.kernel.messages.values import loads
from gateway_spark.offsets import decode
from tests.interop.mqtt_clients.mqtt_server import MqttServer
from tests.interop.mqtt_clients.paho_client import V5, Paho
from tests.interop.stomp_clients.stomp_client import Stomp
from tests.interop.stomp_clients.stomp_server import StompServer
from tests.pipeline.stream_broker import StreamBroker, stream_broker
from tests.running import Gateway

COUNT = 2500


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StreamBroker]:
    """A gateway with the stream ``numbers``: messages 0 to 2499, some segments of them sealed."""
    with stream_broker(tmp_path_factory.mktemp("gateway")) as broker:
        broker.declare_stream("numbers")
        broker.publish("numbers", (b"%0100d" % number for number in range(COUNT)), at_once=100)
        yield broker


def table(spark: SparkSession, broker: StreamBroker, queue: str = "numbers", **options: str) -> DataFrame:
    return spark.read.format("gateway").options(**broker.options(queue=queue, **options)).load()


def offsets(frame: DataFrame) -> list[int]:
    return sorted(row.offset for row in frame.select("offset").collect())


# ---- Every column ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def talk(broker: StreamBroker) -> StreamBroker:
    """The gateway after clients of all protocols published to the stream ``talk``."""
    broker.declare_stream("talk")
    with broker.channel() as channel:
        _publish_by_amqp(channel)
    _publish_by_mqtt(broker.gateway)
    _publish_by_stomp(broker.gateway)
    return broker


NESTED = {
    "text": "grüße",
    "raw": b"\xff\x00",
    "words": b"plain",
    "n": -5,
    "long": 2**40,
    "yes": True,
    "none": None,
    "price": Decimal("12.50"),
    "when": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
    "list": [1, "two", {"three": [b"\xfe"]}],
    "table": {"deep": {"deeper": [None]}},
}
SENT = 1_700_000_000


def _publish_by_amqp(channel: BlockingChannel) -> None:
    dead_letters = {"x-message-ttl": 0, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "talk"}
    channel.queue_declare("short", durable=True, arguments=dead_letters)
    everything = pika.BasicProperties(
        content_type="application/json",
        content_encoding="gzip",
        headers=NESTED,
        delivery_mode=2,
        priority=7,
        correlation_id="c",
        reply_to="r",
        expiration="60000",
        message_id="m",
        timestamp=SENT,
        type="t",
        user_id="guest",
        app_id="a",
    )
    channel.basic_publish("", "talk", b"\x00\xffall", everything)
    channel.basic_publish("", "talk", b"")
    channel.basic_publish("", "short", b"dead", pika.BasicProperties(headers={"kept": "x"}))
    channel.queue_bind("talk", "amq.topic", "house.#")
    channel.tx_select()
    channel.tx_commit()


def _publish_by_mqtt(gateway: Gateway) -> None:
    client = Paho(MqttServer.of(gateway), V5, "sensor")
    client.connect()
    said = {"ContentType": "text/plain", "CorrelationData": b"cd", "ResponseTopic": "back/here"}
    twice = [("unit", "C"), ("unit", "K"), ("odd name", "ü")]
    client.publish("house/attic", b"warm", qos=1, retain=True, UserProperty=twice, **said)
    client.close()


def _publish_by_stomp(gateway: Gateway) -> None:
    client = Stomp(StompServer.of(gateway)).connect()
    client.send("/amq/queue/talk", "hello", colour="blue", priority="3", persistent="true")
    client.disconnect()


#: The columns of a message without properties.
NAMES = (
    "user_id", "client_id", "message_id", "correlation_id", "reply_to", "content_type", "content_encoding", "type",
    "app_id", "priority", "delivery_mode", "expiration", "sent_ms", "deaths", "mqtt",
)  # fmt: skip
SILENT: dict[str, Any] = dict.fromkeys(NAMES)
SILENT |= {"vhost": "/", "queue": "talk", "partition": 0, "redelivered": False, "exchange": "", "headers": {}}

#: The columns of each message, in order; of the dead letter's headers only the publisher's.
TALK: list[dict[str, Any]] = [
    {
        "protocol": "amqp-0-9-1",
        "routing_key": "talk",
        "user_id": "guest",
        "message_id": "m",
        "correlation_id": "c",
        "reply_to": "r",
        "content_type": "application/json",
        "content_encoding": "gzip",
        "type": "t",
        "app_id": "a",
        "priority": 7,
        "delivery_mode": 2,
        "expiration": "60000",
        "sent_ms": SENT * 1000,
        "headers": NESTED,
        "body": b"\x00\xffall",
    },
    {"protocol": "amqp-0-9-1", "routing_key": "talk", "body": b""},
    {
        "protocol": "amqp-0-9-1",
        "routing_key": "talk",
        "headers": {"kept": "x"},
        "deaths": [("short", "expired", 1, "", ["short"])],
        "body": b"dead",
    },
    {
        "protocol": "mqtt",
        "exchange": "amq.topic",
        "routing_key": "house.attic",
        "client_id": "sensor",
        "correlation_id": "cd",
        "content_type": "text/plain",
        "delivery_mode": 2,
        "headers": {"odd name": "ü", "unit": "C", "x-reply-to-topic": "back.here"},
        "mqtt": ("house/attic", 1, True),
        "body": b"warm",
    },
    {
        "protocol": "stomp",
        "routing_key": "talk",
        "priority": 3,
        "delivery_mode": 2,
        "headers": {"colour": "blue"},
        "body": b"hello",
    },
]

#: Headers as text for people and SQL.
AS_TEXT = {
    "text": "grüße",
    "raw": "ff00",
    "words": "plain",
    "n": "-5",
    "long": "1099511627776",
    "yes": "true",
    "none": None,
    "price": "12.5",
    "when": "2026-01-02T03:04:05+00:00",
    "list": '[1,"two",{"three":[{"$":["bytes","/g=="]}]}]',
    "table": '{"deep":{"deeper":[null]}}',
}


def test_every_column_of_every_protocol(spark: SparkSession, talk: StreamBroker) -> None:
    frame = table(spark, talk, "talk").withColumn("sent_ms", expr("unix_millis(message_timestamp)"))
    rows = [row.asDict() for row in frame.orderBy("offset").collect()]
    assert [row["offset"] for row in rows] == [0, 1, 2, 3, 4]
    for row, message in zip(rows, TALK, strict=True):
        assert _said(row) == SILENT | message


def _said(row: dict[str, Any]) -> dict[str, Any]:
    """Return the columns of a row without position and times, and with its headers as they were published."""
    headers = loads(row["headers_json"].encode())
    assert row["headers"].keys() == headers.keys()
    deaths = row["x_death"] and [
        tuple(death[name] for name in ("queue", "reason", "count", "exchange", "routing_keys"))
        for death in row["x_death"]
    ]
    said = {name: row[name] for name in [*SILENT, "protocol", "routing_key", "body"] if name in row}
    dead = {name for name in headers if name == "x-death" or name.startswith(("x-first-death", "x-last-death"))}
    return said | {
        "headers": {name: value for name, value in headers.items() if name not in dead},
        "deaths": deaths,
        "mqtt": row["mqtt"] and tuple(row["mqtt"]),
        "body": bytes(row["body"]),
    }


def test_headers_are_readable_as_text(spark: SparkSession, talk: StreamBroker) -> None:
    (row,) = table(spark, talk, "talk", endingOffsets='{"talk":{"0":1}}').select("headers").collect()
    assert row.headers == AS_TEXT


def test_columns_can_be_omitted(spark: SparkSession, talk: StreamBroker) -> None:
    frame = table(spark, talk, "talk", includeBody="false", includeHeaders="false")
    assert not {"body", "headers", "headers_json", "x_death"} & set(frame.columns)
    assert frame.count() == 5


def test_a_read_message_can_be_published_again(spark: SparkSession, talk: StreamBroker) -> None:
    """With the sink, and with all types of headers."""
    talk.declare_stream("echo")
    columns = ["body", "headers_json", "message_id", "priority", "message_timestamp", "delivery_mode"]
    frame = table(spark, talk, "talk").select(*columns, lit("echo").alias("routing_key"))
    frame.write.format("gateway").mode("append").options(**talk.options(exchange="")).save()
    said = [_comparable(row, columns) for row in table(spark, talk, "talk").select(columns).collect()]
    echoed = [_comparable(row, columns) for row in table(spark, talk, "echo").select(columns).collect()]
    for each in said:
        each["delivery_mode"] = each["delivery_mode"] or 2  # by default
    assert echoed == said


def _comparable(row: Any, columns: list[str]) -> dict[str, Any]:
    return {name: row[name] for name in columns} | {"headers_json": loads(row["headers_json"].encode())}


# ---- Positions and times
# --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"minPartitions": "7"}], ids=str)
def test_every_message_is_read_once(spark: SparkSession, broker: StreamBroker, options: dict[str, str]) -> None:
    rows = table(spark, broker, **options).select("offset", "body").collect()
    assert sorted((row.offset, bytes(row.body)) for row in rows) == [(n, b"%0100d" % n) for n in range(COUNT)]


def test_bounds_in_time_are_exact(spark: SparkSession, broker: StreamBroker) -> None:
    frame = table(spark, broker).selectExpr("offset", "unix_millis(timestamp) AS ms")
    times = {row.offset: row.ms for row in frame.collect()}
    since, until = times[700], times[1900]
    found = offsets(table(spark, broker, startingTimestamp=str(since), endingTimestamp=str(until)))
    assert found == [offset for offset, ms in sorted(times.items()) if since <= ms < until]
    assert 0 < len(found) < COUNT


def test_pushed_filters_do_not_change_the_result(spark: SparkSession, broker: StreamBroker) -> None:
    (row,) = table(spark, broker).where("offset = 1200").selectExpr("timestamp").collect()
    moment = row.timestamp.isoformat()
    conditions = [
        f"timestamp = timestamp'{moment}' AND partition = 0 AND queue LIKE 'num%'",
        "(upper(queue) = 'NUMBERS' OR offset = 3) AND offset >= 300 AND offset < 320",
    ]
    for condition in conditions:
        plain, pushed = (offsets(table(spark, broker, pushdown=way).where(condition)) for way in ("false", "true"))
        assert pushed == plain, condition
        assert 0 < len(plain) < COUNT


def test_a_super_stream_is_one_queue_of_several_partitions(spark: SparkSession, broker: StreamBroker) -> None:
    for number in range(3):
        broker.declare_stream(f"sales-{number}")
    with broker.channel() as channel:
        channel.exchange_declare("sales", "direct", durable=True, arguments={"x-super-stream": True})
        for number in range(3):
            order = {"x-stream-partition-order": number}
            channel.queue_bind(f"sales-{number}", "sales", str(number), arguments=order)
        channel.tx_select()
        for number in range(30):
            channel.basic_publish("sales", str(number % 3), b"%d" % number)
        channel.tx_commit()
    rows = table(spark, broker, "sales").collect()
    assert {(row.queue, row.partition, int(row.body)) for row in rows} == {("sales", n % 3, n) for n in range(30)}


# ---- Queries --------------------------------------------------------------------------------------------------------


class Query:
    """A query from a stream to Parquet, restarted for each run, which ends when it has read all existing messages."""

    def __init__(self, spark: SparkSession, broker: StreamBroker, directory: Path, **options: str) -> None:
        self._spark = spark
        self._broker = broker
        self._options = options
        self._checkpoint = directory / "checkpoint"
        self.out = directory / "out"

    def run(self, **options: str) -> list[dict[str, Any]]:
        """Read the existing messages; return Spark's progress of each batch."""
        given = self._broker.options(**(self._options | options))
        query = (
            self._spark.readStream.format("gateway")
            .options(**given)
            .load()
            .writeStream.format("parquet")
            .option("path", str(self.out))
            .option("checkpointLocation", str(self._checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return [json.loads(progress.json) for progress in query.recentProgress]

    def offsets(self) -> list[int]:
        """Return the offsets written by all runs."""
        return offsets(self._spark.read.parquet(str(self.out)))


def test_a_restarted_query_continues_at_its_checkpoint(
    spark: SparkSession, broker: StreamBroker, tmp_path: Path
) -> None:
    broker.declare_stream("growing")
    broker.publish("growing", [b"x"] * 250)
    query = Query(spark, broker, tmp_path, queue="growing", startingOffsets="earliest", consumerName="test")
    progress = query.run(maxOffsetsPerTrigger="100")
    assert [each["numInputRows"] for each in progress if each["numInputRows"]] == [100, 100, 50]
    broker.publish("growing", [b"y"] * 70)
    last = query.run(startingOffsets="latest")[-1]["sources"][0]
    assert [entry.next for entry in decode(last["endOffset"]).values()] == [320]
    assert query.offsets() == list(range(320))


@pytest.mark.parametrize(("small_batch", "tasks"), [("0", 3), ("1000", 1)])
def test_a_small_batch_has_one_task(
    spark: SparkSession, broker: StreamBroker, tmp_path: Path, small_batch: str, tasks: int
) -> None:
    """Its rows come with the plan. The columns may have another order, and be known not to be null."""
    queues = [f"small.{small_batch}.{number}" for number in range(3)]
    for queue in queues:
        broker.declare_stream(queue)
        broker.publish(queue, [queue.encode()] * 2)
    given = broker.options(queues=",".join(queues), startingOffsets="earliest", smallBatch=small_batch)
    frame = spark.readStream.format("gateway").schema("body binary, offset bigint not null").options(**given).load()
    seen: list[tuple[int, list[tuple[int, bytes]]]] = []

    def see(batch: DataFrame, _number: int) -> None:
        seen.append((batch.rdd.getNumPartitions(), [(row.offset, bytes(row.body)) for row in batch.collect()]))

    writer = frame.writeStream.foreachBatch(see).option("checkpointLocation", str(tmp_path))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    ((count, rows),) = seen
    assert (count, sorted(rows)) == (tasks, sorted((offset, each.encode()) for each in queues for offset in range(2)))
    (source,) = json.loads(query.recentProgress[0].json)["sources"]
    assert source["latestOffset"].keys() == set(queues), "Spark still asks for it"


def test_a_table_is_read_as_a_batch_and_as_a_stream(spark: SparkSession, broker: StreamBroker, tmp_path: Path) -> None:
    broker.declare_stream("tabled")
    broker.publish("tabled", [b"a", b"b", b"c"])
    url = broker.options()["url"]
    spark.sql(f"CREATE TABLE tabled USING gateway OPTIONS (queue 'tabled', url '{url}')")
    try:
        found = spark.sql("SELECT offset, string(body) FROM tabled WHERE offset > 0 ORDER BY offset")
        assert [tuple(row) for row in found.collect()] == [(1, "b"), (2, "c")]
        rows = spark.readStream.option("startingOffsets", "earliest").table("tabled")
        query = rows.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
        query.trigger(availableNow=True).start(str(tmp_path / "out")).awaitTermination()
        assert offsets(spark.read.parquet(str(tmp_path / "out"))) == [0, 1, 2]
    finally:
        spark.sql("DROP TABLE tabled")


MISTAKES = [
    ({"queu": "x"}, "OptionError: there is no option 'queu', did you mean 'queue'?"),
    ({"queue": "absent"}, "OptionError: queues 'absent' cannot be read: no queue 'absent' in vhost '/'"),
]


@pytest.mark.parametrize(("options", "line"), MISTAKES)
def test_a_mistake_is_reported_in_one_line(
    spark: SparkSession, broker: StreamBroker, options: dict[str, str], line: str
) -> None:
    with pytest.raises(PySparkException) as raised:
        spark.read.format("gateway").options(**broker.options(**options)).load().count()
    first, *_ = str(raised.value).splitlines()
    assert first.endswith(line)
    assert "Traceback" not in str(raised.value)


def test_a_recreated_stream_fails_a_query_or_is_read_from_its_beginning(
    spark: SparkSession, broker: StreamBroker, tmp_path: Path
) -> None:
    """Also if its successor is longer than the part that was read: the offsets alone would not tell."""

    def recreated(*bodies: bytes) -> None:
        with broker.channel() as channel:
            channel.queue_delete("brief")
        broker.declare_stream("brief")
        broker.publish("brief", bodies)

    query = Query(spark, broker, tmp_path, queue="brief", startingOffsets="earliest")
    recreated(b"a", b"b")
    query.run()
    recreated(b"c", b"d", b"e")
    with pytest.raises(StreamingQueryException, match="'brief', partition 0 was deleted and declared again"):
        query.run()
    query.run(failOnDataLoss="false")
    assert query.offsets() == [0, 0, 1, 1, 2]


def test_the_broker_shows_the_progress_of_a_query(spark: SparkSession, broker: StreamBroker, tmp_path: Path) -> None:
    query = Query(spark, broker, tmp_path, queue="numbers", startingOffsets="earliest", consumerName="shown")
    query.run()
    request = Request(f"{broker.options()['url']}/api/pipeline/%2F/progress")
    request.add_header("Authorization", "Basic " + b64encode(b"guest:guest").decode())
    with urlopen(request) as answer:
        (shown,) = [each for each in json.load(answer) if each["consumer"] == "shown"]
    assert shown["partitions"] == [{"queue": "numbers", "partition": 0, "offset": COUNT, "lag": 0}]


@pytest.mark.parametrize("fails", ["true", "false"])
def test_truncation_beyond_a_checkpoint_is_an_error(
    spark: SparkSession, broker: StreamBroker, tmp_path: Path, fails: str
) -> None:
    name = f"kept-shortly-{fails}"
    broker.declare_stream(name, max_length_bytes=200_000, stream_max_segment_size_bytes=65536)
    broker.publish(name, [b"x" * 100] * 500)
    query = Query(spark, broker, tmp_path, queue=name, startingOffsets="earliest", failOnDataLoss=fails)
    query.run()
    broker.publish(name, [b"y" * 100] * 5000)
    if fails == "true":
        with pytest.raises(PySparkException, match=f"messages 500 to [0-9]+ of queue '{name}', partition 0 are gone"):
            query.run()
        assert query.offsets() == list(range(500))
    else:
        query.run()
        found = query.offsets()
        gap = found[500]
        assert gap > 500
        assert found == [*range(500), *range(gap, 5500)]


# ---- Errors
# ---------------------------------------------------------------------------------------------------------


def test_an_error_is_reported_in_one_line(spark: SparkSession, broker: StreamBroker) -> None:
    line = "option 'minPartitions' must be a whole number from 1, not 'x'"
    with pytest.raises(PySparkException, match=line):
        table(spark, broker, minPartitions="x").count()


def test_a_wrong_password_is_reported(spark: SparkSession, broker: StreamBroker) -> None:
    with pytest.raises(PySparkException, match=r"refuses user 'guest' in virtual host '/' \(401\): Login failed"):
        table(spark, broker, password="wrong").count()
