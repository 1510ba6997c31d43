"""What a user names in words, as a column of messages: ``routing_key``, ``mqtt.topic``, ``headers.site``, ``$.temp``.

A name that begins with ``$`` is a JSON path into the body, any other a column, or a part of one after a dot.
"""

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

#: Numbers above are milliseconds of the epoch, below seconds: 10**11 seconds are the year 5138.
MILLISECONDS_FROM: Final = 1e11


def text_of(name: str) -> Column:
    """Return what a name stands for as text; ``null`` where a message has nothing there or its body is no JSON."""
    if name.startswith("$"):
        return F.get_json_object(F.col("body").cast("string"), name)
    column, _, key = name.partition(".")
    if column == "headers" and key:
        return F.col("headers")[key]
    return F.col(name).cast("string")


def number_of(name: str) -> Column:
    """Return what a name stands for as a number; ``null`` where it is none."""
    return text_of(name).try_cast("double")


def time_of(name: str) -> Column:
    """Return what a name stands for as a time: that of a column, ISO 8601, or seconds or milliseconds of the epoch."""
    if name in ("timestamp", "message_timestamp"):
        return F.col(name)
    text = text_of(name)
    number = text.try_cast("double")
    seconds = F.when(F.abs(number) >= MILLISECONDS_FROM, number / 1000).otherwise(number)
    return F.coalesce(F.try_to_timestamp(text), seconds.try_cast("timestamp"))


def label_of(name: str) -> str:
    """Return the name for a column of results: the last word of a path."""
    return name.removeprefix("$").replace("[", ".").replace("]", "").replace("'", "").strip(".").rpartition(".")[2]
