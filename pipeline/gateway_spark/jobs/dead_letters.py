"""``dead-letters``: where and why messages were dead-lettered, their paths, and loops.

    gateway pipeline run dead-letters --queue dead
    gateway pipeline run dead-letters --archive data/archive --queue dead

Reads any stream or archived queue that a dead-letter exchange routes to. Tables: ``causes``, ``chains``, ``keys``,
``samples``, see `gateway_spark.transforms.deaths`.
"""

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from gateway_spark.jobs.inputs import messages
from gateway_spark.jobs.job import Job, performing
from gateway_spark.jobs.running import main
from gateway_spark.jobs.words import count, moment
from gateway_spark.reports import plots
from gateway_spark.reports.page import PageSection, ResultTables
from gateway_spark.transforms.deaths import causes, chains, deaths, samples, top_keys

#: Bars of a plot.
PLOTTED: Final = 15


def add_options(parser: ArgumentParser) -> None:
    """Add the options of the tables."""
    parser.add_argument("--as-of", type=moment, metavar="TIME", help="compute ages at this time (default: now)")
    parser.add_argument("--top", type=count, default=20, metavar="N", help="number of routing keys (default: 20)")
    parser.add_argument("--samples", type=count, default=3, metavar="N", help="bodies for each cause (default: 3)")


def tables_of(messages: DataFrame, options: Namespace) -> dict[str, DataFrame]:
    """Return the tables that the options select."""
    dead = deaths(messages.where(F.size("x_death") > 0))
    return {
        "causes": causes(dead, options.as_of or datetime.now(UTC)),
        "chains": chains(messages),
        "keys": top_keys(dead, options.top),
        "samples": samples(dead, options.samples),
    }


def page(tables: ResultTables, options: Mapping[str, Any]) -> list[PageSection]:
    """Show causes and paths, most deaths first."""
    found = tables["causes"]
    if found.empty:
        return [PageSection("Causes", "No message was dead-lettered.")]
    names = found["died_in"] + " (" + found["reason"] + ")"
    most = found.assign(name=names).groupby("name")["deaths"].sum().nlargest(PLOTTED)
    ways = tables["chains"]
    loops = ways[ways["is_loop"]]
    text = f"{len(loops)} of {len(ways)} paths are loops: messages died in one queue for the same reason repeatedly."
    return [
        PageSection(
            "Causes",
            "",
            [plots.bars("Deaths by queue and reason", most.to_dict())],
            found.sort_values("deaths", ascending=False),
        ),
        PageSection("Paths", text, (), ways.sort_values("messages", ascending=False, kind="stable")),
        PageSection("Routing keys", "", (), tables["keys"]),
        PageSection("Samples", "", (), tables["samples"]),
    ]


JOB: Final = Job("dead-letters", "Dead letters by queue and reason", add_options, performing(tables_of, messages), page)

if __name__ == "__main__":
    sys.exit(main(JOB))
