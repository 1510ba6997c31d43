"""Spark reads from the copies of all nodes of a cluster: each message once, although nodes are killed meanwhile."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from tests.clusters.gateway_cluster import ClusterNode, GatewayCluster, running_cluster
from tests.clusters.reads import answered_reads
from tests.pipeline.broker_api import url_of
from tests.pipeline.stream_broker import StreamBroker
from tests.waiting import wait_until

STREAMS = ("north", "south", "east")

#: Messages of each stream: before the leader is killed, after it, and after a follower is killed.
FIRST, MORE, LAST = 2_000, 500, 500
END = FIRST + MORE + LAST

#: Small, so that the copies have sealed segments too.
SEGMENT = 64 * 1024

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


def test_a_query_reads_each_message_once_although_nodes_are_killed(
    spark: SparkSession, cluster: GatewayCluster, tmp_path: Path, checkpoint: str
) -> None:
    broker = StreamBroker(cluster.leader())
    for stream in STREAMS:
        broker.declare_stream(stream, stream_max_segment_size_bytes=SEGMENT)
        broker.publish(stream, bodies(0, FIRST))
    options = {
        "urls": ",".join(url_of(node) for node in cluster.nodes),
        "queues": ",".join(STREAMS),
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": "600",
    }
    target = tmp_path / "rows"
    rows = spark.readStream.format("gateway").options(**options).load()
    query = rows.writeStream.format("parquet").option("checkpointLocation", checkpoint).start(str(target))

    def wait_for_rows(wanted: int) -> None:
        wait_until(
            lambda: query.exception() or spark.read.parquet(str(target)).count() >= wanted,
            lambda: f"{query.status} {query.lastProgress}",
            timeout_s=PATIENCE_S,
        )
        assert query.exception() is None

    try:
        wait_until(lambda: _batches(checkpoint) >= 2, lambda: str(query.exception()), timeout_s=PATIENCE_S)
        killed = cluster.leader()
        killed.kill()
        leader = cluster.leader(killed.led_epoch)
        _publish(leader, FIRST, FIRST + MORE)
        wait_for_rows(len(STREAMS) * (FIRST + MORE))
        killed.start()
        follower = next(node for node in cluster.nodes if node not in (leader, killed))
        assert answered_reads(leader)[follower.name] > 0
        _publish(leader, FIRST + MORE, END)
        follower.kill()
        wait_for_rows(len(STREAMS) * END)
        follower.start()
    finally:
        query.stop()
    found = _sorted(spark.read.parquet(str(target)))
    assert [(row.queue, row.offset, int(row.body)) for row in found] == [
        (stream, number, number) for stream in sorted(STREAMS) for number in range(END)
    ]
    of_leader = {"url": url_of(leader), "queues": ",".join(STREAMS)}
    assert found == _sorted(spark.read.format("gateway").options(**of_leader).load())


def test_a_batch_from_the_copies_has_the_rows_of_the_leader(spark: SparkSession, cluster: GatewayCluster) -> None:
    leader = cluster.leader()
    broker = StreamBroker(leader)
    broker.declare_stream("batch", stream_max_segment_size_bytes=SEGMENT)
    broker.publish("batch", bodies(0, FIRST))
    others = [node for node in cluster.nodes if node is not leader]
    before = answered_reads(leader)
    options = {"queue": "batch", "maxOffsetsPerPartition": "100"}
    expected = _sorted(spark.read.format("gateway").options(url=url_of(leader), **options).load())
    assert [int(row.body) for row in expected] == [*range(FIRST)]

    def are_read() -> bool:
        """Read from both followers; return whether all messages came from their copies, which may lag at first."""
        urls = ",".join(url_of(node) for node in others)
        assert _sorted(spark.read.format("gateway").options(urls=urls, **options).load()) == expected
        return all(_answered(leader, node) - before[node.name] >= FIRST // 4 for node in others)

    wait_until(are_read, lambda: f"{before} {answered_reads(leader)}", timeout_s=PATIENCE_S)


def _answered(leader: ClusterNode, node: ClusterNode) -> int:
    return answered_reads(leader)[node.name]


def _publish(node: ClusterNode, begin: int, end: int) -> None:
    for stream in STREAMS:
        StreamBroker(node).publish(stream, bodies(begin, end))


def _sorted(rows: DataFrame) -> list[Row]:
    """Return rows with all columns, in the order of their streams."""
    return sorted(rows.collect(), key=lambda row: (row.queue, row.offset))


def _batches(checkpoint: str) -> int:
    return sum(name.name.isdigit() for name in Path(checkpoint).glob("commits/*"))
