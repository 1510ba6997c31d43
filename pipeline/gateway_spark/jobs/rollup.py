"""``rollup``: readings by device and time window, from a growing stream or from all stored messages.

    gateway pipeline run rollup --queue weather --field '$.temp' --by '$.origin' --time '$.time_hour' --window 1d

Table ``windows``: see `gateway_spark.transforms.rollup`.
"""

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pandas
from pyspark.sql import DataFrame

from gateway_spark.errors import PipelineError
from gateway_spark.jobs import inputs
from gateway_spark.jobs.job import Job, JobOutcome, JobRun
from gateway_spark.jobs.running import main
from gateway_spark.jobs.streaming import run_query
from gateway_spark.jobs.updates import Updates
from gateway_spark.jobs.words import fields, interval, share
from gateway_spark.reports import plots
from gateway_spark.reports.page import PageSection, ResultTables
from gateway_spark.transforms.columns import label_of
from gateway_spark.transforms.rollup import PERCENTILES, rollup

WINDOWS: Final = "windows"

#: Fields with a plot.
PLOTTED: Final = 8


def add_options(parser: ArgumentParser) -> None:
    """Add the options of a roll-up."""
    field_help = "a field: a JSON path into the body, or NAME=PATH (repeat)"
    parser.add_argument("--field", action="append", required=True, metavar="PATH", help=field_help)
    by_help = "what identifies a device: a column, headers.NAME or a JSON path (repeat; default: routing_key)"
    parser.add_argument("--by", action="append", metavar="NAME", help=by_help)
    parser.add_argument("--window", type=interval, default="1 hour", help="the length of a window (default: 1h)")
    parser.add_argument("--slide", type=interval, help="interval between windows (default: the window's length)")
    parser.add_argument("--time", default="timestamp", metavar="NAME", help="time of measurement (default: timestamp)")
    late_help = "for a stream: the longest delay of readings, by their own time (default: 10m)"
    parser.add_argument("--watermark", type=interval, default="10 minutes", help=late_help)
    parser.add_argument("--late", choices=("warn", "fail"), default="warn", help="if any are later (default: warn)")
    parser.add_argument("--percentile", type=share, action="append", help="in percent (repeat; default: 50 and 95)")
    checkpoint_help = "directory of the position in a stream, where the next run continues"
    parser.add_argument("--checkpoint", type=Path, metavar="DIR", help=checkpoint_help)


def perform(run: JobRun) -> JobOutcome:
    """Roll up the new messages of a stream since its checkpoint, or everything at once."""
    if inputs.follows(run.options):
        return _follow(run)
    rows = run.outputs.write(WINDOWS, windows_of(inputs.messages(run), run.options))
    return JobOutcome({"windows": rows})


def windows_of(messages: DataFrame, options: Namespace, watermark: str | None = None) -> DataFrame:
    """Return the roll-up that the options select."""
    return rollup(
        messages,
        fields(options.field),
        by=_by(options),
        window=options.window,
        slide=options.slide,
        time=options.time,
        watermark=watermark,
        percentiles=options.percentile or PERCENTILES,
    )


def _follow(run: JobRun) -> JobOutcome:
    """Roll up messages since the checkpoint; with ``--continuous`` update the results after each batch."""
    updates = Updates(run.outputs, _by(run.options), run.options.checkpoint)
    updates.begin()

    def write(changed: DataFrame, batch: int) -> None:
        updates.write(changed, batch)
        if run.options.continuous:
            run.conclude(_merged(run, updates))

    results = windows_of(inputs.message_stream(run), run.options, run.options.watermark)
    lateness = run_query(results, write, run.options, run.progress)
    outcome = _merged(run, updates)
    if not lateness.dropped:
        return outcome
    complaint = f"{lateness.dropped} readings were later than the watermark of {run.options.watermark} and are missing"
    if run.options.late == "fail":
        raise PipelineError(complaint)
    return JobOutcome(outcome.figures, (complaint,))


def _merged(run: JobRun, updates: Updates) -> JobOutcome:
    """Merge all updates into the windows."""
    windows = updates.latest(run.spark)
    return JobOutcome({"windows": 0 if windows is None else run.outputs.write(WINDOWS, windows)})


def page(tables: ResultTables, options: Mapping[str, Any]) -> list[PageSection]:
    """Show for each field the means of the devices with most messages, with the range from minimum to maximum."""
    windows = tables[WINDOWS]
    if windows.empty:
        return [PageSection("Windows", "No message has any of the fields.")]
    by = [label_of(name) for name in options.get("by", ["routing_key"])]
    windows = windows.assign(device=windows[by].astype(str).agg(" ".join, axis=1)).sort_values("window_start")
    busiest = list(windows.groupby("device")["messages"].sum().nlargest(plots.MOST_SERIES).index)
    shown = windows[windows["device"].isin(busiest)]
    pictures = [_plot(name, shown[shown["field"] == name]) for name in sorted(set(shown["field"]))[:PLOTTED]]
    text = f"{windows['device'].nunique()} devices; the plots show those with most messages: mean, minimum and maximum."
    return [
        PageSection("Means over time", text, pictures),
        PageSection("Devices", table=_devices(windows)),
        PageSection("Windows", table=windows.drop(columns="device")),
    ]


def _plot(name: str, windows: pandas.DataFrame) -> str:
    series, bands = {}, {}
    for device, own in windows.dropna(subset="avg").groupby("device"):
        series[str(device)] = (own["window_start"], own["avg"])
        bands[str(device)] = (own["min"], own["max"])
    return plots.lines(name, series, bands)


def _devices(windows: pandas.DataFrame) -> pandas.DataFrame:
    by_device = windows.groupby(["device", "field"], as_index=False)
    figures = {"windows": ("window_start", "nunique"), "readings": ("count", "sum")}
    return by_device.agg(**figures, min=("min", "min"), max=("max", "max")).sort_values("readings", ascending=False)


def _by(options: Namespace) -> list[str]:
    return options.by or ["routing_key"]


JOB: Final = Job("rollup", "Readings by device and time window", add_options, perform, page)

if __name__ == "__main__":
    sys.exit(main(JOB))
