"""The results of a run: Parquet tables, ``run.json`` and ``report.html`` in one directory.

A table is written beside the old one and replaces it when complete, so a killed run leaves the earlier results.
"""

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from gateway_spark.errors import OptionError, PipelineError

RUN_FILE: Final = "run.json"
REPORT_FILE: Final = "report.html"

#: The file that Spark writes last.
SPARKS_END: Final = "_SUCCESS"


class Outputs:
    """The directory of one job's results, which the driver and the executors must both be able to access."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory.absolute()

    def require_writable(self) -> None:
        """Check that the directory exists or can be created. :raises OptionError: if not."""
        nearest = next(path for path in (self.directory, *self.directory.parents) if path.exists())
        if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
            reason = "it is not writable" if nearest.is_dir() else "it is not a directory"
            raise OptionError(f"the results cannot be written to {self.directory}: {nearest}: {reason}")

    def write(self, name: str, table: DataFrame) -> int:
        """Replace the table of this name; return its row count."""
        path, fresh, old = (self.directory / f"{name}{suffix}" for suffix in ("", ".new", ".old"))
        table.write.mode("overwrite").parquet(str(fresh))
        if not fresh.is_dir():
            raise PipelineError(
                f"{fresh} is not here, though Spark has written it: --out must be on a shared file system"
            )
        shutil.rmtree(old, ignore_errors=True)
        if path.exists():
            path.rename(old)
        fresh.rename(path)
        shutil.rmtree(old, ignore_errors=True)
        return table.sparkSession.read.parquet(str(path)).count()

    def write_part(self, name: str, part: str, number: int, table: DataFrame) -> None:
        """Replace or add the part ``<part>=<number>`` of a table."""
        table.write.mode("overwrite").parquet(str(self.directory / name / f"{part}={number}"))

    def read(self, spark: SparkSession, name: str) -> DataFrame | None:
        """Return a table, with a column for the number of its parts, or ``None``."""
        path = self.directory / name
        return spark.read.parquet(str(path)) if any(path.rglob("*.parquet")) else None

    def has_part(self, name: str, part: str, number: int) -> bool:
        """Return whether a part is complete; an incomplete one is removed."""
        path = self.directory / name / f"{part}={number}"
        if (path / SPARKS_END).exists():
            return True
        shutil.rmtree(path, ignore_errors=True)
        return False

    def note(self, run: Mapping[str, Any]) -> None:
        """Write ``run.json``: the job, its options and its result."""
        self.directory.mkdir(parents=True, exist_ok=True)
        self.put(RUN_FILE, json.dumps(run, indent=2, default=str, ensure_ascii=False) + "\n")

    def report(self, page: str) -> Path:
        """Write the page; return its path."""
        return self.put(REPORT_FILE, page)

    def put(self, name: str, text: str) -> Path:
        """Replace the file of this name atomically; return its path."""
        path = self.directory / name
        fresh = path.with_name(f"{name}.new")
        fresh.write_text(text, encoding="utf-8")
        os.replace(fresh, path)
        return path
