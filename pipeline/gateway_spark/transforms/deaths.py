"""Dead letters: where and why messages died, their paths, and loops."""

from datetime import datetime
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

#: The length of a sample body: characters of text, bytes of anything else.
SAMPLED: Final = 200

_PLACE: Final = ("vhost", "queue", "partition", "offset")


def deaths(messages: DataFrame) -> DataFrame:
    """Return a row for each entry of each message's ``x-death``.

    Columns: ``died_in``, ``reason``, ``exchange``, ``count``, ``died_at``, ``routing_key`` (at that time), and the
    current ``vhost``, ``queue``, ``partition``, ``offset``, ``timestamp`` and ``body`` of the message.
    """
    death = F.col("death")
    return messages.select(*_PLACE, "timestamp", "body", F.explode("x_death").alias("death")).select(
        death["queue"].alias("died_in"),
        death["reason"].alias("reason"),
        death["exchange"].alias("exchange"),
        death["count"].alias("count"),
        death["time"].alias("died_at"),
        F.get(death["routing_keys"], F.lit(0)).alias("routing_key"),
        *_PLACE,
        "timestamp",
        "body",
    )


def causes(deaths: DataFrame, as_of: datetime) -> DataFrame:
    """Return the number of deaths by ``died_in``, ``reason`` and ``exchange``.

    ``messages`` died there at least once, ``deaths`` times in total; ``first`` and ``last`` are times, and
    ``oldest_s`` is the age of the earliest death at ``as_of``.
    """
    return (
        deaths.groupBy("died_in", "reason", "exchange")
        .agg(
            F.count(F.lit(1)).alias("messages"),
            F.sum("count").alias("deaths"),
            F.min("died_at").alias("first"),
            F.max("died_at").alias("last"),
        )
        .withColumn("oldest_s", F.lit(as_of).cast("double") - F.col("first").cast("double"))
        .orderBy(F.desc("deaths"), "died_in", "reason", "exchange")
    )


def chains(messages: DataFrame) -> DataFrame:
    """Return the paths of messages, the most frequent first: ``chain``, ``messages``, ``is_loop``, ``most_rounds``.

    A chain goes from the first death to the last: ``orders (rejected) > retry (expired)``. It is a loop if a
    message died in one queue for the same reason more than once.
    """
    # x-death has the latest death first.
    steps = F.transform(F.reverse("x_death"), _step)
    rounds = F.array_max(F.transform("x_death", lambda death: death["count"]))
    return (
        messages.where(F.size("x_death") > 0)
        .select(F.array_join(steps, " > ").alias("chain"), rounds.alias("rounds"))
        .groupBy("chain")
        .agg(F.count(F.lit(1)).alias("messages"), F.max("rounds").alias("most_rounds"))
        .withColumn("is_loop", F.col("most_rounds") > 1)
        .orderBy(F.desc("messages"), "chain")
    )


def top_keys(deaths: DataFrame, most: int = 20) -> DataFrame:
    """Return the routing keys with most deaths: ``routing_key``, ``deaths``."""
    counted = deaths.groupBy("routing_key").agg(F.sum("count").alias("deaths"))
    return counted.orderBy(F.desc("deaths"), "routing_key").limit(most)


def samples(deaths: DataFrame, each: int = 3) -> DataFrame:
    """Return the latest messages of each queue and reason, with the beginning of the body: text, otherwise in hex."""
    latest = Window.partitionBy("died_in", "reason").orderBy(F.desc("died_at"), F.desc("offset"))
    return (
        deaths.withColumn("rank", F.row_number().over(latest))
        .where(F.col("rank") <= each)
        .select("died_in", "reason", "routing_key", "died_at", *_PLACE, _shown("body").alias("body"))
        .orderBy("died_in", "reason", "rank")
    )


def _step(death: Column) -> Column:
    return F.concat(death["queue"], F.lit(" ("), death["reason"], F.lit(")"))


def _shown(name: str) -> Column:
    text = F.col(name).cast("string")
    return F.when(F.is_valid_utf8(text), F.substring(text, 1, SAMPLED)).otherwise(F.hex(F.substring(name, 1, SAMPLED)))
