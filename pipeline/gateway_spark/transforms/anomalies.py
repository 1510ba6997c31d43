"""Anomalies by a robust z-score against the usual value of the device at that hour of the week.

The score is the distance from the median in standard deviations, of which there are two, one for each side of the
median. Each is the larger one of two estimates: by the median absolute deviation (MAD) of both sides, and by the 90th
percentile of the distances on its side, if that has enough readings. For a normal distribution both are equal; the
second one follows a long tail, as of delays or amounts, which the first would find anomalous as a whole. If more than
half of the readings are equal, the mean absolute deviation is used instead of the MAD.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from gateway_spark.transforms.columns import label_of, number_of, text_of, time_of

THRESHOLD: Final = 3.5

#: MAD and mean absolute deviation of a normal distribution, in standard deviations (Iglewicz and Hoaglin 1993), and the
#: 90th percentile of the distances on one side.
MAD_SCALE: Final = 0.6745
MEAN_SCALE: Final = 0.7979
TAIL_SCALE: Final = 1.6449

TAIL: Final = 0.9

#: With fewer readings on one side, a single anomaly would change the percentile.
LEAST_OF_TAIL: Final = 20

#: The largest share of readings beyond the threshold for which the score fits the data.
FITTING: Final = 0.02

SEASONS: Final[Mapping[str, Callable[[Column], Column]]] = {
    "hour-of-week": lambda time: F.weekday(time) * 24 + F.hour(time),
    "hour-of-day": F.hour,
    "none": lambda time: F.lit(0),
}


def scores(
    messages: DataFrame,
    field: str,
    by: Sequence[str] = ("routing_key",),
    time: str = "timestamp",
    season: str = "hour-of-week",
    label: str | None = None,
) -> DataFrame:
    """Return the readings with their scores: the device's columns, ``time``, ``season``, ``value``, ``median``,
    ``score``.

    ``score`` is signed, 0 for a reading equal to the median, and infinite for a different one if all others are
    equal. ``label`` names the known truth about a reading, and becomes the column ``is_anomaly`` (any value but 0).
    """
    devices = [label_of(name) for name in by]
    known = [] if label is None else [(number_of(label) != 0).alias("is_anomaly")]
    readings = messages.select(
        *(text_of(name).alias(column) for name, column in zip(by, devices, strict=True)),
        time_of(time).alias("time"),
        number_of(field).alias("value"),
        *known,
    ).where(F.col("value").isNotNull())
    seasoned = readings.withColumn("season", SEASONS[season](F.col("time")))
    keys = [*devices, "season"]
    # Group by join, not by window: a window would keep all readings of a device in the memory of one task.
    centred = seasoned.join(seasoned.groupBy(*keys).agg(F.median("value").alias("median")), keys)
    distance = F.abs(F.col("value") - F.col("median"))
    difference = F.col("value") - F.col("median")
    spreads = centred.groupBy(*keys).agg(
        F.median(distance).alias("mad"),
        F.avg(distance).alias("mean_distance"),
        _tail(difference).alias("tail_above"),
        _tail(-difference).alias("tail_below"),
    )
    columns = [*devices, "time", "season", "value", *(["is_anomaly"] if known else []), "median"]
    return centred.join(spreads, keys).select(*columns, _score().alias("score"))


def found(scores: DataFrame, threshold: float = THRESHOLD) -> DataFrame:
    """Return the readings whose score is beyond the threshold, in either direction."""
    return scores.where(F.abs("score") > threshold)


def quality(scores: DataFrame, threshold: float = THRESHOLD) -> DataFrame:
    """Return one row for labelled readings: ``true_positives``, ``false_positives``, ``false_negatives``,
    ``true_negatives``, ``precision`` and ``recall``, the last two ``null`` for a zero denominator.
    """
    is_found, is_one = F.abs("score") > threshold, F.coalesce("is_anomaly", F.lit(False))
    counted = scores.agg(
        F.count_if(is_found & is_one).alias("true_positives"),
        F.count_if(is_found & ~is_one).alias("false_positives"),
        F.count_if(~is_found & is_one).alias("false_negatives"),
        F.count_if(~is_found & ~is_one).alias("true_negatives"),
    )
    hits = F.col("true_positives")
    return counted.withColumn("precision", F.try_divide(hits, hits + F.col("false_positives"))).withColumn(
        "recall", F.try_divide(hits, hits + F.col("false_negatives"))
    )


def _score() -> Column:
    difference = F.col("value") - F.col("median")
    infinite = F.signum(difference) * F.lit(float("inf"))
    usual = F.when(F.col("mad") > 0, F.col("mad") / MAD_SCALE).otherwise(F.col("mean_distance") / MEAN_SCALE)
    tail = F.when(difference > 0, F.col("tail_above")).otherwise(F.col("tail_below")) / TAIL_SCALE
    deviation = F.greatest(usual, tail)  # ignores a tail that is null
    return F.when(difference == 0, F.lit(0.0)).when(deviation > 0, difference / deviation).otherwise(infinite)


def _tail(difference: Column) -> Column:
    """Return the 90th percentile of the distances above 0; ``null`` if there are too few."""
    is_there = difference > 0
    percentile = F.percentile(F.when(is_there, difference), F.lit(TAIL))
    return F.when(F.count_if(is_there) >= LEAST_OF_TAIL, percentile)
