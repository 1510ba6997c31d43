"""A stream read into Spark, by batches and by a streaming query, beside the same rows in Parquet files."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final

from benchmarks.load.amqp.client import connected
from benchmarks.load.amqp.filling import fill_correlated
from benchmarks.load.figure import Figure, at_least
from benchmarks.load.gateway import MANAGEMENT
from benchmarks.load.running import Broker
from benchmarks.load.workloads import AMQP
from benchmarks.pipeline.spark_process import BATCH, PARQUET, STREAMED_PARQUET, STREAMING, spark_process

STREAM: Final = "bench.reads"
KIND: Final[Mapping[str, str | int]] = {"x-queue-type": "stream"}
BODY_BYTES: Final = 100

#: Reads of each kind whose times are not counted, while Spark and the broker warm up.
WARM: Final = 2

#: Required rows a second; the parts of the rate of plain Parquet, and of a batch, that are required.
RATE, OF_PARQUET, OF_BATCH = 600_000.0, 0.8, 0.7


def measure_reads(broker: Broker, directory: Path, rows: int, rounds: int, cores: Sequence[int]) -> Sequence[Figure]:
    """Fill a stream with messages that have heads of their own, and read it in turns with its copy in Parquet."""
    port = broker.ports[AMQP]
    with connected(port) as control:
        control.declare_queue(STREAM, durable=True, arguments=KIND)
    fill_correlated(port, STREAM, rows, BODY_BYTES)
    with spark_process(broker.ports[MANAGEMENT], STREAM, directory, cores) as ask:
        ask("copy")
        rates = _rates(ask, rows, rounds)
    batch, streaming = rates[BATCH], rates[STREAMING]
    return [
        at_least("rows of 100 B with heads of their own, all columns, a second", batch, RATE),
        Figure("the same from plain Parquet", f"{rates[PARQUET]:,.0f}"),
        _part("part of plain Parquet", batch / rates[PARQUET], OF_PARQUET),
        Figure("by a streaming query, rows a second", f"{streaming:,.0f}"),
        Figure("the same from plain Parquet", f"{rates[STREAMED_PARQUET]:,.0f}"),
        _part("part of the batch", streaming / batch, OF_BATCH),
    ]


def _rates(ask: Callable[[str], Mapping[str, Any]], rows: int, rounds: int) -> Mapping[str, float]:
    """Return the median rate of each kind of read, which take turns."""
    kinds = (BATCH, PARQUET, STREAMING, STREAMED_PARQUET)
    seconds: dict[str, list[float]] = {kind: [] for kind in kinds}
    for number in range(WARM + rounds):
        for kind in kinds:
            answer = ask(kind)
            if answer["rows"] != rows:
                raise RuntimeError(f"{kind}: {answer['rows']} rows of {rows}")
            if number >= WARM:
                seconds[kind].append(answer["seconds"])
    return {kind: rows / median(each) for kind, each in seconds.items()}


def _part(name: str, measured: float, required: float) -> Figure:
    return Figure(name, f"{measured:.2f}", f">= {required:.1f}", measured >= required)
