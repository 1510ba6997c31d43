"""A stream read into Spark on this machine: how fast, what it costs the broker, and how long others wait meanwhile."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter, sleep
from typing import Final

from benchmarks.load.amqp.client import connected
from benchmarks.load.amqp.filling import fill
from benchmarks.load.figure import Figure, at_least, at_most
from benchmarks.load.gateway import MANAGEMENT
from benchmarks.load.measurement import stopwatch
from benchmarks.load.pings import pinging
from benchmarks.load.running import Broker
from benchmarks.load.workloads import AMQP

STREAM: Final = "bench.spark"
KIND: Final[Mapping[str, str | int]] = {"x-queue-type": "stream"}
MESSAGES, BODY_BYTES = 1_000_000, 100

#: Rows a second that are owed, with two threads of Spark.
RATE: Final = 300_000.0
#: How many times as long as beside an idle broker another client may wait, 99 times of 100.
SLOWER: Final = 3.0

#: Reads of the whole stream: the first two find Spark and the broker cold.
READS, WARM = 5, 3
#: How long an idle broker is looked at, in seconds.
IDLE_S: Final = 10.0

_PROJECT: Final = Path(__file__).parents[2]


def measure_spark(broker: Broker) -> Sequence[Figure]:
    """Fill a stream and read it again and again; look at another client before, and while the last reads run."""
    port = broker.ports[AMQP]
    with connected(port) as control:
        control.declare_queue(STREAM, durable=True, arguments=KIND)
    fill(port, STREAM, MESSAGES, BODY_BYTES)
    with pinging(port) as idle:
        sleep(IDLE_S)
    with reader(broker.ports[MANAGEMENT]) as reads:
        for _ in range(READS - WARM):
            next(reads)
        with stopwatch(broker.pid) as watch, pinging(port) as busy:
            rates = [MESSAGES / next(reads) for _ in range(WARM)]
    return [
        at_least("rows of 100 B read into Spark a second", max(rates), RATE),
        Figure("the same, the slowest of three reads", f"{min(rates):,.0f}"),
        Figure("broker CPU a row, µs", f"{watch.broker_cpu_s * 1e6 / MESSAGES / WARM:.2f}"),
        at_most("p99 of another client meanwhile, over that beside an idle broker", busy.p99_ms / idle.p99_ms, SLOWER),
        Figure("p99 of another client meanwhile, ms", f"{busy.p99_ms:.1f}"),
        Figure("p99 of another client beside an idle broker, ms", f"{idle.p99_ms:.1f}"),
    ]


@contextmanager
def reader(port: int) -> Iterator[Iterator[float]]:
    """Run Spark in a process of its own; each ``next`` reads the stream once, and returns the seconds it took."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(_PROJECT / "pipeline"), str(_PROJECT)))}
    command = [sys.executable, "-m", "benchmarks.load.spark", f"http://127.0.0.1:{port}"]
    with subprocess.Popen(
        command, cwd=_PROJECT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield _answers(process)
        process.stdin.close()


def _answers(process: "subprocess.Popen[bytes]") -> Iterator[float]:
    assert process.stdin is not None
    assert process.stdout is not None
    while True:
        process.stdin.write(b"read\n")
        process.stdin.flush()
        rows, seconds = json.loads(process.stdout.readline())
        if rows != MESSAGES:
            raise RuntimeError(f"Spark read {rows} rows of {MESSAGES}")
        yield seconds


def read_when_asked(url: str) -> None:
    """Read the stream for each line of standard input, all columns, into nothing; answer with rows and seconds."""
    from pyspark.sql import Observation  # the broker's benchmarks run without Spark
    from pyspark.sql.functions import count, lit

    from gateway_spark.session import session

    spark = session("bench", "local[2]")
    for _ in sys.stdin:
        start = perf_counter()
        frame = spark.read.format("gateway").options(url=url, queue=STREAM, minPartitions="4").load()
        seen = Observation()
        frame.observe(seen, count(lit(1)).alias("rows")).write.format("noop").mode("append").save()
        print(json.dumps([seen.get["rows"], perf_counter() - start]), flush=True)
    spark.stop()


if __name__ == "__main__":
    read_when_asked(sys.argv[1])
