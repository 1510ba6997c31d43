"""What a roll-up wrote as it followed its stream: the table ``updates``, a part for each batch, kept from growing.

A batch writes the windows it changed, as they are now. Each ``FOLD``-th writes all windows instead, and from then on
nothing that is older counts. That is deleted one fold later, so that who was reading then can end: there are never more
parts than twice ``FOLD`` and one, and whichever of them somebody sees, the last that wrote all is among them. A driver
that is killed anywhere leaves a part that was begun, which is removed, or parts that should be gone, which the next
fold deletes.

The numbers are those of one query, told by its checkpoint: the parts of another would be taken for later, or earlier.
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

#: Says whose the parts are. Spark takes nothing for data whose name begins like this.
QUERY_FILE: Final = "_query"

#: After so many batches all windows are written again.
FOLD: Final = 16


class Updates:
    """The updates in one directory of results. ``by`` tells devices apart; ``checkpoint`` tells queries apart."""

    def __init__(self, outputs: Outputs, by: Sequence[str], checkpoint: Path | None) -> None:
        self._outputs = outputs
        self._by = by
        self._checkpoint = checkpoint
        self._directory = outputs.directory / UPDATES

    def begin(self) -> None:
        """Make sure that what is there is what the query that is about to start wrote so far.

        Without a checkpoint it begins anew, and so do the updates. :raises OptionError: when they are of another query,
        or not here.
        """
        query = None if self._checkpoint is None else query_id(self._checkpoint)
        if self._checkpoint is None or (query is None and self._owner is None):
            shutil.rmtree(self._directory, ignore_errors=True)
        elif self._owner not in (None, query):
            raise OptionError(
                f"{self._directory} is of another query than {self._checkpoint}: "
                "give this one another --out, or remove that directory to begin anew"
            )
        elif not self._numbers() and reached(self._checkpoint).done is not None:
            raise OptionError(
                f"{self._checkpoint} goes on, but what it wrote so far is not in {self._directory}: "
                "give the --out of before, or another --checkpoint to begin anew"
            )

    def write(self, changed: DataFrame, batch: int) -> None:
        """Write what a batch changed. It may come again, with the same number, until Spark has written down its end."""
        self._claim()
        if self._outputs.has_part(UPDATES, PART, batch):
            changed.write.format("noop").mode("overwrite").save()  # Spark insists that its state is worked out again
            return
        is_fold = batch % FOLD == 0
        self._outputs.write_part(UPDATES, PART, batch, self._folded(changed, batch) if is_fold else changed)
        if is_fold:
            self._forget(batch - FOLD)

    def latest(self, spark: SparkSession) -> DataFrame | None:
        """Return all windows, each as it was written last, or ``None`` when there is none."""
        written = self._outputs.read(spark, UPDATES)
        return None if written is None else latest(written, self._by)

    def _folded(self, changed: DataFrame, batch: int) -> DataFrame:
        """Return all windows as they are with this batch."""
        written = self._outputs.read(changed.sparkSession, UPDATES)
        if written is None:
            return changed
        return latest(written.unionByName(changed.withColumn(PART, F.lit(batch))), self._by)

    def _forget(self, end: int) -> None:
        """Delete what was written before the last fold but one."""
        for number in self._numbers():
            if number < end:
                shutil.rmtree(self._part(number))

    def _claim(self) -> None:
        """Write down whose the updates are, before the first of them."""
        if self._checkpoint is None or self._owner is not None:
            return
        self._directory.mkdir(parents=True, exist_ok=True)
        Outputs(self._directory).put(QUERY_FILE, f"{query_id(self._checkpoint)}\n")

    @property
    def _owner(self) -> str | None:
        """Whose the updates are; ``None`` when nobody claimed them."""
        try:
            return (self._directory / QUERY_FILE).read_text(encoding="utf-8").strip()
        except FileNotFoundError:
            return None

    def _numbers(self) -> list[int]:
        names = (path.name.partition("=")[2] for path in self._directory.glob(f"{PART}=*"))
        return sorted(int(number) for number in names if number.isdigit())

    def _part(self, number: int) -> Path:
        return self._directory / f"{PART}={number}"
