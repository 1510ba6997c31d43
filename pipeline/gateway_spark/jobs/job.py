"""What a job is: a name, options of its own, what it does and how its results are shown."""

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
    """What a job takes in."""

    MESSAGES = "messages"
    TRACE = "trace"
    FILES = "files"


@dataclass(frozen=True, slots=True)
class JobRun:
    """One run of a job: the session it has, what was asked for, and where results and words go."""

    spark: SparkSession
    options: Namespace
    outputs: Outputs
    progress: ProgressPrinter
    conclude: "Callable[[JobOutcome], None]"
    """Writes the report and the summary; who performs for ever calls it now and then."""


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """How a run ended: figures for the summary, by name, and what its user should know."""

    figures: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Job:
    """A job, as its module offers it under the name ``JOB``."""

    name: str
    summary: str
    add_options: Callable[[ArgumentParser], None]
    perform: Callable[[JobRun], JobOutcome]
    page: Callable[[ResultTables, Mapping[str, Any]], list[PageSection]]
    reads: Reads = Reads.MESSAGES
    is_repeatable: bool = True
    """Whether ``--continuous`` means anything."""


def performing(
    build: Callable[[DataFrame, Namespace], Mapping[str, DataFrame]], source: Callable[[JobRun], DataFrame]
) -> Callable[[JobRun], JobOutcome]:
    """Return what performs a job that makes tables of what it reads, and no more."""

    def perform(run: JobRun) -> JobOutcome:
        messages = source(run)
        rows = {}
        for name, table in build(messages, run.options).items():
            rows[name] = run.outputs.write(name, table)
            run.progress.say(f"{name}: {rows[name]} rows")
        return JobOutcome(figures=rows)

    return perform
