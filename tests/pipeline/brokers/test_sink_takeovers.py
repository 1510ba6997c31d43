"""A batch that Spark writes into a cluster is there once, though another node takes over on its way.

The writers are those of Spark, without Spark: they run in the threads of the test. Staged rows are on the leader's disk
alone, so a takeover loses them. What was lost is written again, as Spark and its user do.
"""

import pickle
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from typing import Any, Final

import pyarrow as pa
import pytest
from pika.exceptions import AMQPError
from pyspark.sql.types import StructType

import gateway_arrow
from gateway_spark.client import Client
from gateway_spark.errors import BrokerRefused, StagedLost
from gateway_spark.options import sink_options
from gateway_spark.sink import TableWriter
from pyspark_gateway import DefaultSource
from tests.clusters.gateway_cluster import ClusterNode, GatewayCluster, running_cluster
from tests.pipeline.broker_api import url_of
from tests.pipeline.stream_broker import StreamBroker
from tests.waiting import wait_until

SCHEMA: Final = StructType().add("body", "binary")

TASKS: Final = 2

#: Rows of a task, and of one of its Arrow batches, which is more than a part.
ROWS: Final = 10_000
AT_ONCE: Final = 1_000
PART_BYTES: Final = 32 * 1024

#: A takeover on a busy machine, and what follows it.
PATIENCE_S: Final = 240.0

#: How often Spark runs a task (``spark.task.maxFailures``).
MOST_RUNS: Final = 4

#: A part that no task sends: the broker answers whether it would take one.
NO_PART: Final = "99999"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def nodes() -> Iterator[GatewayCluster]:
    """Three nodes."""
    with running_cluster() as found:
        yield found


@pytest.fixture
def cluster(nodes: GatewayCluster) -> GatewayCluster:
    """The cluster with all nodes running."""
    return nodes.start().all_joined()


class Target:
    """A fanout exchange with a stream and a quorum queue, and the writers into it. ``name`` is of its own."""

    def __init__(self, cluster: GatewayCluster, name: str) -> None:
        self._cluster = cluster
        self._name = name
        with StreamBroker(cluster.leader()).channel() as channel:
            channel.exchange_declare(name, "fanout", durable=True)
            for kind in ("stream", "quorum"):
                queue = f"{name}.{kind}"
                channel.queue_declare(queue, durable=True, arguments={"x-queue-type": kind})
                channel.queue_bind(queue, name)

    @property
    def _urls(self) -> list[str]:
        return [url_of(node) for node in self._cluster.nodes]

    @property
    def options(self) -> dict[str, str]:
        """The options of each write of the batch."""
        where = {"urls": ",".join(self._urls), "retryTimeout": "120s", "exchange": self._name}
        return where | {"producerName": "takeovers", "batchId": self._name, "maxInFlight": str(PART_BYTES)}

    def writer(self) -> TableWriter:
        """Return a writer of the batch; each one is a run of the job."""
        return DefaultSource(self.options).writer(SCHEMA, False)

    def is_committing(self, message: Any) -> bool:
        """Whether the broker is at work on the commit of a task's rows, or has none of them any more.

        Staged rows that a commit has begun to publish take no more parts.
        """
        options = sink_options(self.options, is_stream=False)
        with closing(Client(options.address)) as client:
            try:
                parts = client.stage({"attempt": message.attempt, "part": NO_PART}, b"")["parts"]
            except BrokerRefused as refusal:
                if refusal.fields["error"] != "committed":
                    raise
                return True
        return bool(parts <= message.parts)

    def require_all(self) -> None:
        """Check that stream and queue have each row once."""
        stream = gateway_arrow.read(self._urls, f"{self._name}.stream", columns=["body"]).read_all()
        expected = [body for task in range(TASKS) for body in bodies(task)]
        assert sorted(stream["body"].to_pylist()) == expected
        queued = wait_until(self._queued, self._cluster.logs, timeout_s=PATIENCE_S)
        assert queued is not None
        assert sorted(queued) == expected

    def _queued(self) -> list[bytes] | None:
        """Return the messages of the queue, which stay there; ``None`` if a takeover ends the connection."""
        queue = f"{self._name}.quorum"
        with suppress(AMQPError), StreamBroker(self._cluster.leader()).channel() as channel:
            count = channel.queue_declare(queue, passive=True).method.message_count
            found = channel.consume(queue)
            return [next(found)[2] for _ in range(count)]
        return None


def bodies(task: int) -> list[bytes]:
    return [b"%d:%080d" % (task, number) for number in range(task * ROWS, (task + 1) * ROWS)]


def write_once(job: TableWriter, task: int, between: Callable[[], object] = lambda: None) -> Any:
    """Run a task of a job; return its message to the driver. ``between`` is called when half of the rows are taken."""

    def batches() -> Iterator[pa.RecordBatch]:
        rows = bodies(task)
        for begin in range(0, ROWS, AT_ONCE):
            if begin == ROWS // 2:
                between()
            yield pa.RecordBatch.from_pydict({"body": rows[begin : begin + AT_ONCE]})

    return pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(job)).write(batches())))


def write(job: TableWriter, task: int) -> Any:
    """Run a task until it succeeds, as Spark does."""
    for _ in range(MOST_RUNS - 1):
        with suppress(StagedLost):
            return write_once(job, task)
    return write_once(job, task)


def run_job(target: Target, cluster: GatewayCluster) -> list[Any]:
    """Run the job until it succeeds, as its user does; return the messages of its tasks.

    Nothing but another takeover, as on a busy machine, is a reason that it does not.
    """
    while True:
        epoch = cluster.leader().led_epoch
        job = target.writer()
        messages = [write(job, task) for task in range(TASKS)]
        try:
            job.commit(messages)
        except StagedLost:
            assert cluster.leader().led_epoch > epoch, cluster.logs()
        else:
            return messages


def kill(cluster: GatewayCluster) -> ClusterNode:
    """Kill the leader; return it when another node leads."""
    leader = cluster.leader()
    leader.kill()
    cluster.leader(leader.led_epoch)
    return leader


def test_a_takeover_while_tasks_stage(cluster: GatewayCluster) -> None:
    target = Target(cluster, "staged")
    job = target.writer()
    ended = write(job, 0)
    with pytest.raises(StagedLost, match="has to run again"):
        write_once(job, 1, lambda: kill(cluster))
    with pytest.raises(StagedLost, match="restart the query"):
        job.commit([ended, write(job, 1)])
    run_job(target, cluster)
    target.require_all()


@pytest.mark.parametrize("fault", ["kill", "pause"])
def test_a_takeover_while_a_batch_is_published(cluster: GatewayCluster, fault: str) -> None:
    target = Target(cluster, fault)
    job = target.writer()
    messages = [write(job, task) for task in range(TASKS)]
    with ThreadPoolExecutor(1) as threads:
        commit = threads.submit(job.commit, messages)
        wait_until(lambda: commit.done() or target.is_committing(messages[0]), timeout_s=PATIENCE_S)
        if fault == "kill":
            kill(cluster)
        else:
            leader = cluster.leader()
            leader.pause()
            cluster.leader(leader.led_epoch)
            leader.resume()
        with suppress(StagedLost):  # unless the cluster has the batch
            commit.result(PATIENCE_S)
    run_job(target, cluster)
    target.require_all()


def test_a_takeover_after_the_commit(cluster: GatewayCluster) -> None:
    target = Target(cluster, "committed")
    run_job(target, cluster)
    kill(cluster)
    again = run_job(target, cluster)
    assert [(each.parts, each.is_repeated) for each in again] == [(0, True)] * TASKS
    target.require_all()
