"""``anomaly``: readings that differ from the usual value of the device at that hour of the week.

    gateway pipeline run anomaly --queue weather --field '$.temp' --by '$.origin' --time '$.time_hour'

Tables: ``anomalies``, the readings beyond the threshold, and with ``--label``, for labelled data, ``quality``. See
`gateway_spark.transforms.anomalies`. The job finds rare readings, which are not necessarily wrong.
"""

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from typing import Any, Final

from gateway_spark.jobs.inputs import messages
from gateway_spark.jobs.job import Job, JobOutcome, JobRun
from gateway_spark.jobs.outputs import Outputs
from gateway_spark.jobs.running import main
from gateway_spark.jobs.words import name, number, require_labels
from gateway_spark.reports import plots
from gateway_spark.reports.page import PageSection, ResultTables
from gateway_spark.transforms.anomalies import FITTING, SEASONS, THRESHOLD, found, quality, scores
from gateway_spark.transforms.columns import label_of

#: The columns of results beside the devices', and those that only the computation has.
COLUMNS: Final = (
    "time",
    "season",
    "value",
    "is_anomaly",
    "median",
    "score",
    "mad",
    "mean_distance",
    "tail_above",
    "tail_below",
)


def add_options(parser: ArgumentParser) -> None:
    """Add the options of the score."""
    parser.add_argument(
        "--field", type=name, required=True, metavar="PATH", help="the reading: a JSON path into the body"
    )
    by_help = "what identifies a device: a column, headers.NAME or a JSON path (repeat; default: routing_key)"
    parser.add_argument("--by", type=name, action="append", metavar="NAME", help=by_help)
    parser.add_argument(
        "--time", type=name, default="timestamp", metavar="NAME", help="time of measurement (default: timestamp)"
    )
    season_help = "compare with readings of the same season (default: hour-of-week)"
    parser.add_argument("--season", choices=list(SEASONS), default="hour-of-week", help=season_help)
    threshold_help = f"scores beyond this are anomalies (default: {THRESHOLD})"
    parser.add_argument("--threshold", type=number(), default=THRESHOLD, metavar="Z", help=threshold_help)
    parser.add_argument("--label", type=name, metavar="PATH", help="a label of the data: not 0 for an anomaly")


def check(options: Namespace, outputs: Outputs) -> None:
    """Check the names of the devices' columns."""
    require_labels(options.by or ["routing_key"], COLUMNS)


def perform(run: JobRun) -> JobOutcome:
    """Score all readings; write those beyond the threshold."""
    options = run.options
    by = options.by or ["routing_key"]
    scored = scores(messages(run), options.field, by, options.time, options.season, options.label).persist()
    figures: dict[str, Any] = {"readings": scored.count()}
    figures["anomalies"] = run.outputs.write("anomalies", found(scored, options.threshold).orderBy("time"))
    if options.label is not None:
        judged = quality(scored, options.threshold)
        run.outputs.write("quality", judged)
        figures |= {name: judged.first()[name] for name in ("precision", "recall")}  # type: ignore[index]
    scored.unpersist()
    return JobOutcome(figures, _misfit(figures["anomalies"], figures["readings"], options.threshold))


def _misfit(anomalies: int, readings: int, threshold: float) -> tuple[str, ...]:
    """Return a warning if so many readings are beyond the threshold that they are not unusual."""
    if not readings or anomalies / readings <= FITTING:
        return ()
    return (
        f"{anomalies / readings:.1%} of the readings are beyond a score of {threshold:g}: the score does not fit this "
        "data, whose readings are far from their median too often. Use a higher --threshold, or another --season.",
    )


def page(tables: ResultTables, options: Mapping[str, Any]) -> list[PageSection]:
    """Show the anomalies over time, the farthest first."""
    anomalies = tables["anomalies"]
    if anomalies.empty:
        return [PageSection("Anomalies", f"No reading is beyond a score of {options['threshold']}.")]
    by = [label_of(name) for name in options.get("by", ["routing_key"])]
    named = anomalies.assign(device=anomalies[by].astype(str).agg(" ".join, axis=1))
    most = named["device"].value_counts().head(plots.MOST_SERIES)
    groups = {str(name): (own["time"], own["value"]) for name, own in named.groupby("device") if name in most.index}
    farthest = anomalies.reindex(anomalies["score"].abs().sort_values(ascending=False, kind="stable").index)
    sections = [
        PageSection("When", "", [plots.points(f"{options['field']} of the anomalies", groups)]),
        PageSection("By device", "", [plots.bars("Anomalies", most.to_dict())]),
        PageSection("The farthest", "", (), farthest),
    ]
    if "quality" in tables:
        sections.insert(0, PageSection("Against the labels", "", (), tables["quality"]))
    return sections


JOB: Final = Job("anomaly", "Readings that differ from the usual value", add_options, perform, page, check=check)

if __name__ == "__main__":
    sys.exit(main(JOB))
