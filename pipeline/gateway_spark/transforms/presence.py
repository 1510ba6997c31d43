"""Presence of devices: sessions, and gaps that are unusually long for the device."""

from collections.abc import Sequence
from datetime import datetime
from functools import reduce
from operator import or_
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from gateway_spark.transforms.columns import label_of, text_of, time_of

#: A device is silent after this many times the median of its own intervals.
FACTOR: Final = 3.0

BY: Final = ("routing_key",)


def sightings(messages: DataFrame, by: Sequence[str] = BY, time: str = "timestamp") -> DataFrame:
    """Return the device and the time of each message: columns of the device, ``seen``; any of them may be ``null``."""
    named = [text_of(name).alias(label_of(name)) for name in by]
    return messages.select(*named, time_of(time).alias("seen"))


def incomplete(sightings: DataFrame) -> DataFrame:
    """Return the sightings without a time, or without a part of the device's name."""
    return sightings.where(_lacks_any(sightings.columns))


def appearances(messages: DataFrame, by: Sequence[str] = BY, time: str = "timestamp") -> DataFrame:
    """Return the messages' times and gaps: columns of the device, ``seen``, ``previous``, ``gap_s``.

    ``gap_s`` of a device's first message is ``null``. Messages without a time or a device are omitted.
    """
    return gaps(sightings(messages, by, time))


def gaps(sightings: DataFrame) -> DataFrame:
    """Return the complete sightings with the time since the device's previous one, as `appearances` does."""
    devices = [name for name in sightings.columns if name != "seen"]
    seen = sightings.where(~_lacks_any(sightings.columns))
    previous = F.lag("seen").over(Window.partitionBy(*devices).orderBy("seen"))
    return seen.withColumn("previous", previous).withColumn("gap_s", _seconds("seen") - _seconds("previous"))


def sessions(appearances: DataFrame, gap_s: float) -> DataFrame:
    """Return the sessions of each device; a gap of more than ``gap_s`` seconds begins a new one.

    Columns: the device's, ``session`` (from 1), ``first_seen``, ``last_seen``, ``messages``, ``duration_s``.
    """
    devices = devices_of(appearances)
    begins = (F.col("gap_s").isNull() | (F.col("gap_s") > gap_s)).cast("int")
    numbered = appearances.withColumn("session", F.sum(begins).over(Window.partitionBy(*devices).orderBy("seen")))
    return (
        numbered.groupBy(*devices, "session")
        .agg(F.min("seen").alias("first_seen"), F.max("seen").alias("last_seen"), F.count(F.lit(1)).alias("messages"))
        .withColumn("duration_s", _seconds("last_seen") - _seconds("first_seen"))
    )


def devices(appearances: DataFrame) -> DataFrame:
    """Return each device: ``first_seen``, ``last_seen``, ``messages``, ``median_interval_s``, ``longest_gap_s``.

    The median is that of the intervals between different times: devices may send several messages at once.
    """
    return appearances.groupBy(*devices_of(appearances)).agg(
        F.min("seen").alias("first_seen"),
        F.max("seen").alias("last_seen"),
        F.count(F.lit(1)).alias("messages"),
        F.median(F.when(F.col("gap_s") > 0, F.col("gap_s"))).alias("median_interval_s"),
        F.max("gap_s").alias("longest_gap_s"),
    )


def silences(appearances: DataFrame, as_of: datetime, factor: float = FACTOR) -> DataFrame:
    """Return the gaps longer than ``factor`` times the device's median, including those that last at ``as_of``.

    Columns: the device's, ``since``, ``until`` (``null`` while it lasts), ``silence_s``, ``median_interval_s``. A
    device that was seen at a single time has no median, so it is never silent.
    """
    keys = devices_of(appearances)
    known = devices(appearances).where(F.col("median_interval_s") > 0)
    medians = known.select(*keys, "median_interval_s")
    past = appearances.select(*keys, F.col("previous").alias("since"), F.col("seen").alias("until"), "gap_s")
    lasting = known.select(
        *keys,
        F.col("last_seen").alias("since"),
        F.lit(None).cast("timestamp").alias("until"),
        (F.lit(as_of).cast("double") - _seconds("last_seen")).alias("gap_s"),
    )
    return (
        past.unionByName(lasting)
        .join(medians, keys)
        .where(F.col("gap_s") > factor * F.col("median_interval_s"))
        .withColumnRenamed("gap_s", "silence_s")
    )


def devices_of(appearances: DataFrame) -> list[str]:
    """Return the columns that identify devices."""
    return [name for name in appearances.columns if name not in ("seen", "previous", "gap_s")]


def _lacks_any(names: Sequence[str]) -> Column:
    return reduce(or_, (F.col(name).isNull() for name in names))


def _seconds(name: str) -> Column:
    return F.col(name).cast("double")
