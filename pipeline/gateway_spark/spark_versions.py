"""The abilities of the installed Spark for sources in Python, looked up in this place alone.

| | 4.0 | 4.1 | 4.2 and newer |
|---|---|---|---|
| Arrow batches from readers and to batch writers | yes | yes | yes |
| a class for stream writers that get Arrow batches | no, but both base classes together do the same | yes | yes |
| filters | no | yes | yes |
| a reader is told its position and the limit of a batch | no | no | yes |
"""

import inspect
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

import pyspark
from pyspark.sql import datasource, datasource_internal
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from gateway_spark.errors import OptionError
from gateway_spark.options import DEFAULT_SMALL_BATCH, ReadLimits, SourceOptions

__all__ = [
    "HAS_FILTERS",
    "HAS_LIMITS",
    "HAS_ROWS_OF_PLANS",
    "StreamArrowWriter",
    "SupportsTriggerAvailableNow",
    "arrow_schema",
    "require_supported",
]

#: Whether batch readers get filters.
HAS_FILTERS: Final = hasattr(datasource, "EqualTo")

#: Whether stream readers get their position and a limit.
HAS_LIMITS: Final = find_spec("pyspark.sql.streaming.datasource") is not None

#: Whether stream readers may send rows with their plan. Its class is private, so a later Spark may lack it.
HAS_ROWS_OF_PLANS: Final = HAS_LIMITS and hasattr(datasource_internal, "_SimpleStreamReaderWrapper")

if TYPE_CHECKING or hasattr(datasource, "DataSourceStreamArrowWriter"):
    from pyspark.sql.datasource import DataSourceStreamArrowWriter as StreamArrowWriter
else:

    class StreamArrowWriter(datasource.DataSourceStreamWriter, datasource.DataSourceArrowWriter):
        """A stream writer that gets Arrow batches: Spark 4.0 asks for the second class alone."""


if TYPE_CHECKING or HAS_LIMITS:
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
else:

    class SupportsTriggerAvailableNow:
        """Stands for Spark's class: without it Spark ends such a query at the end that it sees first."""


_HAS_TIMEZONE: Final = "timezone" in inspect.signature(to_arrow_schema).parameters


def arrow_schema(schema: StructType) -> Any:
    """Return the Arrow schema that Spark expects of batches; times are in UTC."""
    return to_arrow_schema(schema, timezone="UTC") if _HAS_TIMEZONE else to_arrow_schema(schema)


def require_supported(options: SourceOptions, *, is_stream: bool) -> None:
    """Check that this Spark can do what the options ask. :raises OptionError: for the first that it cannot."""
    if options.pushes_filters and not HAS_FILTERS:
        raise OptionError(f"option 'pushdown' needs Spark 4.1 or newer, this is {pyspark.__version__}")
    if is_stream and not HAS_LIMITS and options.limits != ReadLimits():
        raise OptionError(
            "options 'maxOffsetsPerTrigger', 'maxBytesPerTrigger', 'minOffsetsPerTrigger' and 'maxTriggerDelay' need "
            f"Spark 4.2 or newer, this is {pyspark.__version__}"
        )
    if is_stream and not HAS_ROWS_OF_PLANS and options.small_batch != DEFAULT_SMALL_BATCH:
        needed = "an older Spark" if HAS_LIMITS else "Spark 4.2 or newer"
        raise OptionError(f"option 'smallBatch' needs {needed}, this is {pyspark.__version__}")
