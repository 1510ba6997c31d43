"""The output of a roll-up that follows a stream: the table ``updates``, one part for each batch, of bounded size.

A batch writes the current values of the windows it changed. Each ``FOLD``-th batch writes all windows instead and
supersedes all older parts. These are deleted one fold later, so that current readers can finish: there are at most
twice ``FOLD`` plus one parts, and any set of parts that a reader sees contains the last fold. A killed driver
leaves an incomplete part, which is removed, or obsolete parts, which the next fold deletes.

The numbers belong to one query, identified by its checkpoint: parts of another query would be ordered wrongly.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from gateway_spark.errors import OptionError
from gateway_spark.jobs.outputs import Outputs
from gateway_spark.status import query_id, reached
from gateway_spark.transforms.rollup import latest

UPDATES: Final = "updates"

PART: Final = "batch"

#: The owner of the parts. Spark ignores files whose name begins like this.
QUERY_FILE: Final = "_query"

#: Number of batches after which all windows are written again.
FOLD: Final = 16


def places_in(windows: DataFrame) -> int:
    """Return the number of messages in windows; each field has all of them."""
    by_field = windows.groupBy("field").agg(F.sum("messages").alias("messages")).agg(F.max("messages")).first()
    return 0 if by_field is None or by_field[0] is None else int(by_field[0])


class Updates:
    """The updates in one directory of results. ``by`` identifies devices; ``checkpoint`` identifies the query."""

    def __init__(self, outputs: Outputs, by: Sequence[str], checkpoint: Path | None) -> None:
        self._outputs = outputs
        self._by = by
        self._checkpoint = checkpoint
        self._directory = outputs.directory / UPDATES

    def begin(self) -> None:
        """Check the existing parts as `require_fitting` does; remove them if the query starts from the beginning."""
        self.require_fitting()
        if self._checkpoint is None or (query_id(self._checkpoint) is None and self._owner is None):
            shutil.rmtree(self._directory, ignore_errors=True)

    def require_fitting(self) -> None:
        """Check that the existing parts are those that the query about to start has written.

        Without a checkpoint the query starts from the beginning. :raises OptionError: if the parts belong to another
        query, or are missing.
        """
        query = None if self._checkpoint is None else query_id(self._checkpoint)
        if self._checkpoint is None or (query is None and self._owner is None):
            return
        if self._owner not in (None, query):
            raise OptionError(
                f"{self._directory} belongs to another query than {self._checkpoint}: "
                "use another --out, or remove that directory to start from the beginning"
            )
        if not self._numbers() and reached(self._checkpoint).done is not None:
            raise OptionError(
                f"{self._checkpoint} continues, but its earlier results are not in {self._directory}: "
                "use the earlier --out, or another --checkpoint to start from the beginning"
            )

    def write(self, changed: DataFrame, batch: int) -> None:
        """Write the changes of a batch. It may be repeated with the same number until Spark has recorded its end."""
        self._claim()
        if self._outputs.has_part(UPDATES, PART, batch):
            changed.write.format("noop").mode("overwrite").save()  # Spark requires that its state is computed
            return
        is_fold = batch % FOLD == 0
        self._outputs.write_part(UPDATES, PART, batch, self._folded(changed, batch) if is_fold else changed)
        if is_fold:
            self._forget(batch - FOLD)

    def has_parts(self) -> bool:
        """Return whether a batch was written."""
        return bool(self._numbers())

    def latest(self, spark: SparkSession) -> DataFrame | None:
        """Return all windows with their latest values, or ``None`` if there are none."""
        written = self._outputs.read(spark, UPDATES)
        return None if written is None else latest(written, self._by)

    def places(self, spark: SparkSession, end: int | None = None) -> int:
        """Return the number of messages in windows, each counted once for each of its windows.

        With ``end`` it is that after the batches before ``end``, as far as their parts still exist.
        """
        written = self._outputs.read(spark, UPDATES)
        if written is None:
            return 0
        if end is not None:
            written = written.where(F.col(PART) < end)
        return places_in(latest(written, self._by))

    def _folded(self, changed: DataFrame, batch: int) -> DataFrame:
        """Return all windows including this batch."""
        written = self._outputs.read(changed.sparkSession, UPDATES)
        if written is None:
            return changed
        return latest(written.unionByName(changed.withColumn(PART, F.lit(batch))), self._by)

    def _forget(self, end: int) -> None:
        """Delete parts older than the last fold but one."""
        for number in self._numbers():
            if number < end:
                shutil.rmtree(self._part(number))

    def _claim(self) -> None:
        """Record the owner of the updates, before the first part."""
        if self._checkpoint is None or self._owner is not None:
            return
        self._directory.mkdir(parents=True, exist_ok=True)
        Outputs(self._directory).put(QUERY_FILE, f"{query_id(self._checkpoint)}\n")

    @property
    def _owner(self) -> str | None:
        """Return the owner of the updates; ``None`` if not recorded."""
        try:
            return (self._directory / QUERY_FILE).read_text(encoding="utf-8").strip()
        except FileNotFoundError:
            return None

    def _numbers(self) -> list[int]:
        names = (path.name.partition("=")[2] for path in self._directory.glob(f"{PART}=*"))
        return sorted(int(number) for number in names if number.isdigit())

    def _part(self, number: int) -> Path:
        return self._directory / f"{PART}={number}"
