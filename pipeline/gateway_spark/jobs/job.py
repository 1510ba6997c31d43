"""The definition of a job: its name, options, work and report."""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from gateway_spark.jobs.outputs import Outputs
from gateway_spark.jobs.progress import ProgressPrinter
from gateway_spark.reports.page import PageSection, ResultTables


class Reads(Enum):
    """The input of a job."""

    MESSAGES = "messages"
    TRACE = "trace"
    FILES = "files"


@dataclass(frozen=True, slots=True)
class JobRun:
    """One run of a job: its session, options, outputs and progress printer."""

    spark: SparkSession
    options: Namespace
    outputs: Outputs
    progress: ProgressPrinter
    conclude: "Callable[[JobOutcome], None]"
    """Writes the report and the summary; a continuous job calls it regularly."""


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """The result of a run: figures for the summary, by name, and warnings for the user.

    ``failure`` is the warning for which the run fails, after its results were written.
    """

    figures: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    failure: str | None = None


def no_check(options: Namespace, outputs: Outputs) -> None:
    """Check nothing."""


@dataclass(frozen=True, slots=True)
class Job:
    """A job, which its module exports as ``JOB``."""

    name: str
    summary: str
    add_options: Callable[[ArgumentParser], None]
    perform: Callable[[JobRun], JobOutcome]
    page: Callable[[ResultTables, Mapping[str, Any]], list[PageSection]]
    reads: Reads = Reads.MESSAGES
    check: Callable[[Namespace, Outputs], None] = no_check
    """Checks the job's own options before Spark is started."""
    is_repeatable: bool = True
    """Whether the job supports ``--continuous``."""


def performing(
    build: Callable[[DataFrame, Namespace], Mapping[str, DataFrame]], source: Callable[[JobRun], DataFrame]
) -> Callable[[JobRun], JobOutcome]:
    """Return the function of a job that only builds tables from its input."""

    def perform(run: JobRun) -> JobOutcome:
        messages = source(run)
        rows = {}
        for name, table in build(messages, run.options).items():
            rows[name] = run.outputs.write(name, table)
            run.progress.say(f"{name}: {rows[name]} rows")
        return JobOutcome(figures=rows)

    return perform
