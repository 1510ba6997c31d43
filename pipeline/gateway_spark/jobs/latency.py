"""``latency``: times of messages from publish to delivery to settlement, by virtual host, protocol and queue.

    gateway pipeline run latency --archive data/trace

Reads the trace of virtual hosts with tracing to a table. Tables: ``latencies`` (in milliseconds), ``throughput``,
``endings``, see `gateway_spark.transforms.latencies`.
"""

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from typing import Any, Final

import pandas
from pyspark.sql import DataFrame

from gateway_spark.jobs.inputs import trace
from gateway_spark.jobs.job import Job, Reads, performing
from gateway_spark.jobs.running import main
from gateway_spark.jobs.words import interval
from gateway_spark.reports import plots
from gateway_spark.reports.page import PageSection, ResultTables
from gateway_spark.transforms.latencies import BY, deliveries, endings, latencies, throughput

#: Bars of a plot.
PLOTTED: Final = 15


def add_options(parser: ArgumentParser) -> None:
    """Add the options of grouping."""
    by_help = "vhost, protocol, queue (repeat; default: all three)"
    parser.add_argument("--by", action="append", choices=BY, help=by_help)
    parser.add_argument("--window", type=interval, default="1 minute", help="count throughput by this (default: 1m)")


def tables_of(trace: DataFrame, options: Namespace) -> dict[str, DataFrame]:
    """Return the tables that the options select."""
    return {
        "latencies": latencies(deliveries(trace), options.by or BY),
        "throughput": throughput(trace, options.window),
        "endings": endings(trace),
    }


def page(tables: ResultTables, options: Mapping[str, Any]) -> list[PageSection]:
    """Show the slowest first, and the throughput over time."""
    found = tables["latencies"]
    if found.empty:
        return [PageSection("Latencies", "The trace contains no delivery.")]
    by = options.get("by") or list(BY)
    named = found.assign(name=found[by].astype(str).agg(" ".join, axis=1)).set_index("name")
    pictures = [
        plots.bars(title, named[column].dropna().nlargest(PLOTTED).to_dict(), "ms")
        for title, column in (
            ("Publish to deliver, 99th percentile", "to_deliver_p99"),
            ("Deliver to settle, 99th percentile", "to_settle_p99"),
        )
    ]
    return [
        PageSection(
            "Latencies",
            "The slowest deliveries first. Redelivered is a share of the deliveries.",
            pictures,
            found.sort_values("to_deliver_p99", ascending=False, kind="stable"),
        ),
        PageSection("Throughput", "", [_rates(tables["throughput"])]),
        PageSection("Other outcomes of messages", "", (), tables["endings"]),
    ]


def _rates(counted: pandas.DataFrame) -> str:
    whole = counted.groupby(["event", "window_start"], as_index=False)["messages"].sum()
    series = {str(event): (own["window_start"], own["messages"]) for event, own in whole.groupby("event")}
    return plots.lines("Messages by window", series, unit="messages")


JOB: Final = Job(
    "latency",
    "From publish to deliver to settle",
    add_options,
    performing(tables_of, trace),
    page,
    reads=Reads.TRACE,
)

if __name__ == "__main__":
    sys.exit(main(JOB))
