"""Alerts: a message for each silence, published exactly once despite crashes of the job.

Alerts are stored under a number before they are published, and the number is that of the batch at the broker. The
next run completes an interrupted one: the broker detects a batch that it has already.
"""

from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from gateway_spark.jobs.inputs import checked_sink, connection_options
from gateway_spark.jobs.job import JobRun

ALERTS: Final = "alerts"

#: The number of the last run whose alerts were published.
PUBLISHED: Final = "alerts.published"


def publish_alerts(run: JobRun, lasting: DataFrame) -> int:
    """Publish alerts for new silences; return their number."""
    done = _published(run)
    if run.outputs.has_part(ALERTS, "run", done + 1):
        _publish(run, done + 1)
        done += 1
    fresh = _fresh(run, lasting)
    count = fresh.count()
    if count:
        run.outputs.write_part(ALERTS, "run", done + 1, fresh)
        _publish(run, done + 1)
    return count


def _fresh(run: JobRun, lasting: DataFrame) -> DataFrame:
    """Return the silences without an alert; a silence is identified by its device and start."""
    published = run.outputs.read(run.spark, ALERTS)
    keys = [name for name in lasting.columns if name not in ("silence_s", "median_interval_s")]
    return lasting if published is None else lasting.join(published, keys, "left_anti")


def _publish(run: JobRun, number: int) -> None:
    """Publish the alerts stored under a number, and record that."""
    options = run.options
    alerts = run.spark.read.parquet(str(_part(run, number)))
    body = F.to_json(F.struct(*alerts.columns)).alias("body")
    given = connection_options(options) | {
        "exchange": options.alert_exchange,
        "routingKey": options.alert_routing_key,
        "producerName": options.alert_name,
        "batchId": str(number),
    }
    messages = alerts.select(body, F.lit("application/json").alias("content_type"))
    messages.write.format("gateway").mode("append").options(**checked_sink(given)).save()
    run.outputs.put(PUBLISHED, f"{number}\n")


def _published(run: JobRun) -> int:
    try:
        return int((run.outputs.directory / PUBLISHED).read_text())
    except FileNotFoundError:
        return 0


def _part(run: JobRun, number: int) -> Path:
    return run.outputs.directory / ALERTS / f"run={number}"
