"""Spark SQL on the tables of a REST catalogue: ``python spark_sql.py JAR URI``.

Reads a statement of each line, and answers with a line of JSON: the rows, or a text that begins with ``error:``.
"""

import json
import sys

from pyspark.sql import SparkSession


def main() -> None:
    """Answer until the input ends."""
    jar, uri = sys.argv[1:]
    builder = SparkSession.Builder().master("local[2]").config("spark.ui.enabled", "false")
    settings = {
        "spark.jars": jar,
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.site": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.site.type": "rest",
        "spark.sql.catalog.site.uri": uri,
        "spark.sql.catalog.site.cache-enabled": "false",  # the gateway writes, too
        "spark.sql.shuffle.partitions": "2",
        "spark.log.level": "ERROR",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    for line in sys.stdin:
        try:
            answer: object = [list(row) for row in spark.sql(line.strip()).collect()]
        except Exception as error:  # shown to the test
            answer = f"error: {error}"
        print(json.dumps(answer, default=str), flush=True)


if __name__ == "__main__":
    main()
