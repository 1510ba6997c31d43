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
from pyspark.sql import DataFrame, Observation

from gateway_spark.errors import OptionError
from gateway_spark.jobs import inputs
from gateway_spark.jobs.job import Job, JobOutcome, JobRun
from gateway_spark.jobs.outputs import Outputs
from gateway_spark.jobs.running import main
from gateway_spark.jobs.streaming import OBSERVED, BatchCounts, run_query
from gateway_spark.jobs.updates import Updates, places_in
from gateway_spark.jobs.words import delay, field, fields, interval, micros_of, name, require_labels, share
from gateway_spark.remote import is_remote
from gateway_spark.reports import plots
from gateway_spark.reports.page import PageSection, ResultTables
from gateway_spark.status import batch_done
from gateway_spark.transforms.columns import label_of, time_of
from gateway_spark.transforms.rollup import PERCENTILES, label_of_percentile, rollup

WINDOWS: Final = "windows"

#: The columns of results beside the devices', and those that only the computation has.
COLUMNS: Final = ("window_start", "window_end", "field", "messages", "count", "min", "max", "avg")
BETWEEN: Final = ("time", "readings", "reading", "window", "batch")

#: Fields with a plot.
PLOTTED: Final = 8


def add_options(parser: ArgumentParser) -> None:
    """Add the options of a roll-up."""
    field_help = "a field: a JSON path into the body, or NAME=PATH (repeat)"
    parser.add_argument("--field", type=field, action="append", required=True, metavar="PATH", help=field_help)
    by_help = "what identifies a device: a column, headers.NAME or a JSON path (repeat; default: routing_key)"
    parser.add_argument("--by", type=name, action="append", metavar="NAME", help=by_help)
    parser.add_argument("--window", type=interval, default="1 hour", help="the length of a window (default: 1h)")
    parser.add_argument("--slide", type=interval, help="interval between windows (default: the window's length)")
    parser.add_argument(
        "--time", type=name, default="timestamp", metavar="NAME", help="time of measurement (default: timestamp)"
    )
    watermark_help = "with --checkpoint: the longest delay of messages, by their own time (default: 10m)"
    parser.add_argument("--watermark", type=delay, default="10 minutes", help=watermark_help)
    late_help = "if messages are later and missing (default: fail, with --continuous warn)"
    parser.add_argument("--late", choices=("warn", "fail"), help=late_help)
    parser.add_argument("--percentile", type=share, action="append", help="in percent (repeat; default: 50 and 95)")
    checkpoint_help = "directory of the position in a stream, where the next run continues"
    parser.add_argument("--checkpoint", type=Path, metavar="DIR", help=checkpoint_help)


def check(options: Namespace, outputs: Outputs) -> None:
    """Check the windows, the names of the devices' columns, and whether the earlier results fit to the checkpoint."""
    if options.slide is not None and micros_of(options.slide) > micros_of(options.window):
        raise OptionError(f"--slide {options.slide} is longer than --window {options.window}: times would be left out")
    percentiles = [label_of_percentile(share) for share in options.percentile or PERCENTILES]
    require_labels(_by(options), (*COLUMNS, *percentiles, *BETWEEN))
    if len({label_of(each) for each in fields(options.field)}) < len(options.field):
        raise OptionError(
            "two of the options --field have the same name: give them others, as in --field inside=$.in.t"
        )
    if options.checkpoint is not None:
        Updates(outputs, _by(options), options.checkpoint).require_fitting()


def perform(run: JobRun) -> JobOutcome:
    """Roll up the new messages of a stream since its checkpoint, or everything at once."""
    if inputs.follows(run.options):
        return _follow(run)
    messages, observation = inputs.messages(run), Observation(OBSERVED)
    rows = run.outputs.write(WINDOWS, windows_of(messages, run.options, observed=observation))
    # Spark drops what it should observe when it finds that there is no row.
    timeless = observation.get["timeless"] if rows else messages.where(time_of(run.options.time).isNull()).count()
    return JobOutcome({"windows": rows}, _timeless(timeless, run.options))


def windows_of(
    messages: DataFrame, options: Namespace, watermark: str | None = None, observed: str | Observation | None = None
) -> DataFrame:
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
        observed=observed,
    )


def _follow(run: JobRun) -> JobOutcome:
    """Roll up messages since the checkpoint; with ``--continuous`` update the results after each batch."""
    updates = Updates(run.outputs, _by(run.options), run.options.checkpoint)
    updates.begin()
    late = Lateness(run, updates)

    def write(changed: DataFrame, batch: int) -> None:
        updates.write(changed, batch)
        if run.options.continuous:
            run.conclude(late.outcome(batch))

    def conclude() -> None:
        if run.options.continuous and updates.has_parts():
            run.conclude(late.outcome())

    results = windows_of(inputs.message_stream(run), run.options, run.options.watermark, OBSERVED)
    if is_remote(run.options.master):  # the server calls the function, in a process without our state
        run_query(results, updates.write, run.options, run.progress, late.counts, late.is_over, conclude)
    else:
        run_query(results, write, run.options, run.progress, late.counts, late.is_over)
    return late.outcome()


class Lateness:
    """The messages that a run has read and that are in no window, because they were later than the watermark.

    Spark counts dropped groups of messages, not messages. So they are what remains of those that were read.
    """

    def __init__(self, run: JobRun, updates: Updates) -> None:
        self.counts = BatchCounts()
        self._run = run
        self._updates = updates
        options = run.options
        done = None if options.checkpoint is None else batch_done(options.checkpoint)
        self._before = 0 if done is None else updates.places(run.spark, done + 1)
        self._after_batch = (done, self._before)
        self._fails = (options.late or ("warn" if options.continuous else "fail")) == "fail"
        self._failure: str | None = None

    def is_over(self) -> bool:
        """Return whether the run has failed."""
        return self._failure is not None

    def outcome(self, batch: int | None = None) -> JobOutcome:
        """Merge the updates into the windows; return the figures, with the messages that were late.

        During a ``batch`` the metrics are those of the batches before it.
        """
        windows = self._updates.latest(self._run.spark)
        figures = {"windows": 0 if windows is None else self._run.outputs.write(WINDOWS, windows)}
        written = self._run.outputs.read(self._run.spark, WINDOWS) if figures["windows"] else None
        places = 0 if written is None else places_in(written)
        read = self.counts.total(batch)
        counted = places if batch is None else self._after_batch[1]
        self._after_batch = (batch, places)
        late = read.places - (counted - self._before)
        warnings = _timeless(read.timeless, self._run.options)
        if late <= 0:
            return JobOutcome(figures, warnings)
        complaint = _late(late, self._run.options)
        self._failure = complaint if self._fails else None
        return JobOutcome(figures | {"late messages": late}, (complaint, *warnings), self._failure)


def _late(count: int, options: Namespace) -> str:
    several = ", each counted for each of its windows," if options.slide not in (None, options.window) else ""
    subject = f"1 message{several} was" if count == 1 else f"{count:,} messages{several} were"
    return (
        f"{subject} later than the watermark of {options.watermark} and missing: "
        "use a longer --watermark, with another --checkpoint and --out, to include them"
    )


def _timeless(count: int, options: Namespace) -> tuple[str, ...]:
    if not count:
        return ()
    subject = "1 message is" if count == 1 else f"{count:,} messages are"
    return (f"{subject} in no window, without a time in {options.time}",)


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
        PageSection("Windows", "The latest first.", table=windows.drop(columns="device").iloc[::-1]),
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


JOB: Final = Job("rollup", "Readings by device and time window", add_options, perform, page, check=check)

if __name__ == "__main__":
    sys.exit(main(JOB))
