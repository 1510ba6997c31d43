"""Readings by device and time window: count, minimum, maximum, mean and percentiles."""

from collections.abc import Mapping, Sequence
from typing import Final

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from gateway_spark.transforms.columns import label_of, number_of, text_of, time_of

PERCENTILES: Final = (0.5, 0.95)

#: Relative accuracy of ranks, one in this number; with fewer readings in a window, percentiles are exact.
ACCURACY: Final = 10_000


def rollup(
    messages: DataFrame,
    fields: Mapping[str, str],
    by: Sequence[str] = ("routing_key",),
    window: str = "1 hour",
    slide: str | None = None,
    time: str = "timestamp",
    watermark: str | None = None,
    percentiles: Sequence[float] = PERCENTILES,
    observed: str | Observation | None = None,
) -> DataFrame:
    """Return a row for each device, window and field.

    ``fields`` maps the name of a field to its location (`gateway_spark.transforms.columns`), ``by`` identifies
    devices, ``time`` is the time of a reading. Columns: the devices', ``window_start``, ``window_end``, ``field``,
    ``messages`` (all), ``count`` (those with the field), ``min``, ``max``, ``avg``, ``p50`` and so on. With a
    ``watermark``, which a stream needs, later readings are dropped.

    ``observed`` names metrics of Spark: ``places``, the number of windows that all messages belong to, late or not, and
    ``timeless``, the number of messages without a time, which belong to no window.
    """
    devices = [label_of(name) for name in by]
    readings = messages.select(
        *(text_of(name).alias(label) for name, label in zip(by, devices, strict=True)),
        time_of(time).alias("time"),
        _fields(fields).alias("readings"),
    )
    if observed is not None:
        places = F.coalesce(F.sum(_windows_at("time", window, slide or window)), F.lit(0)).cast("long")
        readings = readings.observe(
            observed, places.alias("places"), F.count_if(F.col("time").isNull()).alias("timeless")
        )
    readings = readings.select(*devices, "time", F.explode("readings").alias("reading"))
    if watermark is not None:
        readings = readings.withWatermark("time", watermark)
    windows = readings.groupBy(*devices, F.window("time", window, slide), F.col("reading.field").alias("field"))
    return windows.agg(*_figures(percentiles)).select(
        *devices,
        F.col("window.start").alias("window_start"),
        F.col("window.end").alias("window_end"),
        "field",
        "messages",
        "count",
        "min",
        "max",
        "avg",
        *(label_of_percentile(share) for share in percentiles),
    )


def label_of_percentile(share: float) -> str:
    """Return the column of a percentile: 0.5 is ``p50``, 0.999 is ``p99.9``, whose dot becomes an underscore."""
    return f"p{share * 100:g}".replace(".", "_")


def latest(updates: DataFrame, by: Sequence[str]) -> DataFrame:
    """Return the latest version of windows that a stream wrote repeatedly, distinguished by ``batch``."""
    keys = [*(label_of(name) for name in by), "window_start", "window_end", "field"]
    others = [name for name in updates.columns if name not in keys]
    newest = F.max_by(F.struct(*others), F.col("batch")).alias("newest")
    return updates.groupBy(*keys).agg(newest).select(*keys, "newest.*").drop("batch")


def _windows_at(time: str, window: str, slide: str) -> Column:
    """Return the number of windows that contain a time: their starts are multiples of ``slide`` since 1970."""
    length, step = (
        F.unix_micros(F.timestamp_seconds(F.lit(0)) + F.expr(f"interval {each}")) for each in (window, slide)
    )
    last = F.unix_micros(time)
    before = last - length
    return ((last - F.pmod(last, step)) - (before - F.pmod(before, step))) / step


def _fields(fields: Mapping[str, str]) -> Column:
    pairs = (F.struct(F.lit(name).alias("field"), number_of(path).alias("value")) for name, path in fields.items())
    return F.array(*pairs)


def _figures(percentiles: Sequence[float]) -> list[Column]:
    value = F.col("reading.value")
    return [
        F.count(F.lit(1)).alias("messages"),
        F.count(value).alias("count"),
        F.min(value).alias("min"),
        F.max(value).alias("max"),
        F.avg(value).alias("avg"),
        *(F.percentile_approx(value, share, ACCURACY).alias(label_of_percentile(share)) for share in percentiles),
    ]
