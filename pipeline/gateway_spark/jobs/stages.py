"""The running tasks of Spark, in words."""

from pyspark.sql import SparkSession


def tasks_in_words(spark: SparkSession) -> str:
    """Return how many tasks of the running stages are done; nothing if none runs, as while the driver plans."""
    tracker = spark.sparkContext.statusTracker()
    running = [info for stage in tracker.getActiveStageIds() if (info := tracker.getStageInfo(stage)) is not None]
    if not running:
        return ""
    done, total = sum(info.numCompletedTasks for info in running), sum(info.numTasks for info in running)
    return f"{done} of {total} tasks done"
