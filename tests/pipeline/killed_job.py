"""Streaming queries as a separate program, for tests that kill it: from a stream to Parquet files and to queues.

    python -m tests.pipeline.killed_job URL STREAM DIRECTORY TARGET...

``TARGET`` is ``queue:NAME``, or a directory; the checkpoint of each query is in ``DIRECTORY``, with its number as name.
It runs until it is killed, or a query fails.
"""

import sys

from gateway_spark.session import session

#: Small, so that there are many batches during which it can be killed.
ROWS_PER_BATCH = "500"

#: The rows of a batch are read by its tasks in the first query, and come with its plan in the second one.
SMALL_BATCHES = ("0", "1000")


def main(url: str, stream: str, directory: str, *targets: str) -> None:
    """Run a query for each target."""
    spark = session("killed")
    options = {"url": url, "queue": stream, "startingOffsets": "earliest", "maxOffsetsPerTrigger": ROWS_PER_BATCH}
    reader = spark.readStream.format("gateway").options(**options)
    for number, target in enumerate(targets):
        frame = reader.option("smallBatch", SMALL_BATCHES[number % 2]).load()
        kind, _, queue = target.partition(":")
        if kind == "queue":
            rows = frame.selectExpr("body", f"'{queue}' AS routing_key")
            writer = rows.writeStream.format("gateway").options(url=url, exchange="", producerName="killed")
        else:
            writer = frame.select("offset", "body").writeStream.format("parquet").option("path", target)
        writer.option("checkpointLocation", f"{directory}/{number}").start()
    spark.streams.awaitAnyTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
