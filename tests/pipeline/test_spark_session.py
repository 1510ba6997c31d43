"""The Spark session of the jobs."""

import pytest
from pyspark.sql import SparkSession

from gateway_spark.session import session

SETTINGS = [
    ("spark.sql.session.timeZone", "UTC"),
    ("spark.sql.python.filterPushdown.enabled", "true"),
    ("spark.speculation", "false"),
    ("spark.driver.host", "127.0.0.1"),
    ("spark.sql.shuffle.partitions", "2"),
]


@pytest.mark.parametrize(("name", "value"), SETTINGS)
def test_a_session_has_the_settings_of_the_pipeline(spark: SparkSession, name: str, value: str) -> None:
    assert spark.conf.get(name) == value


def test_a_running_session_is_used(spark: SparkSession) -> None:
    assert session("another").sparkContext is spark.sparkContext


def test_the_workers_run_the_current_interpreter(spark: SparkSession) -> None:
    frame = spark.range(4).mapInArrow(lambda batches: batches, "id long")
    assert sorted(row.id for row in frame.collect()) == [0, 1, 2, 3]


def test_the_jvm_prints_no_stack_of_a_query_that_failed(spark: SparkSession) -> None:
    """The job prints the reason in one line."""
    logs = spark.sparkContext._jvm.org.apache.logging.log4j.LogManager  # type: ignore[union-attr]
    streaming = "org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution"
    enabled = {
        name: logs.getLogger(name).isErrorEnabled() for name in (streaming, "org.apache.spark.executor.Executor")
    }
    assert enabled == {streaming: False, "org.apache.spark.executor.Executor": True}
