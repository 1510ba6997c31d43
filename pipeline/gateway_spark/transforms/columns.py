"""Columns of messages by a user's name for them: ``routing_key``, ``mqtt.topic``, ``headers.site``, ``$.temp``.

A name that begins with ``$`` is a JSON path into the body; any other is a column, or a part of one after a dot.
"""

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

#: Larger numbers are milliseconds since the epoch, smaller ones seconds: 10**11 seconds are the year 5138.
MILLISECONDS_FROM: Final = 1e11


def text_of(name: str) -> Column:
    """Return the value of a name as text; ``null`` if a message has none or its body is not JSON."""
    if name.startswith("$"):
        return F.get_json_object(F.col("body").cast("string"), name)
    column, _, key = name.partition(".")
    if column == "headers" and key:
        return F.col("headers")[key]
    return F.col(name).cast("string")


def number_of(name: str) -> Column:
    """Return the value of a name as a number; ``null`` if it is not one."""
    return text_of(name).try_cast("double")


def time_of(name: str) -> Column:
    """Return the value of a name as a time: a time column, ISO 8601, or seconds or milliseconds since the epoch."""
    if name in ("timestamp", "message_timestamp"):
        return F.col(name)
    text = text_of(name)
    number = text.try_cast("double")
    seconds = F.when(F.abs(number) >= MILLISECONDS_FROM, number / 1000).otherwise(number)
    return F.coalesce(F.try_to_timestamp(text), seconds.try_cast("timestamp"))


def label_of(name: str) -> str:
    """Return the name of a result column: the last word of a path."""
    return name.removeprefix("$").replace("[", ".").replace("]", "").replace("'", "").strip(".").rpartition(".")[2]
