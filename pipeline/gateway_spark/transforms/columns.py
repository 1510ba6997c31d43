"""Columns of messages by a user's name for them: ``routing_key``, ``mqtt.topic``, ``headers.site``, ``$.temp``.

A name that begins with ``$`` is a JSON path into the body; any other is a column, or a part of one after a dot.
"""

import re
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import MapType, StructType

from gateway_spark.schema import MESSAGE_SCHEMA

#: Larger numbers are milliseconds since the epoch, smaller ones seconds: 10**11 seconds are the year 5138.
MILLISECONDS_FROM: Final = 1e11


#: A JSON path, as ``get_json_object`` reads it; for any other it returns ``null``.
_PATH: Final = re.compile(r"\$(\.[^.\[\]']+|\[\d+]|\[\*]|\['[^']+'])*")


def is_name(name: str) -> bool:
    """Return whether a name is a column of messages or a part of one, a header, or a JSON path."""
    if name.startswith("$"):
        return _PATH.fullmatch(name) is not None
    column, dot, key = name.partition(".")
    if column not in MESSAGE_SCHEMA.names:
        return False
    kind = MESSAGE_SCHEMA[column].dataType
    return not dot or (isinstance(kind, MapType) and key != "") or (isinstance(kind, StructType) and key in kind.names)


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
