"""Each message arrives once although the driver and the broker are killed with SIGKILL."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest
from pyspark.sql import SparkSession

from tests.interop.broker import PROJECT
from tests.pipeline.conftest import PIPELINE, process_groups_below
from tests.pipeline.killed_job import ROWS_PER_BATCH
from tests.pipeline.stream_broker import StreamBroker, stream_broker
from tests.ports import free_port
from tests.waiting import wait_until

#: Messages at the start, and those published between the kills: more than the faster query reads before the last kill.
FIRST, MORE = 6_000, 20_000

PATIENCE_S = 120.0

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


def bodies(begin: int, end: int) -> Iterator[bytes]:
    return (b"%0100d" % number for number in range(begin, end))


class Job:
    """The queries as a process group with Spark's JVM and workers, restarted as often as needed."""

    def __init__(self, broker: StreamBroker, directory: Path, *targets: str) -> None:
        self.checkpoints = [directory / str(number) for number in range(len(targets))]
        self._log = directory / "job.log"
        self._command = [broker.options()["url"], "numbers", str(directory), *targets]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the queries; each continues at its checkpoint."""
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
    def batches(self) -> list[int]:
        """Return the number of committed batches of each query."""
        return [sum(name.name.isdigit() for name in each.glob("commits/*")) for each in self.checkpoints]

    def run_for(self, more: int) -> None:
        """Wait until each query has committed this many more batches; queries that fail meanwhile are restarted."""
        wanted = [count + more for count in self.batches]

        def is_done() -> bool:
            assert self._process is not None
            if all(count >= goal for count, goal in zip(self.batches, wanted, strict=True)):
                return True
            if self._process.poll() is not None:
                self.start()
            return False

        wait_until(is_done, lambda: self._log.read_text(errors="replace")[-5000:], timeout_s=PATIENCE_S)


class Killed(NamedTuple):
    """The broker with the stream ``numbers``, and the killed job with the directory and the queue that it wrote to."""

    broker: StreamBroker
    job: Job
    files: str
    queue: str


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Killed]:
    """Kill the broker, then the driver, each during batches of both queries and while more messages arrive.

    The broker has fixed ports across restarts. Both queries are in one driver, as its start takes longer than they do.
    """
    directory = tmp_path_factory.mktemp("kills")
    files, queue = str(directory / "out"), "copied"
    with stream_broker(directory / "gateway", f"management.port={free_port()}") as broker:
        broker.declare_stream("numbers")
        broker.declare_stream(queue)
        broker.publish("numbers", bodies(0, FIRST))
        job = Job(broker, directory, files, f"queue:{queue}")
        try:
            job.start()
            job.run_for(3)
            broker.gateway.restart()
            broker.publish("numbers", bodies(FIRST, FIRST + MORE))
            job.run_for(3)
        finally:
            job.kill()
        assert max(job.batches) * int(ROWS_PER_BATCH) < FIRST + MORE, "it died during a batch"
        yield Killed(broker, job, files, queue)


def finish(
    spark: SparkSession, broker: StreamBroker, checkpoint: Path, format: str, columns: list[str], **options: str
) -> None:
    """Read the rest, from the same checkpoint."""
    rows = spark.readStream.format("gateway").options(**broker.options(queue="numbers")).load().selectExpr(*columns)
    writer = rows.writeStream.format(format).options(**options).option("checkpointLocation", str(checkpoint))
    writer.trigger(availableNow=True).start().awaitTermination()


def test_a_stream_is_written_to_files_exactly_once(spark: SparkSession, killed: Killed) -> None:
    finish(spark, killed.broker, killed.job.checkpoints[0], "parquet", ["offset", "body"], path=killed.files)
    rows = spark.read.parquet(killed.files).collect()
    assert sorted((row.offset, bytes(row.body)) for row in rows) == list(enumerate(bodies(0, FIRST + MORE)))


def test_a_stream_is_written_to_a_queue_exactly_once(spark: SparkSession, killed: Killed) -> None:
    broker, queue = killed.broker, killed.queue
    sink = broker.options(exchange="", producerName="killed")
    columns = ["body", f"'{queue}' AS routing_key"]
    finish(spark, broker, killed.job.checkpoints[1], "gateway", columns, **sink)
    copied = spark.read.format("gateway").options(**broker.options(queue=queue)).load().collect()
    assert sorted(bytes(row.body) for row in copied) == list(bodies(0, FIRST + MORE))
