"""A standalone Spark cluster on the loopback interface: one master and one worker.

Both are in the session's JVM, which saves the starts of two more, each preceded by that of Spark's launcher. The
executors that the worker starts are processes, as in any cluster.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession

HOST: Final = "127.0.0.1"
ANY_PORT: Final = 0
CORES: Final = 1
MEMORY_MB: Final = 1024


@contextmanager
def standalone(spark: SparkSession, directory: Path) -> Iterator[str]:
    """Run a cluster within the block; yield the URL of its master. All its processes end with the block."""
    jvm: Any = spark.sparkContext._jvm
    deploy = jvm.org.apache.spark.deploy
    conf = jvm.org.apache.spark.SparkConf(False).set("spark.local.dir", str(directory / "local"))
    master = deploy.master.Master.startRpcEnvAndEndpoint(HOST, ANY_PORT, ANY_PORT, conf)._1()
    url = f"spark://{master.address().hostPort()}"
    masters = spark.sparkContext._gateway.new_array(jvm.java.lang.String, 1)
    masters[0] = url
    none = jvm.scala.Option.empty()
    place = str(directory / "work")
    worker = deploy.worker.Worker.startRpcEnvAndEndpoint(
        HOST, ANY_PORT, ANY_PORT, CORES, MEMORY_MB, masters, place, none, conf, none
    )
    try:
        yield url
    finally:
        for each in (worker, master):  # a worker that loses its master ends its JVM
            each.shutdown()
            each.awaitTermination()
