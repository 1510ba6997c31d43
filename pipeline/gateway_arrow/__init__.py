"""Streams of the broker as Arrow record batches, for pandas, Polars, DuckDB and others. It needs pyarrow, and no Spark.

``read`` returns a ``pyarrow.RecordBatchReader``; ``StreamReading`` also has the position at which a later one goes on.
"""

from gateway_arrow.reading import StreamReading, read

__all__ = ["StreamReading", "read"]
