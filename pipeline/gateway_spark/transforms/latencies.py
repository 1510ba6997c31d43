"""Times of messages from publish to delivery to settlement, from the trace: percentiles, throughput, redeliveries."""

from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

PERCENTILES: Final = (0.5, 0.95, 0.99)

#: The default grouping.
BY: Final = ("vhost", "protocol", "queue")

#: The events that end a delivery.
ENDS: Final = ("settle", "requeue")

SPANS: Final = ("to_deliver", "to_settle", "in_all")

#: Nanoseconds per millisecond.
MS: Final = 1e6


def deliveries(trace: DataFrame) -> DataFrame:
    """Return a row for each delivery.

    Columns: ``vhost``, ``protocol`` (the consumer's), ``queue``, ``position``, ``delivered_at``, ``redelivered``, and
    the milliseconds ``to_deliver`` (since the publish), ``to_settle`` (since the delivery), ``in_all`` (from publish to
    settle).

    Times of events outside the trace are ``null``: a publish before its start, or a settlement after its end. Times
    are from the broker's monotonic clock, so changes of the wall clock have no effect.
    """
    stay = Window.partitionBy("vhost", "queue", "position").orderBy("monotonic_ns")
    published = F.first("published", ignorenulls=True).over(stay)
    ended = F.when(F.lead("event").over(stay).isin(*ENDS), F.lead("monotonic_ns").over(stay))
    return (
        _with_publishing(trace)
        .where(F.col("event").isin("enqueue", "deliver", *ENDS))
        .withColumns({"published": published, "ended": ended})
        .where(F.col("event") == "deliver")
        .select(
            "vhost",
            "protocol",
            "queue",
            "position",
            F.col("timestamp").alias("delivered_at"),
            F.coalesce("redelivered", F.lit(False)).alias("redelivered"),
            ((F.col("monotonic_ns") - F.col("published")) / MS).alias("to_deliver"),
            ((F.col("ended") - F.col("monotonic_ns")) / MS).alias("to_settle"),
            ((F.col("ended") - F.col("published")) / MS).alias("in_all"),
        )
    )


def latencies(deliveries: DataFrame, by: Sequence[str] = BY) -> DataFrame:
    """Return for each group the ``deliveries``, the share ``redelivered`` and the percentiles of each duration.

    The columns of durations are ``to_deliver_p50`` and so on, in milliseconds. They are exact.
    """
    return (
        deliveries.groupBy(*by)
        .agg(
            F.count(F.lit(1)).alias("deliveries"),
            F.avg(F.col("redelivered").cast("double")).alias("redelivered"),
            *(_percentile(span, share) for span in SPANS for share in PERCENTILES),
        )
        .orderBy(*by)
    )


def throughput(trace: DataFrame, window: str = "1 minute") -> DataFrame:
    """Return the number of messages published, delivered and settled: a row for each window and event."""
    return (
        trace.where(F.col("event").isin("publish", "deliver", "settle"))
        .groupBy(F.window("timestamp", window), "vhost", "event")
        .agg(F.count(F.lit(1)).alias("messages"))
        .select(F.col("window.start").alias("window_start"), "vhost", "event", "messages")
        .orderBy("window_start", "vhost", "event")
    )


def endings(trace: DataFrame) -> DataFrame:
    """Return the other outcomes of messages: ``vhost``, ``queue``, ``event`` (expire ...), ``reason``, ``messages``."""
    others = trace.where(~F.col("event").isin("publish", "route", "enqueue", "deliver", "settle"))
    return (
        others.groupBy("vhost", "queue", "event", "reason")
        .agg(F.count(F.lit(1)).alias("messages"))
        .orderBy(F.desc("messages"), "vhost", "queue", "event", "reason")
    )


def _with_publishing(trace: DataFrame) -> DataFrame:
    """Add the publish times to events of messages; a number may be reused after a restart of the broker."""
    so_far = Window.partitionBy("vhost", "trace_id").orderBy("monotonic_ns")
    moment = F.when(F.col("event") == "publish", F.col("monotonic_ns"))
    published = F.when(F.col("trace_id").isNotNull(), F.last(moment, ignorenulls=True).over(so_far))
    return trace.withColumn("published", published)


def _percentile(span: str, share: float) -> Column:
    return F.percentile(span, F.lit(share)).alias(f"{span}_p{share * 100:g}")
