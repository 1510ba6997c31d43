"""Scores and quality of anomalies."""

import math
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from gateway_spark.transforms.anomalies import found, quality, scores
from tests.pipeline.frames import after, messages, values


def readings(*numbers: float, **columns: Any) -> list[dict[str, Any]]:
    return [{"body": {"v": number}, **columns} for number in numbers]


def test_the_score_is_the_distance_from_the_median_in_scaled_mads(spark: SparkSession) -> None:
    frame = scores(messages(spark, readings(1, 2, 3, 4, 100)), "$.v")
    assert set(values(frame, "median")) == {(3.0,)}
    expected = {1: -1.349, 2: -0.6745, 3: 0, 4: 0.6745, 100: 65.4265}
    assert dict(values(frame, "value", "score")) == pytest.approx(expected)
    assert values(found(frame), "value") == [(100.0,)]


def test_with_mostly_equal_readings_the_mean_deviation_is_used(spark: SparkSession) -> None:
    frame = scores(messages(spark, readings(5, 5, 5, 9)), "$.v")
    assert sorted(set(values(frame, "value", "score"))) == [(5.0, 0.0), (9.0, pytest.approx(0.7979 * 4 / 1.0))]


def test_a_single_reading_is_usual(spark: SparkSession) -> None:
    assert values(scores(messages(spark, readings(7)), "$.v"), "score") == [(0.0,)]


def exponential(count: int) -> list[float]:
    """Return the quantiles of an exponential distribution, which has a long tail above its median."""
    return [-math.log(1 - (number + 0.5) / count) for number in range(count)]


def test_a_long_tail_is_not_anomalous_as_a_whole(spark: SparkSession) -> None:
    frame = scores(messages(spark, readings(*exponential(500), 60.0)), "$.v", season="none")
    beyond = sorted(value for (value,) in values(found(frame), "value"))
    assert beyond[-1] == 60.0
    assert len(beyond) < 0.02 * 500


def test_a_long_tail_above_leaves_the_other_side_as_it_is(spark: SparkSession) -> None:
    frame = scores(messages(spark, readings(*exponential(500), -5.0)), "$.v", season="none")
    assert -5.0 in {value for (value,) in values(found(frame), "value")}


def test_every_score_is_a_number(spark: SparkSession) -> None:
    frame = scores(messages(spark, readings(1, 1, 1, 1, 2, 3)), "$.v")
    assert not any(math.isnan(score) for (score,) in values(frame, "score"))


def test_the_usual_value_depends_on_the_hour_of_the_week(spark: SparkSession) -> None:
    weeks = [(week, hour) for week in range(5) for hour in (0, 12)]
    rows = [row for week, hour in weeks for row in readings(hour + week, timestamp=after(weeks=week, hours=hour))]
    by_week = scores(messages(spark, rows), "$.v")
    assert sorted(set(values(by_week, "season", "median"))) == [(0, 2.0), (12, 14.0)]
    without = scores(messages(spark, rows), "$.v", season="none")
    assert set(values(without, "season", "median")) == {(0, 8.0)}


def test_each_device_is_compared_with_itself(spark: SparkSession) -> None:
    rows = readings(1, 2, 3) + readings(101, 102, 103, routing_key="sensors.b")
    frame = scores(messages(spark, rows), "$.v")
    assert sorted(set(values(frame, "routing_key", "median"))) == [("sensors.a", 2.0), ("sensors.b", 102.0)]


@pytest.fixture(scope="module")
def labelled(spark: SparkSession) -> DataFrame:
    """Twenty usual readings of which one is labelled, and two unusual ones of which one is."""
    rows = [{"body": {"v": number % 5, "bad": int(number == 3)}} for number in range(20)]
    rows += [{"body": {"v": 100, "bad": 1}}, {"body": {"v": -100, "bad": 0}}]
    return scores(messages(spark, rows), "$.v", label="$.bad")


def test_labels_measure_the_quality_of_the_scores(labelled: DataFrame) -> None:
    columns = ("true_positives", "false_positives", "false_negatives", "true_negatives", "precision", "recall")
    assert values(quality(labelled), *columns) == [(1, 1, 1, 19, 0.5, 0.5)]


def test_precision_is_null_without_anomalies(labelled: DataFrame) -> None:
    assert values(quality(labelled, threshold=1e9), "true_positives", "precision", "recall") == [(0, None, 0.0)]
