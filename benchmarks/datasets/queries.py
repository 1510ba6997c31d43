"""The queries that are killed: each stream to Parquet files and to a stream of copies.

python -m benchmarks.datasets.queries URL MASTER DIRECTORY TO_THE_END STREAM...
"""

import sys
from pathlib import Path

from gateway_spark.session import session

#: Small, so that there are many batches during which a process can be killed.
ROWS_PER_BATCH = "10000"

SETTINGS = {
    "spark.executor.memory": "512m",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.deploy.maxExecutorRetries": "-1",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


def main(url: str, master: str, directory: str, to_the_end: str, *streams: str) -> None:
    """Run two queries for each stream; with ``to_the_end`` until they have read what is there, else without end."""
    spark = session("datasets", master, SETTINGS)
    queries = []
    for stream in streams:
        options = {"url": url, "queue": stream, "startingOffsets": "earliest", "maxOffsetsPerTrigger": ROWS_PER_BATCH}
        rows = spark.readStream.format("gateway").options(**options).load()
        place = Path(directory) / stream
        files = (
            rows.select("offset", "protocol", "body").writeStream.format("parquet").option("path", str(place / "rows"))
        )
        copies = rows.selectExpr("body", f"'{stream}.copy' AS routing_key").writeStream.format("gateway")
        copies = copies.options(url=url, exchange="", producerName=f"{stream}.copy")
        for name, writer in (("rows", files), ("copy", copies)):
            writer = writer.option("checkpointLocation", str(place / f"checkpoint-{name}"))
            queries.append((writer.trigger(availableNow=True) if to_the_end == "yes" else writer).start())
    for query in queries:
        query.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
