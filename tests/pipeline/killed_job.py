"""A streaming query as a separate program, for tests that kill it: from a stream to Parquet files or to a queue.

    python -m tests.pipeline.killed_job URL STREAM CHECKPOINT TARGET

``TARGET`` is ``queue:NAME``, or a directory. It runs until it is killed, or the query fails.
"""

import sys

from gateway_spark.session import session

#: Small, so that there are many batches during which it can be killed.
ROWS_PER_BATCH = "500"


def main(url: str, stream: str, checkpoint: str, target: str) -> None:
    """Run the query."""
    spark = session("killed")
    options = {"url": url, "queue": stream, "startingOffsets": "earliest", "maxOffsetsPerTrigger": ROWS_PER_BATCH}
    frame = spark.readStream.format("gateway").options(**options).load()
    kind, _, queue = target.partition(":")
    if kind == "queue":
        rows = frame.selectExpr("body", f"'{queue}' AS routing_key")
        writer = rows.writeStream.format("gateway").options(url=url, exchange="", producerName="killed")
    else:
        writer = frame.select("offset", "body").writeStream.format("parquet").option("path", target)
    writer.option("checkpointLocation", checkpoint).start().awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
