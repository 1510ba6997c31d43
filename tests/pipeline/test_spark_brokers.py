"""Spark reads the streams of one name of two brokers, each message once, although one of them is killed meanwhile."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.pipeline.stream_broker import StreamBroker, stream_broker
from tests.ports import free_port
from tests.waiting import wait_until

STREAM = "readings"

#: Messages of each broker: before one of them is killed, and after it.
FIRST, MORE = {"oslo": 2_000, "rome": 500}, 1_000

PATIENCE_S = 180.0

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

Brokers = dict[str, StreamBroker]


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Brokers]:
    """Two, with fixed ports across restarts."""
    with ExitStack() as stack:
        found = {}
        for name, count in FIRST.items():
            directory = tmp_path_factory.mktemp(name)
            broker = stack.enter_context(stream_broker(directory, f"management.port={free_port()}"))
            broker.declare_stream(STREAM)
            broker.publish(STREAM, bodies(name, 0, count))
            found[name] = broker
        yield found


def bodies(name: str, begin: int, end: int) -> Iterator[bytes]:
    return (f"{name} {number:050}".encode() for number in range(begin, end))


def options(brokers: Brokers) -> dict[str, str]:
    return {"brokers": json.dumps({name: each.options()["url"] for name, each in brokers.items()}), "queue": STREAM}


def found(rows: DataFrame) -> list[tuple[str, int, bytes]]:
    return sorted((row.broker, row.offset, bytes(row.body)) for row in rows.collect())


def test_a_query_reads_each_message_of_each_broker_once(
    spark: SparkSession, brokers: Brokers, tmp_path: Path, checkpoint: str
) -> None:
    target = str(tmp_path / "rows")
    given = options(brokers) | {"startingOffsets": "earliest", "maxOffsetsPerTrigger": "300"}
    rows = spark.readStream.format("gateway").options(**given).load()
    query = rows.writeStream.format("parquet").option("checkpointLocation", checkpoint).start(target)
    batches = Path(checkpoint) / "commits"
    try:
        wait_until(
            lambda: query.exception() or sum(1 for _ in batches.glob("[0-9]*")) >= 2,
            lambda: str(query.status),
            timeout_s=PATIENCE_S,
        )
        brokers["rome"].gateway.restart()
        for name, broker in brokers.items():
            broker.publish(STREAM, bodies(name, FIRST[name], FIRST[name] + MORE))
        query.processAllAvailable()
    finally:
        query.stop()
    expected = [
        (name, number, body)
        for name, first in FIRST.items()
        for number, body in enumerate(bodies(name, 0, first + MORE))
    ]
    assert found(spark.read.parquet(target)) == expected
    assert found(spark.read.format("gateway").options(**options(brokers)).load()) == expected


def test_a_filter_on_the_broker_is_that_of_spark(spark: SparkSession, brokers: Brokers) -> None:
    rows = spark.read.format("gateway").options(pushdown="true", **options(brokers)).load()
    counts = {row.broker: row["count"] for row in rows.groupBy("broker").count().collect()}
    assert rows.where("broker = 'rome' and offset < 10").count() == 10
    assert set(counts) == {"oslo", "rome"}
