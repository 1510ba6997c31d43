"""One batch write of many rows of 1 KB by Spark into a stream, with kills of executors, the broker and the driver.

python -m benchmarks.datasets.large_batch [--rows 50000000]

The settings of broker and connector are the defaults. The stream keeps its last 2 GiB, so that the disk has to hold the
batch once, and it is read meanwhile: row n must be message n. Each step of ``KILLS`` is one kill.
"""

import argparse
import json
import os
import signal
import sys
import tempfile
import threading
import time
from base64 import b64encode
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from urllib.request import Request, urlopen

import numpy
import pyarrow
import pyarrow.compute

from benchmarks.datasets.queries import SETTINGS
from benchmarks.datasets.rig import HOST, ROOT, Rig, SparkCluster, call, say, spark_cluster, until
from gateway.cli.local_cluster.processes import ChildProcess
from gateway_arrow import StreamReading

STREAM: Final = "large"
SIZE: Final = 1000
DIGITS: Final = 10

#: Phases, and the share of the rows at which a process is killed. After the driver all rows are staged again.
KILLS: Final = (
    ("staged", 0.05, "executor"),
    ("staged", 0.10, "broker"),
    ("staged", 0.15, "driver"),
    ("staged", 0.30, "executor"),
    ("staged", 0.60, "broker"),
    ("checked", 0.30, "broker"),
    ("publishing", 0.10, "broker"),
    ("publishing", 0.30, "driver"),
    ("publishing", 0.70, "broker"),
)

#: A phase of 50 GB takes less.
PHASE_S: Final = 3600.0


class Batch(Rig):
    """The processes of the write, and the state of the batch as the broker lists it."""

    def __init__(self, directory: Path, spark: SparkCluster, rows: int) -> None:
        super().__init__(directory, spark)
        self.rows = rows
        words = ["--write", self.url, spark.url, "--rows", str(rows)]
        path = os.pathsep.join((str(ROOT / "pipeline"), str(ROOT)))
        command = [sys.executable, "-m", "benchmarks.datasets.large_batch", *words]
        self.driver = ChildProcess("driver", command, directory / "driver.log", {"PYTHONPATH": path})

    def declare(self) -> None:
        """Declare the stream."""
        arguments = {"x-queue-type": "stream", "x-max-length-bytes": 2**31}
        fields = {"durable": True, "arguments": arguments}
        call(f"{HOST}:{self.ports['management']}", f"queues/%2F/{STREAM}", fields)

    def share(self, phase: str) -> float:
        """Return how much of a phase is over, from 0 to 1; more if the batch is in a later one."""
        found = self._state()
        if found is None:
            return 0.0
        if not found["batches"]:
            return found["staged"]["bytes"] / (self.rows * SIZE) if phase == "staged" else 0.0
        (batch,) = found["batches"]
        if batch["state"] == "held":
            raise SystemExit(f"the batch is held: {batch['reason']}")
        order = ["staged", "checked", "publishing"]
        if batch["state"] != phase:
            return 2.0 if order.index(batch["state"]) > order.index(phase) else 0.0
        return float(batch["checked" if phase == "checked" else "published"] / self.rows)

    def _state(self) -> dict[str, Any] | None:
        """Return the batches and the staged rows; ``None`` while the broker does not answer."""
        authorization = "Basic " + b64encode(b"guest:guest").decode()
        request = Request(f"{self.url}/api/pipeline/%2F/batches", headers={"Authorization": authorization})
        with suppress(OSError, ValueError), urlopen(request, timeout=30) as answer:
            found: dict[str, Any] = json.loads(answer.read())
            return found
        return None


class Reader(threading.Thread):
    """Reads the stream while it grows, and compares each message with its row."""

    def __init__(self, url: str, rows: int) -> None:
        super().__init__(daemon=True)
        self._url = url
        self._rows = rows
        self.read = 0
        self.wrong = ""
        self.is_stopped = False

    def run(self) -> None:
        """Read until all rows are there, one is wrong, or ``is_stopped``."""
        position: Any = None
        while self.read < self._rows and not self.wrong and not self.is_stopped:
            try:
                reading = StreamReading(
                    self._url, STREAM, columns=["offset", "body"], position=position, retryTimeout="10m"
                )
                for batch in reading.reader:
                    self._compare(batch)
                position = reading.position
            except Exception as error:
                self.wrong = f"the stream cannot be read after {self.read} messages: {error}"
            time.sleep(0.2)

    def _compare(self, batch: Any) -> None:
        expected = numpy.arange(self.read, self.read + batch.num_rows)
        digits = pyarrow.compute.binary_slice(batch["body"], 0, DIGITS).cast(pyarrow.string())
        rows = digits.cast(pyarrow.int64()).to_numpy()
        if not numpy.array_equal(batch["offset"].to_numpy(), expected) or not numpy.array_equal(rows, expected):
            self.wrong = f"other rows than {self.read} to {self.read + batch.num_rows} are there"
        self.read += batch.num_rows


def write(url: str, master: str, rows: int) -> None:
    """Write the batch: the driver."""
    from pyspark.sql.functions import col, lit, lpad, rpad  # the reader and the kills need no Spark

    from gateway_spark.session import session

    spark = session("large batch", master, SETTINGS)
    frame = spark.range(rows, numPartitions=max(4, rows // 250_000))
    bodies = rpad(lpad(col("id").cast("string"), DIGITS, "0"), SIZE, lit("x"))
    options = {"url": url, "exchange": "", "routingKey": STREAM, "producerName": "large", "batchId": "1"}
    frame.select(bodies.alias("body")).write.format("gateway").options(**options).mode("append").save()
    spark.stop()


def main() -> int:
    """Run it; return 1 if a row is missing, wrong or there twice."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.datasets.large_batch", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--rows", type=int, default=50_000_000, help="rows of the batch (default: %(default)s)")
    parser.add_argument("--directory", help="place of the broker's data (default: that of temporary files)")
    parser.add_argument("--write", nargs=2, metavar=("URL", "MASTER"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.write:
        url, master = options.write
        write(url, master, options.rows)
        return 0
    for number in (signal.SIGINT, signal.SIGTERM):  # ends the processes, too
        signal.signal(number, lambda number, frame: sys.exit(128 + number))
    with tempfile.TemporaryDirectory(prefix="gateway-large-", dir=options.directory) as place:
        directory = Path(place)
        with spark_cluster(directory / "spark") as spark, Batch(directory, spark, options.rows) as batch:
            wrong = run(batch)
    say(f"WRONG: {wrong}" if wrong else f"{options.rows} rows: each is one message, in order")
    return 1 if wrong else 0


def run(batch: Batch) -> str:
    """Write the batch with all kills; return what is wrong, or an empty text."""
    batch.broker.start()
    until(batch.is_ready, "the broker does not start; see broker.log")
    batch.declare()
    reader = Reader(batch.url, batch.rows)
    reader.start()
    since_s = time.monotonic()
    batch.driver.start()
    kills: dict[str, Callable[[], bool]] = {
        "executor": batch.kill_executor,
        "broker": batch.kill_broker,
        "driver": batch.kill_driver,
    }
    for phase, share, name in KILLS:
        _wait(batch, lambda phase=phase, share=share: batch.share(phase) >= share)  # type: ignore[misc]
        until(kills[name], f"there is no {name} to kill")
        say(f"{time.monotonic() - since_s:.0f} s: {name} killed at {share:.0%} {phase}")
    _wait(batch, lambda: not batch.driver.is_running)
    say(f"{time.monotonic() - since_s:.0f} s: the driver has ended")
    if "Traceback" in batch.driver.log.read_text(errors="replace").rpartition("Stopped")[2]:
        return f"the driver failed: {batch.driver.log.read_text(errors='replace')[-2000:]}"
    _wait(batch, lambda: reader.read >= batch.rows or bool(reader.wrong))
    reader.is_stopped = True
    reader.join()
    return reader.wrong or ("" if reader.read == batch.rows else f"{reader.read} messages were read")


def _wait(batch: Batch, is_done: Callable[[], bool]) -> None:
    """Wait for a phase. :raises SystemExit: if it takes too long."""
    deadline_s = time.monotonic() + PHASE_S
    while not is_done():
        if time.monotonic() > deadline_s:
            raise SystemExit(f"a phase takes longer than {PHASE_S:.0f} s: {batch._state()}")
        time.sleep(0.05)


if __name__ == "__main__":
    sys.exit(main())
