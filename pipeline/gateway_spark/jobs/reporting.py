"""The report of a run, from the files in its directory; ``gateway pipeline plot`` writes it again."""

import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from gateway_spark.errors import OptionError
from gateway_spark.jobs.job import Job
from gateway_spark.jobs.outputs import RUN_FILE, Outputs
from gateway_spark.reports.page import ResultTables, page
from gateway_spark.reports.units import duration, options_in_words


def noted(directory: Path) -> Mapping[str, Any]:
    """Return the content of ``run.json``. :raises OptionError: if the directory has none."""
    try:
        run: Mapping[str, Any] = json.loads((directory / RUN_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise OptionError(f"{directory} has no {RUN_FILE}: it is not a directory of a job's results") from None
    return run


def write_report(job: Job, outputs: Outputs) -> Path:
    """Write the report of the run in this directory; return its path."""
    run = noted(outputs.directory)
    sections = job.page(ResultTables(outputs.directory), run["options"])
    figures = {"run": _period(run), **run["figures"], "tables": str(outputs.directory)}
    footer = f"options: {options_in_words(run['options'])}"
    return outputs.report(page(job.name, job.summary, figures, run["warnings"], sections, footer))


def _period(run: Mapping[str, Any]) -> str:
    began, ended = datetime.fromisoformat(run["started"]), datetime.fromisoformat(run["finished"])
    return f"{began:%Y-%m-%d %H:%M:%S} UTC, {duration((ended - began).total_seconds())}"
