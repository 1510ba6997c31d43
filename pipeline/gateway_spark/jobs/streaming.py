"""A streaming query that passes each micro-batch to a function, reports its progress, and counts late rows."""

import time
from argparse import Namespace
from collections.abc import Callable
from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from gateway_spark.jobs.interruption import noted_interrupts
from gateway_spark.jobs.progress import ProgressPrinter

#: Interval between two checks of the query, in seconds.
LOOK_S: Final = 1

#: Longest single wait for the end of a batch, in seconds.
BRIEFLY_S: Final = 0.05


class Lateness:
    """The number of rows dropped because they were later than the watermark; each batch is counted once."""

    def __init__(self) -> None:
        self._dropped_by_batch: dict[int, int] = {}

    @property
    def dropped(self) -> int:
        """The total so far."""
        return sum(self._dropped_by_batch.values())

    def see(self, progress: dict[str, Any]) -> bool:
        """Process the progress of a batch; return whether the batch is new."""
        batch, operators = progress["batchId"], progress.get("stateOperators", ())
        is_new = batch not in self._dropped_by_batch
        self._dropped_by_batch[batch] = sum(each.get("numRowsDroppedByWatermark", 0) for each in operators)
        return is_new


def run_query(
    results: DataFrame,
    write: Callable[[DataFrame, int], None],
    options: Namespace,
    progress: ProgressPrinter,
) -> Lateness:
    """Run a query in update mode: to the present end, or with ``--continuous`` until it is interrupted.

    If the driver was killed before Spark recorded the end of a batch, ``write`` gets it again with the same number.
    """
    writer = results.writeStream.outputMode("update").foreachBatch(write)
    if options.checkpoint is not None:
        writer = writer.option("checkpointLocation", str(options.checkpoint.absolute()))
    trigger = {"processingTime": f"{options.every:g} seconds"} if options.continuous else {"availableNow": True}
    lateness = Lateness()
    with noted_interrupts() as interruption:
        query = writer.trigger(**trigger).start()
        try:
            while not interruption.is_asked and not query.awaitTermination(LOOK_S):
                _look(query, lateness, progress)
            _end_batch(query)
            _look(query, lateness, progress)
        finally:
            query.stop()
    return lateness


def _end_batch(query: StreamingQuery) -> None:
    """Let the current batch end: Spark logs a traceback for an aborted one."""
    done = _last_batch(query)
    while query.status["isTriggerActive"] and _last_batch(query) == done:
        time.sleep(BRIEFLY_S)


def _last_batch(query: StreamingQuery) -> int | None:
    last = query.lastProgress
    return None if last is None else int(last["batchId"])


def _look(query: StreamingQuery, lateness: Lateness, progress: ProgressPrinter) -> None:
    """Report the progress of the query since the last check."""
    for batch in query.recentProgress:
        if lateness.see(batch) and batch["numInputRows"]:
            rate = batch.get("processedRowsPerSecond") or 0.0
            progress.say(f"batch {batch['batchId']}: {batch['numInputRows']} messages, {rate:,.0f} a second")
