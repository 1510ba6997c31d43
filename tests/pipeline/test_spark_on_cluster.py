"""Spark reads from all nodes of a cluster: each message once, although the leader is killed meanwhile."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.clusters.gateway_cluster import GatewayCluster, running_cluster
from tests.pipeline.broker_api import url_of
from tests.pipeline.stream_broker import StreamBroker
from tests.waiting import wait_until

STREAMS = ("north", "south", "east")

#: Messages of each stream: before the leader is killed, and after it.
FIRST, MORE = 2_000, 500

#: The takeover, and the batches after it, on a busy machine.
PATIENCE_S = 180.0

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def cluster() -> Iterator[GatewayCluster]:
    """Three nodes."""
    with running_cluster() as found:
        yield found


def bodies(begin: int, end: int) -> Iterator[bytes]:
    return (b"%0100d" % number for number in range(begin, end))


def test_a_query_reads_each_message_once_although_the_leader_is_killed(
    spark: SparkSession, cluster: GatewayCluster, tmp_path: Path, checkpoint: str
) -> None:
    broker = StreamBroker(cluster.leader())
    for stream in STREAMS:
        broker.declare_stream(stream)
        broker.publish(stream, bodies(0, FIRST))
    options = {
        "urls": ",".join(url_of(node) for node in cluster.nodes),
        "queues": ",".join(STREAMS),
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": "600",
    }
    target = tmp_path / "rows"
    rows = spark.readStream.format("gateway").options(**options).load().select("queue", "offset", "body")
    query = rows.writeStream.format("parquet").option("checkpointLocation", checkpoint).start(str(target))
    try:
        wait_until(lambda: _batches(checkpoint) >= 2, lambda: str(query.exception()), timeout_s=PATIENCE_S)
        killed = cluster.leader()
        killed.kill()
        survivor = StreamBroker(cluster.leader(killed.led_epoch))
        for stream in STREAMS:
            survivor.publish(stream, bodies(FIRST, FIRST + MORE))
        wanted = len(STREAMS) * (FIRST + MORE)
        wait_until(
            lambda: query.exception() or spark.read.parquet(str(target)).count() >= wanted,
            lambda: f"{query.status} {query.lastProgress}",
            timeout_s=PATIENCE_S,
        )
        assert query.exception() is None
    finally:
        query.stop()
    found = Counter((row.queue, row.offset, int(row.body)) for row in spark.read.parquet(str(target)).collect())
    expected = Counter((stream, number, number) for stream in STREAMS for number in range(FIRST + MORE))
    assert found == expected


def _batches(checkpoint: str) -> int:
    return sum(name.name.isdigit() for name in Path(checkpoint).glob("commits/*"))
