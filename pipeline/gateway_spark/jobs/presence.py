"""``presence``: sessions of devices, their last messages, and devices that are silent for unusually long.

    gateway pipeline run presence --queue weather --by '$.origin' --time '$.time_hour' --session-gap 2h
    gateway pipeline run presence --queue readings --alert-exchange alerts --continuous --every 5m

Tables: ``devices``, ``sessions``, ``silences``, see `gateway_spark.transforms.presence`. With ``--alert-exchange``
a message is published for each device that is silent now, once for each silence.
"""

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

import pandas
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from gateway_spark.jobs import inputs
from gateway_spark.jobs.alerts import publish_alerts
from gateway_spark.jobs.job import Job, JobOutcome, JobRun
from gateway_spark.jobs.outputs import Outputs
from gateway_spark.jobs.running import main
from gateway_spark.jobs.words import duration_s, moment, name, number, require_labels
from gateway_spark.reports import plots
from gateway_spark.reports.page import PageSection, ResultTables
from gateway_spark.transforms.columns import label_of
from gateway_spark.transforms.presence import BY, FACTOR, devices, gaps, incomplete, sessions, sightings, silences

#: The columns of results beside the devices', and those that only the computation has.
COLUMNS: Final = (
    *("first_seen", "last_seen", "messages", "median_interval_s", "longest_gap_s", "session", "duration_s"),
    *("since", "until", "silence_s", "seen", "previous", "gap_s", "run"),
)

#: Devices with a line in the plot of sessions.
PLOTTED: Final = 40


def add_options(parser: ArgumentParser) -> None:
    """Add the options of devices and silences."""
    by_help = "what identifies a device: a column, headers.NAME or a JSON path (repeat; default: routing_key)"
    parser.add_argument("--by", type=name, action="append", metavar="NAME", help=by_help)
    parser.add_argument(
        "--time", type=name, default="timestamp", metavar="NAME", help="time of a message (default: timestamp)"
    )
    gap_help = "a gap longer than this begins a new session (default: 30m)"
    parser.add_argument("--session-gap", type=duration_s, default=1800.0, metavar="TIME", help=gap_help)
    factor_help = f"silent after this many times its own median interval (default: {FACTOR:g})"
    parser.add_argument("--factor", type=number(), default=FACTOR, metavar="N", help=factor_help)
    parser.add_argument("--as-of", type=moment, metavar="TIME", help="the time of the check (default: now)")
    alerts = parser.add_argument_group("alerts")
    alerts.add_argument("--alert-exchange", metavar="NAME", help="publish alerts about silent devices to it")
    alerts.add_argument(
        "--alert-routing-key", default="presence.silent", metavar="KEY", help="(default: presence.silent)"
    )
    alerts.add_argument("--alert-name", default="presence", metavar="NAME", help="producer name (default: presence)")


def check(options: Namespace, outputs: Outputs) -> None:
    """Check the names of the devices' columns."""
    require_labels(options.by or BY, COLUMNS)
    if options.alert_exchange is not None:
        inputs.require_one_broker(options)


def perform(run: JobRun) -> JobOutcome:
    """Write the tables, and publish alerts if requested."""
    options = run.options
    whole = sightings(inputs.messages(run), options.by or BY, options.time).persist()
    seen = gaps(whole).persist()
    silent = silences(seen, options.as_of or datetime.now(UTC), options.factor)
    tables = {"devices": devices(seen), "sessions": sessions(seen, options.session_gap), "silences": silent}
    figures: dict[str, Any] = {name: run.outputs.write(name, table) for name, table in tables.items()}
    seen.unpersist()
    anonymous = incomplete(whole).count()
    whole.unpersist()
    lasting = _lasting(run)
    figures["silent now"] = lasting.count()
    if options.alert_exchange is not None:
        figures["alerts"] = publish_alerts(run, lasting)
    if not anonymous:
        return JobOutcome(figures)
    subject = "1 message" if anonymous == 1 else f"{anonymous:,} messages"
    return JobOutcome(figures, (f"left out: {subject} without a device or a time",))


def _lasting(run: JobRun) -> DataFrame:
    """Return the current silences as they were written: computed again they might differ."""
    written = run.outputs.read(run.spark, "silences")
    assert written is not None
    return written.where(F.col("until").isNull()).drop("until")


def page(tables: ResultTables, options: Mapping[str, Any]) -> list[PageSection]:
    """Show the silent devices and the sessions."""
    found = tables["devices"]
    if found.empty:
        return [PageSection("Devices", "No message has a device.")]
    by = [label_of(name) for name in options.get("by", BY)]
    silent, met = tables["silences"], tables["sessions"]
    lasting = silent[silent["until"].isna()].drop(columns="until").sort_values("silence_s", ascending=False)
    ended = silent[silent["until"].notna()].sort_values("silence_s", ascending=False)
    text = f"A device is silent after more than {options['factor']:g} times the median of its own intervals."
    text += " The longest silence first."
    return [
        PageSection("Silent now", text, (), lasting),
        PageSection("Sessions", "", [_sessions(met, by)]),
        PageSection("Silences that ended", "The longest first.", (), ended),
        PageSection("Devices", "", (), found.sort_values("last_seen", ascending=False)),
    ]


def _sessions(met: pandas.DataFrame, by: list[str]) -> str:
    named = met.assign(device=met[by].astype(str).agg(" ".join, axis=1)).sort_values("first_seen")
    periods = {
        str(device): list(zip(own["first_seen"], own["last_seen"], strict=True))
        for device, own in list(named.groupby("device"))[:PLOTTED]
    }
    return plots.spans("Sessions over time", periods)


JOB: Final = Job("presence", "Sessions of devices, and silent devices", add_options, perform, page, check=check)

if __name__ == "__main__":
    sys.exit(main(JOB))
