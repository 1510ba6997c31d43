"""Spark in a process of its own, which reads on request.

Each line of standard input is a request, and each line of standard output its answer in JSON.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BATCH: Final = "batch"
STREAMING: Final = "streaming"
PARQUET: Final = "parquet"
STREAMED_PARQUET: Final = "streaming of parquet"
VISIBLE: Final = "visible"
END: Final = "end"

#: Partitions of a read, and files of the Parquet copy; two for each thread of Spark.
PARTITIONS: Final = 4

_PROJECT: Final = Path(__file__).parents[2]


@contextmanager
def spark_process(
    port: int, stream: str, directory: Path, cores: Sequence[int]
) -> Iterator[Callable[[str], Mapping[str, Any]]]:
    """Run Spark on these cores for a stream of the broker at ``port``; the function makes one request."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(_PROJECT / "pipeline"), str(_PROJECT)))}
    command = [sys.executable, "-m", "benchmarks.pipeline.spark_process", f"http://127.0.0.1:{port}", stream]
    command += [str(directory), ",".join(map(str, cores))]
    with (
        (directory / "spark.log").open("ab") as log,
        subprocess.Popen(
            command, cwd=_PROJECT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log
        ) as process,
    ):
        yield partial(_ask, process)
        assert process.stdin is not None
        process.stdin.close()


def _ask(process: "subprocess.Popen[bytes]", request: str) -> Mapping[str, Any]:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(request.encode() + b"\n")
    process.stdin.flush()
    answer: Mapping[str, Any] = json.loads(process.stdout.readline())
    return answer


class Reads:
    """The reads of one stream by one session of Spark, each counted and thrown away."""

    def __init__(self, spark: "SparkSession", url: str, stream: str, directory: Path) -> None:
        self._spark = spark
        self._options = {"url": url, "queue": stream, "minPartitions": str(PARTITIONS)}
        self._copy = str(directory / "copy.parquet")
        self._directory = directory
        self._queries = 0

    def timed(self, request: str) -> Mapping[str, float]:
        """Read once, and return the rows and the seconds it took."""
        start = time.perf_counter()
        if request in (BATCH, PARQUET):
            rows = self._batch(self._source() if request == BATCH else self._spark.read.parquet(self._copy))
        else:
            rows, start = self._streaming(request == STREAMED_PARQUET)
        return {"rows": rows, "seconds": time.perf_counter() - start}

    def write_copy(self) -> None:
        """Write the stream to Parquet files with the same columns."""
        self._source().write.mode("overwrite").parquet(self._copy)

    def _source(self) -> "DataFrame":
        return self._spark.read.format("gateway").options(**self._options).load()

    def _batch(self, frame: "DataFrame") -> int:
        """Count the rows, and use the values of all columns but those that have no hash."""
        from pyspark.sql.functions import col, count, lit, max, xxhash64
        from pyspark.sql.types import MapType

        used = [col(field.name) for field in frame.schema if not isinstance(field.dataType, MapType)]
        found = frame.agg(count(lit(1)), max(xxhash64(*used))).first()
        assert found is not None
        return int(found[0])

    def _streaming(self, of_parquet: bool) -> tuple[int, float]:
        """Read all there is in one batch of a query; the clock starts with the query."""
        reader = self._spark.readStream
        if of_parquet:
            frame = reader.schema(self._source().schema).parquet(self._copy)
        else:
            frame = reader.format("gateway").options(**self._options, startingOffsets="earliest").load()
        self._queries += 1
        checkpoint = self._directory / f"checkpoint-{self._queries}"
        start = time.perf_counter()
        writer = frame.writeStream.format("noop").option("checkpointLocation", str(checkpoint))
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        return sum(int(each["numInputRows"]) for each in query.recentProgress), start

    def visible(self, seconds: float) -> Mapping[str, Sequence[float]]:
        """Run a query for this long; return of each row when it was sent, and how long after that it was seen.

        ``sent`` counts the seconds from the start of the query. The body of a message is the time of sending, in
        seconds, as text.
        """
        sent: list[float] = []
        delays: list[float] = []
        began = time.time()

        def see(batch: "DataFrame", _number: int) -> None:
            rows = batch.select(batch.body.cast("string")).collect()
            now = time.time()
            times = [float(row[0]) for row in rows]
            sent.extend(each - began for each in times)
            delays.extend(now - each for each in times)

        options = {name: value for name, value in self._options.items() if name != "minPartitions"}
        frame = self._spark.readStream.format("gateway").options(**options, startingOffsets="latest").load()
        checkpoint = self._directory / "checkpoint-visible"
        query = frame.writeStream.foreachBatch(see).option("checkpointLocation", str(checkpoint)).start()
        query.awaitTermination(int(seconds))
        query.stop()
        return {"sent": sent, "delays": delays}


def serve(url: str, stream: str, directory: Path) -> None:
    """Answer the requests of standard input."""
    from gateway_spark.session import session

    spark = session("bench", "local[2]", {"spark.sql.streaming.numRecentProgressUpdates": "1000"})
    reads = Reads(spark, url, stream, directory)
    for line in sys.stdin:
        request, _, argument = line.strip().partition(" ")
        answer: Mapping[str, Any] = {}
        if line.strip() == "copy":
            reads.write_copy()
        elif request == VISIBLE:
            answer = reads.visible(float(argument))
        else:
            answer = reads.timed(line.strip())
        print(json.dumps(answer), flush=True)
    spark.stop()


if __name__ == "__main__":
    os.sched_setaffinity(0, [int(core) for core in sys.argv[4].split(",")])
    serve(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
