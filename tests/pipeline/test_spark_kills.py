"""Each message arrives once although the driver and the broker are killed with SIGKILL."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.interop.broker import PROJECT
from tests.pipeline.conftest import PIPELINE, process_groups_below
from tests.pipeline.killed_job import ROWS_PER_BATCH
from tests.pipeline.stream_broker import StreamBroker, stream_broker
from tests.ports import free_port
from tests.waiting import wait_until

#: Messages at the start, and those published between the kills: more than are read before the last kill.
FIRST, MORE = 6_000, 6_000

PATIENCE_S = 120.0

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[StreamBroker]:
    """A gateway with fixed ports across restarts, with the stream ``numbers``."""
    with stream_broker(tmp_path / "gateway", f"management.port={free_port()}") as broker:
        broker.declare_stream("numbers")
        broker.publish("numbers", bodies(0, FIRST))
        yield broker


def bodies(begin: int, end: int) -> Iterator[bytes]:
    return (b"%0100d" % number for number in range(begin, end))


class Job:
    """The query as a process group with Spark's JVM and workers, restarted as often as needed."""

    def __init__(self, broker: StreamBroker, directory: Path, target: str) -> None:
        self.checkpoint = directory / "checkpoint"
        self._log = directory / "job.log"
        self._command = [broker.options()["url"], "numbers", str(self.checkpoint), target]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the query; it continues at its checkpoint."""
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(PIPELINE), str(PROJECT)))}
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.pipeline.killed_job", *self._command],
                cwd=PROJECT, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip

    def kill(self) -> None:
        """Kill the whole group: the driver, its JVM, the workers."""
        assert self._process is not None
        for group in {self._process.pid, *process_groups_below(self._process.pid)}:
            with suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
        self._process.wait()

    @property
    def batches(self) -> int:
        """Return the number of committed batches."""
        return sum(name.name.isdigit() for name in self.checkpoint.glob("commits/*"))

    def run_for(self, more: int) -> None:
        """Wait until this many more batches are committed; a query that fails meanwhile is restarted."""
        wanted = self.batches + more

        def is_done() -> bool:
            assert self._process is not None
            if self.batches >= wanted:
                return True
            if self._process.poll() is not None:
                self.start()
            return False

        wait_until(is_done, lambda: self._log.read_text(errors="replace")[-5000:], timeout_s=PATIENCE_S)


def endure(broker: StreamBroker, job: Job) -> None:
    """Kill the broker, then the driver, each during batches and while more messages arrive."""
    try:
        job.start()
        job.run_for(3)
        broker.gateway.restart()
        broker.publish("numbers", bodies(FIRST, FIRST + MORE))
        job.run_for(3)
    finally:
        job.kill()
    assert job.batches * int(ROWS_PER_BATCH) < FIRST + MORE, "it died during a batch"


def finish(
    spark: SparkSession, broker: StreamBroker, job: Job, format: str, columns: list[str], **options: str
) -> None:
    """Read the rest, from the same checkpoint."""
    rows = spark.readStream.format("gateway").options(**broker.options(queue="numbers")).load().selectExpr(*columns)
    writer = rows.writeStream.format(format).options(**options).option("checkpointLocation", str(job.checkpoint))
    writer.trigger(availableNow=True).start().awaitTermination()


def test_a_stream_is_written_to_files_exactly_once(spark: SparkSession, broker: StreamBroker, tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    job = Job(broker, tmp_path, out)
    endure(broker, job)
    finish(spark, broker, job, "parquet", ["offset", "body"], path=out)
    rows = spark.read.parquet(out).collect()
    assert sorted((row.offset, bytes(row.body)) for row in rows) == list(enumerate(bodies(0, FIRST + MORE)))


def test_a_stream_is_written_to_a_queue_exactly_once(spark: SparkSession, broker: StreamBroker, tmp_path: Path) -> None:
    broker.declare_stream("copied")
    job = Job(broker, tmp_path, "queue:copied")
    endure(broker, job)
    sink = broker.options(exchange="", producerName="killed")
    finish(spark, broker, job, "gateway", ["body", "'copied' AS routing_key"], **sink)
    copied = spark.read.format("gateway").options(**broker.options(queue="copied")).load().collect()
    assert sorted(bytes(row.body) for row in copied) == list(bodies(0, FIRST + MORE))
