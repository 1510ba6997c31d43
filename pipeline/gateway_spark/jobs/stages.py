"""The running tasks of Spark, in words."""

from collections.abc import Callable

from pyspark.sql import SparkSession

from gateway_spark.remote import RemoteTasks


def tasks_of(spark: SparkSession, *, is_remote: bool) -> Callable[[], str]:
    """Return a function that describes the running tasks of a session."""
    return RemoteTasks(spark).in_words if is_remote else lambda: tasks_in_words(spark)


def tasks_in_words(spark: SparkSession) -> str:
    """Return how many tasks of the running stages are done; nothing if none runs, as while the driver plans."""
    tracker = spark.sparkContext.statusTracker()
    running = [info for stage in tracker.getActiveStageIds() if (info := tracker.getStageInfo(stage)) is not None]
    if not running:
        return ""
    done, total = sum(info.numCompletedTasks for info in running), sum(info.numTasks for info in running)
    return f"{done} of {total} tasks done"
