"""Where a run leaves its results: Parquet tables, ``run.json`` and ``report.html`` in one directory.

A table is written beside the old one and takes its place when it is whole, so a run that is killed leaves the results
of the one before.
"""

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

RUN_FILE: Final = "run.json"
REPORT_FILE: Final = "report.html"

#: The file with which Spark ends what it wrote.
SPARKS_END: Final = "_SUCCESS"


class Outputs:
    """The directory of one job's results. It has to be where the driver and the executors both see it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory.absolute()

    def write(self, name: str, table: DataFrame) -> int:
        """Put a table in place of the one of this name; return how many rows it has."""
        path, fresh, old = (self.directory / f"{name}{suffix}" for suffix in ("", ".new", ".old"))
        table.write.mode("overwrite").parquet(str(fresh))
        shutil.rmtree(old, ignore_errors=True)
        if path.exists():
            path.rename(old)
        fresh.rename(path)
        shutil.rmtree(old, ignore_errors=True)
        return table.sparkSession.read.parquet(str(path)).count()

    def write_part(self, name: str, part: str, number: int, table: DataFrame) -> None:
        """Put the part ``<part>=<number>`` of a table in place of the one that is there, if it is there."""
        table.write.mode("overwrite").parquet(str(self.directory / name / f"{part}={number}"))

    def read(self, spark: SparkSession, name: str) -> DataFrame | None:
        """Return a table that was written, with its parts told apart by a column, or ``None``."""
        path = self.directory / name
        return spark.read.parquet(str(path)) if any(path.rglob("*.parquet")) else None

    def has_part(self, name: str, part: str, number: int) -> bool:
        """Tell whether a part was written to its end; one that was begun only is removed."""
        path = self.directory / name / f"{part}={number}"
        if (path / SPARKS_END).exists():
            return True
        shutil.rmtree(path, ignore_errors=True)
        return False

    def note(self, run: Mapping[str, Any]) -> None:
        """Write ``run.json``: what ran, how it was asked for and what came of it."""
        self.directory.mkdir(parents=True, exist_ok=True)
        self.put(RUN_FILE, json.dumps(run, indent=2, default=str, ensure_ascii=False) + "\n")

    def report(self, page: str) -> Path:
        """Write the page; return where it is."""
        return self.put(REPORT_FILE, page)

    def put(self, name: str, text: str) -> Path:
        """Put a file in place of the one of this name, whole; return where it is."""
        path = self.directory / name
        fresh = path.with_name(f"{name}.new")
        fresh.write_text(text, encoding="utf-8")
        os.replace(fresh, path)
        return path
