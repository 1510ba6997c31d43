"""A streaming query that passes each micro-batch to a function, reports its progress, and sums its metrics."""

import time
from argparse import Namespace
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import DataFrame, Row
from pyspark.sql.streaming.query import StreamingQuery

from gateway_spark.jobs.interruption import noted_interrupts
from gateway_spark.jobs.progress import ProgressPrinter

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import StreamingQueryProgress

#: The name of the metrics, see `gateway_spark.transforms.rollup`.
OBSERVED: Final = "messages"

#: Interval between two checks of the query, in seconds.
LOOK_S: Final = 1

#: Longest single wait for the end of a batch, in seconds.
BRIEFLY_S: Final = 0.05


@dataclass(frozen=True, slots=True)
class Observed:
    """The messages that a query has read: the number of windows they belong to, and those without a time."""

    places: int = 0
    timeless: int = 0


class BatchCounts:
    """The metrics of each batch, counted once."""

    def __init__(self) -> None:
        self._observed_by_batch: dict[int, Observed] = {}

    def total(self, end: int | None = None) -> Observed:
        """Return the sum over all batches, or over those before ``end``."""
        counted = [each for batch, each in self._observed_by_batch.items() if end is None or batch < end]
        return Observed(sum(each.places for each in counted), sum(each.timeless for each in counted))

    def see(self, progress: "StreamingQueryProgress") -> bool:
        """Process the progress of a batch; return whether the batch is new."""
        batch, metrics = progress["batchId"], progress["observedMetrics"].get(OBSERVED)
        is_new = batch not in self._observed_by_batch
        if metrics is not None:
            row = _by_name(metrics)
            self._observed_by_batch[batch] = Observed(row["places"], row["timeless"])
        return is_new


def _by_name(metrics: Row) -> Mapping[str, Any]:
    """Return metrics by name. Those of Spark Connect are a row of the values, and of the schema with the names."""
    fields = metrics.asDict()
    if fields.keys() != {"values", "schema"}:
        return fields
    return dict(zip((field["name"] for field in fields["schema"]["fields"]), fields["values"], strict=True))


def run_query(
    results: DataFrame,
    write: Callable[[DataFrame, int], None],
    options: Namespace,
    progress: ProgressPrinter,
    counts: BatchCounts,
    is_over: Callable[[], bool],
    after_batch: Callable[[], None] = lambda: None,
) -> None:
    """Run a query in update mode: to the present end, or with ``--continuous`` until it is interrupted or over.

    If the driver was killed before Spark recorded the end of a batch, ``write`` gets it again with the same number.
    With Spark Connect it runs in a process of the server. ``after_batch`` is called here once further batches have
    ended.
    """
    writer = results.writeStream.outputMode("update").foreachBatch(write)
    if options.checkpoint is not None:
        writer = writer.option("checkpointLocation", str(options.checkpoint.absolute()))
    trigger = (
        {"processingTime": f"{round(options.every * 1000)} milliseconds"}
        if options.continuous
        else {"availableNow": True}
    )
    with noted_interrupts() as interruption:
        query = writer.trigger(**trigger).start()
        try:
            while not interruption.is_asked and not is_over() and not query.awaitTermination(LOOK_S):
                if _look(query, counts, progress):
                    after_batch()
                if (status := query.status)["isTriggerActive"]:  # Spark Connect reports no tasks of queries
                    progress.remind(status["message"])
            _end_batch(query)
            _look(query, counts, progress)
        finally:
            query.stop()


def _end_batch(query: StreamingQuery) -> None:
    """Let the current batch end: Spark logs a traceback for an aborted one."""
    done = _last_batch(query)
    while query.status["isTriggerActive"] and _last_batch(query) == done:
        time.sleep(BRIEFLY_S)


def _last_batch(query: StreamingQuery) -> int | None:
    last = query.lastProgress
    return None if last is None else int(last["batchId"])


def _look(query: StreamingQuery, counts: BatchCounts, progress: ProgressPrinter) -> bool:
    """Report the progress of the query since the last check; return whether there are further batches."""
    is_further = False
    for batch in query.recentProgress:
        is_new = counts.see(batch)
        is_further = is_further or is_new
        rows = _sum_of_sources(batch, "numInputRows")
        if is_new and rows:
            rate = _sum_of_sources(batch, "processedRowsPerSecond")
            progress.say(f"batch {batch['batchId']}: {rows:.0f} messages, {rate:,.0f} a second")
    return is_further


def _sum_of_sources(batch: "StreamingQueryProgress", name: str) -> float:
    """Return a figure of a batch; with Spark Connect only its sources have them."""
    return sum(source.get(name) or 0 for source in batch["sources"])
