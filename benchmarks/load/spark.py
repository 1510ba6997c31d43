"""A stream read into Spark on this machine: speed, cost for the broker, and waits of other clients."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter, sleep
from typing import Final, NamedTuple

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

#: Required rows per second, with two threads of Spark.
RATE: Final = 300_000.0
#: Maximum ratio of another client's 99th percentile to that beside an idle broker.
SLOWER: Final = 3.0

#: Reads of the whole stream; during the first two, Spark and the broker warm up.
READS, WARM = 5, 3
#: Duration of the measurement beside an idle broker, in seconds.
IDLE_S: Final = 10.0

_PROJECT: Final = Path(__file__).parents[2]


def measure_spark(broker: Broker) -> Sequence[Figure]:
    """Fill a stream and read it repeatedly; measure another client before, and during the last reads.

    Measured once with all cores for Spark, as on a machine that is too small for both, and once with all but one.
    Only the second isolates the broker: two busy threads on two cores make every other process wait for a core.
    """
    port = broker.ports[AMQP]
    with connected(port) as control:
        control.declare_queue(STREAM, durable=True, arguments=KIND)
    fill(port, STREAM, MESSAGES, BODY_BYTES)
    with pinging(port) as idle:
        sleep(IDLE_S)
    cores = sorted(os.sched_getaffinity(0))
    crowded, roomy = _read(broker, cores), _read(broker, cores[1:] or cores)
    return [
        at_least("rows of 100 B read into Spark a second", max(crowded.rates), RATE),
        Figure("the same, the slowest of three reads", f"{min(crowded.rates):,.0f}"),
        Figure("broker CPU a row, µs", f"{crowded.broker_us:.2f}"),
        Figure("rows a second with one core not used by Spark", f"{max(roomy.rates):,.0f}"),
        at_most("the same, ratio of another client's p99 to an idle broker's", roomy.p99_ms / idle.p99_ms, SLOWER),
        Figure("the same, p99 of another client, ms", f"{roomy.p99_ms:.2f}"),
        Figure("p99 of another client with all cores for Spark, ms", f"{crowded.p99_ms:.2f}"),
        Figure("p99 of another client beside an idle broker, ms", f"{idle.p99_ms:.2f}"),
    ]


class Reads(NamedTuple):
    """Warm reads of the whole stream: rows per second of each, the broker's CPU per row, another client's p99
    meanwhile.
    """

    rates: Sequence[float]
    broker_us: float
    p99_ms: float


def _read(broker: Broker, cores: Sequence[int]) -> Reads:
    """Read with a Spark that has these cores."""
    with reader(broker.ports[MANAGEMENT], cores) as reads:
        for _ in range(READS - WARM):
            next(reads)
        with stopwatch(broker.pid) as watch, pinging(broker.ports[AMQP]) as busy:
            rates = [MESSAGES / next(reads) for _ in range(WARM)]
    return Reads(rates, watch.broker_cpu_s * 1e6 / MESSAGES / WARM, busy.p99_ms)


@contextmanager
def reader(port: int, cores: Sequence[int]) -> Iterator[Iterator[float]]:
    """Run Spark in its own process; each ``next`` reads the stream once, and returns the seconds it took."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(_PROJECT / "pipeline"), str(_PROJECT)))}
    command = [sys.executable, "-m", "benchmarks.load.spark", f"http://127.0.0.1:{port}", *map(str, cores)]
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
    """Read all columns of the stream for each line of standard input, into nothing; print rows and seconds."""
    from pyspark.sql import Observation  # the benchmarks of the broker run without Spark
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
    os.sched_setaffinity(0, map(int, sys.argv[2:]))
    read_when_asked(sys.argv[1])
