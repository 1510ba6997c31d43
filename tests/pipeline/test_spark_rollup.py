"""Readings by device and window."""

import pytest
from pyspark.sql import DataFrame, SparkSession

from gateway_spark.transforms.rollup import label_of_percentile, latest, rollup
from tests.pipeline.frames import after, messages, values


@pytest.fixture(scope="module")
def readings(spark: SparkSession) -> DataFrame:
    """Device a has five readings in its first hour, one of them without a temperature, and one in the next; device
    b one.
    """
    temperatures = [10.0, 20.0, 30.0, 40.0, None]
    rows = [
        {"timestamp": after(minutes=number), "body": {"temp": t, "hum": 5}} for number, t in enumerate(temperatures)
    ]
    rows += [{"timestamp": after(minutes=60), "body": {"temp": 50.0, "hum": 5}}]
    rows += [{"timestamp": after(minutes=59), "routing_key": "sensors.b", "body": {"temp": -1, "hum": None}}]
    return messages(spark, rows).cache()


def test_a_window_has_count_minimum_maximum_mean_and_percentiles(readings: DataFrame) -> None:
    windows = rollup(readings, {"temp": "$.temp"})
    figures = values(windows, "routing_key", "messages", "count", "min", "max", "avg", "p50", "p95")
    assert sorted(figures) == [
        ("sensors.a", 1, 1, 50.0, 50.0, 50.0, 50.0, 50.0),
        ("sensors.a", 5, 4, 10.0, 40.0, 25.0, 20.0, 40.0),
        ("sensors.b", 1, 1, -1.0, -1.0, -1.0, -1.0, -1.0),
    ]


def test_each_field_has_its_own_rows(readings: DataFrame) -> None:
    windows = rollup(readings, {"t": "$.temp", "h": "$.hum"})
    assert sorted(values(windows, "routing_key", "field", "count")) == [
        ("sensors.a", "h", 1),
        ("sensors.a", "h", 5),
        ("sensors.a", "t", 1),
        ("sensors.a", "t", 4),
        ("sensors.b", "h", 0),
        ("sensors.b", "t", 1),
    ]


def test_a_window_includes_its_start_and_excludes_its_end(readings: DataFrame) -> None:
    windows = rollup(readings, {"t": "$.temp"}).where("routing_key = 'sensors.a'")
    bounds = windows.selectExpr("double(window_start) as start", "double(window_end) as end", "messages")
    first, second = after().timestamp(), after(hours=1).timestamp()
    assert sorted(values(bounds, "start", "end", "messages")) == [(first, second, 5), (second, second + 3600, 1)]


def test_windows_may_slide(readings: DataFrame) -> None:
    windows = rollup(readings.where("routing_key = 'sensors.b'"), {"t": "$.temp"}, window="1 hour", slide="30 minutes")
    assert values(windows, "messages") == [(1,), (1,)]


def test_devices_are_identified_by_the_given_columns(readings: DataFrame) -> None:
    windows = rollup(readings, {"t": "$.temp"}, by=["vhost", "$.hum"], window="1 day")
    assert sorted(values(windows, "vhost", "hum", "messages"), key=str) == [("/", "5", 6), ("/", None, 1)]


def test_time_may_be_in_the_body(spark: SparkSession) -> None:
    rows = [{"body": {"at": after(hours=hour).isoformat(), "t": hour}} for hour in range(3)] + [{"body": {"t": 9}}]
    windows = rollup(messages(spark, rows), {"t": "$.t"}, time="$.at")
    assert sorted(values(windows, "messages", "avg")) == [(1, 0.0), (1, 1.0), (1, 2.0)]


@pytest.mark.parametrize(("share", "label"), [(0.5, "p50"), (0.99, "p99"), (0.999, "p99_9")])
def test_percentiles_have_names(share: float, label: str) -> None:
    assert label_of_percentile(share) == label


def test_the_latest_version_of_a_window_is_returned(spark: SparkSession, readings: DataFrame) -> None:
    windows = rollup(readings, {"t": "$.temp"})
    early = rollup(readings.where("offset < 2"), {"t": "$.temp"})
    updates = early.selectExpr("*", "0 as batch").union(windows.selectExpr("*", "1 as batch"))
    columns = windows.columns
    assert sorted(values(latest(updates, ["routing_key"]).select(columns), *columns)) == sorted(
        values(windows, *columns)
    )
