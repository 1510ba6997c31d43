"""``compact``: merge the small files of an archive, day by day, and delete torn files and expired days.

    gateway pipeline run compact --archive data/archive --retain 90d

The archive may be read and written meanwhile, and the job may be killed at any moment: see
`gateway_spark.compaction`.
"""

import sys
from argparse import ArgumentParser
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from gateway_spark.archive import date_of, days
from gateway_spark.compaction import Tidied, Tidying, expire, locked
from gateway_spark.jobs.job import Job, JobOutcome, JobRun, Reads
from gateway_spark.jobs.running import main
from gateway_spark.jobs.words import duration_s, number
from gateway_spark.reports import plots
from gateway_spark.reports.page import PageSection, ResultTables

MIB: Final = 1024 * 1024

#: Days with a bar in the plot.
PLOTTED: Final = 40


def add_options(parser: ArgumentParser) -> None:
    """Add the options of sizes and retention."""
    small_help = "merge files smaller than this (default: 32)"
    parser.add_argument("--small", type=number(), default=32.0, metavar="MIB", help=small_help)
    target_help = "target size of merged files (default: 256)"
    parser.add_argument("--target", type=number(), default=256.0, metavar="MIB", help=target_help)
    parser.add_argument(
        "--retain", type=duration_s, metavar="TIME", help="delete days older than this (such as 90d; default: none)"
    )
    grace_help = "delete torn and left-over files not modified for this long (default: 1h)"
    parser.add_argument("--grace", type=duration_s, default=3600.0, metavar="TIME", help=grace_help)


def perform(run: JobRun) -> JobOutcome:
    """Compact each day of the archive, the earliest first."""
    options = run.options
    tidying = Tidying(run.spark, int(options.small * MIB), int(options.target * MIB), options.grace)
    results, expired = [], 0
    archive = options.archive.absolute()
    with locked(archive):
        for directory in days(archive, options.vhost):
            if _is_over(date_of(directory), options.retain):
                expire(directory)
                expired += 1
                run.progress.say(f"{directory}: deleted, it has expired")
                continue
            result = tidying.tidy(directory)
            results.append({"vhost": directory.parent.name, "date": directory.name, **asdict(result)})
            if result != Tidied.nothing(result.files):
                run.progress.say(
                    f"{directory}: {result.merged} files merged into {result.made}, {result.dropped} dropped"
                )
    table = run.spark.createDataFrame(results, _SCHEMA)
    run.outputs.write("days", table)
    return JobOutcome(
        {
            "days": len(results),
            "merged": sum(each["merged"] for each in results),
            "made": sum(each["made"] for each in results),
            "dropped": sum(each["dropped"] for each in results),
            "days dropped": expired,
        }
    )


def _is_over(day: datetime | None, retain_s: float | None) -> bool:
    if retain_s is None or day is None:
        return False
    return day + timedelta(days=1, seconds=retain_s) < datetime.now(UTC)


def page(tables: ResultTables, options: Mapping[str, Any]) -> list[PageSection]:
    """Show the files of each day and what was done."""
    found = tables["days"]
    if found.empty:
        return [PageSection("Days", "The archive is empty.")]
    by_day = found.groupby("date")["files"].sum()
    return [
        PageSection(
            "Days",
            "",
            [plots.bars("Files by day, afterwards", by_day.tail(60).to_dict())],
            found.sort_values("date", ascending=False),
        )
    ]


_SCHEMA: Final = "vhost string, date string, files long, merged long, made long, dropped long"

JOB: Final = Job(
    "compact",
    "Merge the small files of an archive",
    add_options,
    perform,
    page,
    reads=Reads.FILES,
)

if __name__ == "__main__":
    sys.exit(main(JOB))
