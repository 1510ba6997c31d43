"""The source and the sink with the oldest supported Spark, and with the newest one.

``make test-oldest`` has the oldest one; the tests of the pipeline run the same with the newest.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from gateway_spark.jobs import rollup
from gateway_spark.jobs.running import main
from gateway_spark.reports.page import ResultTables
from gateway_spark.spark_versions import HAS_FILTERS, HAS_LIMITS
from tests.pipeline.stream_broker import StreamBroker, stream_broker

COUNT = 1500


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StreamBroker]:
    """A gateway with the stream ``numbers``, some segments of it sealed."""
    with stream_broker(tmp_path_factory.mktemp("gateway")) as broker:
        broker.declare_stream("numbers")
        broker.publish("numbers", bodies(0, COUNT), at_once=100)
        yield broker


def bodies(begin: int, end: int) -> Iterator[bytes]:
    return (b"%0100d" % number for number in range(begin, end))


def table(spark: SparkSession, broker: StreamBroker, queue: str = "numbers", **options: str) -> DataFrame:
    return spark.read.format("gateway").options(**broker.options(queue=queue, **options)).load()


def numbers(frame: DataFrame) -> list[int]:
    return sorted(int(bytes(row.body)) for row in frame.select("body").collect())


class Query:
    """A query from one stream to another, restarted for each run."""

    def __init__(self, spark: SparkSession, broker: StreamBroker, source: str, target: str, directory: Path) -> None:
        self._spark = spark
        self._broker = broker
        self._source = source
        self._target = target
        self._checkpoint = directory / "checkpoint"

    def run(self, **options: str) -> None:
        """Publish the messages that the source has now."""
        given = self._broker.options(queue=self._source, **({"startingOffsets": "earliest"} | options))
        rows = self._spark.readStream.format("gateway").options(**given).load()
        sink = self._broker.options(exchange="", routingKey=self._target, producerName=self._target)
        writer = rows.select("body").writeStream.format("gateway").options(**sink)
        writer = writer.option("checkpointLocation", str(self._checkpoint))
        writer.trigger(availableNow=True).start().awaitTermination()


def test_a_batch_has_all_messages(spark: SparkSession, broker: StreamBroker) -> None:
    rows = table(spark, broker, minPartitions="3").select("offset", "headers_json", "timestamp", "body").collect()
    assert sorted((row.offset, bytes(row.body)) for row in rows) == list(enumerate(bodies(0, COUNT)))
    few = spark.read.format("gateway").options(**broker.options(queue="numbers")).schema("body binary, offset bigint")
    assert few.load().where("offset < 2").count() == 2


def test_each_message_is_read_and_published_once(spark: SparkSession, broker: StreamBroker, tmp_path: Path) -> None:
    """Also if the stream is declared again: the query fails, or reads the new one from its beginning."""
    for name in ("growing", "copied"):
        broker.declare_stream(name)
    query = Query(spark, broker, "growing", "copied", tmp_path)
    for begin, end in ((0, 30), (30, 70)):
        broker.publish("growing", bodies(begin, end))
        query.run()
        assert numbers(table(spark, broker, "copied")) == list(range(end))
    with broker.channel() as channel:
        channel.queue_delete("growing")
    broker.declare_stream("growing")
    broker.publish("growing", bodies(70, 150))
    with pytest.raises(StreamingQueryException, match="'growing', partition 0 was deleted and declared again"):
        query.run()
    query.run(failOnDataLoss="false")
    assert numbers(table(spark, broker, "copied")) == list(range(150))


def test_a_batch_is_published_once(spark: SparkSession, broker: StreamBroker) -> None:
    broker.declare_stream("nightly")
    rows = table(spark, broker).where("offset < 50").selectExpr("body", "'nightly' AS routing_key", "headers_json")
    for _ in range(2):
        sink = broker.options(exchange="", producerName="nightly", batchId="1")
        rows.write.format("gateway").mode("append").options(**sink).save()
    assert numbers(table(spark, broker, "nightly")) == list(range(50))


def test_a_job_runs(spark: SparkSession, broker: StreamBroker, tmp_path: Path) -> None:
    broker.declare_stream("readings")
    broker.publish("readings", (b'{"t": %d, "at": "2026-01-01T%02d:00:00Z"}' % (n, n % 24) for n in range(48)))
    source = ["--url", broker.options()["url"], "--queue", "readings", "--field", "$.t", "--time", "$.at"]
    places = ["--out", str(tmp_path / "out"), "--checkpoint", str(tmp_path / "checkpoint")]
    assert main(rollup.JOB, [*source, *places, "--window", "6h", "--watermark", "1d"]) == 0
    windows = ResultTables(tmp_path / "out")["windows"]
    assert sorted(windows["messages"]) == [12] * 4
    assert sorted(windows["max"]) == [29, 35, 41, 47]


# Abilities of some versions only


def test_filters_narrow_a_read_or_are_refused(spark: SparkSession, broker: StreamBroker) -> None:
    spark.conf.set("spark.sql.python.filterPushdown.enabled", str(HAS_FILTERS).lower())
    if HAS_FILTERS:
        assert numbers(table(spark, broker, pushdown="true").where("offset >= 10 AND offset < 20")) == [*range(10, 20)]
    else:
        with pytest.raises(PySparkException, match=r"option 'pushdown' needs Spark 4\.1 or newer, this is 4\.0"):
            table(spark, broker, pushdown="true").count()


def test_limits_apply_or_are_refused(spark: SparkSession, broker: StreamBroker, tmp_path: Path) -> None:
    broker.declare_stream("limited")
    query = Query(spark, broker, "numbers", "limited", tmp_path)
    if HAS_LIMITS:
        query.run(maxOffsetsPerTrigger="1000")
        assert len(list((tmp_path / "checkpoint/commits").glob("[0-9]*"))) == 2
        assert numbers(table(spark, broker, "limited")) == list(range(COUNT))
    else:
        with pytest.raises(StreamingQueryException, match=r"'maxTriggerDelay' need Spark 4\.2 or newer, this is 4\."):
            query.run(maxOffsetsPerTrigger="1000")


def test_spark_refuses_real_time_mode_for_sources_in_python(
    spark: SparkSession, broker: StreamBroker, tmp_path: Path
) -> None:
    rows = spark.readStream.format("gateway").options(**broker.options(queue="numbers")).load()
    writer = rows.writeStream.format("console").outputMode("update").option("checkpointLocation", str(tmp_path))
    if HAS_LIMITS:
        with pytest.raises(
            StreamingQueryException, match=r"STREAMING_REAL_TIME_MODE\.INPUT_STREAM_NOT_SUPPORTED.*Python"
        ):
            writer.trigger(realTime="5 seconds").start().awaitTermination()
    else:
        with pytest.raises(TypeError, match="realTime"):
            writer.trigger(realTime="5 seconds")
