"""Anomalies in real weather: one known, and artificial spikes at known positions."""

import json
import random

import pandas
import pytest
from pyspark.sql import DataFrame, SparkSession

from gateway_spark.transforms.anomalies import quality, scores
from tests.pipeline.frames import messages, values
from tests.pipeline.weather import weather


@pytest.fixture(scope="module")
def spiked() -> pandas.DataFrame:
    """GENERATED labels: the real temperatures of Newark, with 60 degrees added to fifty of them, which are labelled."""
    readings = weather().dropna(subset="temp").query("origin == 'EWR'").reset_index(drop=True)
    places = random.Random(7).sample(range(len(readings)), 50)
    readings["label"] = 0
    readings.loc[places, "label"] = 1
    readings.loc[places, "temp"] += 60
    return readings


def frame_of(spark: SparkSession, readings: pandas.DataFrame, *columns: str) -> DataFrame:
    kept = readings[["origin", "time_hour", *columns]].to_dict("records")
    return messages(spark, [{"body": json.dumps(row).encode()} for row in kept])


def test_a_wind_of_a_thousand_miles_an_hour_has_the_highest_score(spark: SparkSession) -> None:
    """The file has a reading of 1,048 miles an hour, which is impossible."""
    readings = weather().dropna(subset="wind_speed").query("month == 2")
    found = scores(frame_of(spark, readings, "wind_speed"), "$.wind_speed", ["$.origin"], "$.time_hour")
    farthest = found.orderBy("score", ascending=False).limit(1)
    ((origin, value, score),) = values(farthest, "origin", "value", "score")
    assert (origin, round(value)) == ("EWR", 1048)
    assert score > 100


def test_precision_and_recall_are_equal_to_those_of_pandas(spark: SparkSession, spiked: pandas.DataFrame) -> None:
    found = scores(frame_of(spark, spiked, "temp", "label"), "$.temp", ["$.origin"], "$.time_hour", label="$.label")
    ((hits, false, missed, precision, recall),) = values(
        quality(found), "true_positives", "false_positives", "false_negatives", "precision", "recall"
    )
    time = pandas.to_datetime(spiked["time_hour"])
    group = [spiked["origin"], time.dt.dayofweek * 24 + time.dt.hour]
    distance = spiked["temp"] - spiked.groupby(group)["temp"].transform("median")
    deviation = distance.abs().groupby(group).transform("median") / 0.6745
    for side in (distance, -distance):
        own = side.where(side > 0).groupby(group)
        tail = own.transform(lambda each: each.quantile(0.9)).where(own.transform("count") >= 20) / 1.6449
        deviation = deviation.where(side <= 0, deviation.combine(tail, max).fillna(deviation))
    is_found, is_one = distance.abs() / deviation > 3.5, spiked["label"] == 1
    expected = ((is_found & is_one).sum(), (is_found & ~is_one).sum(), (~is_found & is_one).sum())
    assert (hits, false, missed) == expected
    assert hits + missed == 50
    assert (precision, recall) == (pytest.approx(hits / (hits + false)), pytest.approx(hits / 50))
    print(f"precision {precision:.3f}, recall {recall:.3f}")
