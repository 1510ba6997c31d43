"""Messages selected for a replay, with a header that names their origin."""

from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

#: The header with the origin of a replayed message: queue, partition and offset, or those of an exchange's archive.
REPLAYED_FROM: Final = "x-replayed-from"

#: The order of a replay: the order of arrival at the broker, which preserves the order within a queue.
ORDER: Final = ("timestamp", "vhost", "queue", "partition", "offset")


def selected(messages: DataFrame, where: str | None = None) -> DataFrame:
    """Return the messages that meet an SQL condition; a body is binary, its text is ``cast(body as string)``."""
    return messages if where is None else messages.where(where)


def annotated(messages: DataFrame, exchange: str | None = None) -> DataFrame:
    """Return the messages to publish, with the header ``x-replayed-from`` beside their own.

    A message of an exchange's archive has no queue; its origin is ``exchange:NAME``, with the name of the archived
    exchange if it is given, otherwise of the one to which the message was published.
    """
    of_exchange = F.concat(F.lit("exchange:"), F.col("exchange") if exchange is None else F.lit(exchange))
    place = F.concat_ws(
        "/", F.coalesce("queue", of_exchange), F.col("partition").cast("string"), F.col("offset").cast("string")
    )
    return messages.withColumn("headers", _with_header(F.col("headers"), place)).withColumn(
        "headers_json", _with_member(F.col("headers_json"), place)
    )


def numbered(messages: DataFrame, batch_size: int, order: Sequence[str] = ORDER) -> DataFrame:
    """Return the messages with their ``number`` in the replay, from 0, and their ``batch``."""
    number = (F.row_number().over(Window.orderBy(*order)) - 1).alias("number")
    return messages.select("*", number).withColumn("batch", F.floor(F.col("number") / batch_size).cast("int"))


def _with_header(headers: Column, value: Column) -> Column:
    own = F.map_filter(
        F.coalesce(headers, F.create_map().cast("map<string,string>")), lambda key, _: key != REPLAYED_FROM
    )
    return F.map_concat(own, F.create_map(F.lit(REPLAYED_FROM), value))


def _with_member(headers_json: Column, value: Column) -> Column:
    """Append a member to a JSON object; of two members with the same name, readers take the later."""
    member = F.substring(F.to_json(F.create_map(F.lit(REPLAYED_FROM), value)), 2, 1 << 30)
    own = F.rtrim(F.coalesce(headers_json, F.lit("{}")))
    is_empty = F.regexp_like(own, F.lit(r"^\{\s*\}$"))
    return F.when(is_empty, F.concat(F.lit("{"), member)).otherwise(
        F.concat(F.substring(own, F.lit(1), F.length(own) - 1), F.lit(","), member)
    )
