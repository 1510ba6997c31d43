"""Sessions and silences of devices."""

from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from gateway_spark.transforms.presence import appearances, devices, incomplete, sessions, sightings, silences
from tests.pipeline.frames import after, messages, values


def seen_at(*minutes: float, key: str = "sensors.a") -> list[dict[str, Any]]:
    return [{"timestamp": after(minutes=minute), "routing_key": key} for minute in minutes]


def test_gaps_are_computed_for_each_device(spark: SparkSession) -> None:
    seen = appearances(messages(spark, seen_at(0, 1, 5) + seen_at(2, 3, key="sensors.b")))
    assert sorted(values(seen, "routing_key", "gap_s"), key=str) == [
        ("sensors.a", 240.0),
        ("sensors.a", 60.0),
        ("sensors.a", None),
        ("sensors.b", 60.0),
        ("sensors.b", None),
    ]


def test_the_order_of_messages_does_not_matter(spark: SparkSession) -> None:
    seen = appearances(messages(spark, seen_at(5, 0, 1)))
    assert sorted(values(seen.where("gap_s is not null"), "gap_s")) == [(60.0,), (240.0,)]


def test_a_longer_gap_begins_another_session(spark: SparkSession) -> None:
    found = sessions(appearances(messages(spark, seen_at(0, 1, 3, 10, 11))), gap_s=120)
    assert sorted(values(found, "session", "messages", "duration_s")) == [(1, 3, 180.0), (2, 2, 60.0)]


def test_a_device_is_summarised(spark: SparkSession) -> None:
    found = devices(appearances(messages(spark, seen_at(0, 1, 2, 10))))
    assert values(found, "messages", "median_interval_s", "longest_gap_s") == [(4, 60.0, 480.0)]


def test_silences_are_relative_to_the_median_of_the_device(spark: SparkSession) -> None:
    often, seldom = seen_at(0, 1, 2, 3, 9), seen_at(0, 60, 120, key="sensors.b")
    found = silences(appearances(messages(spark, often + seldom)), as_of=after(minutes=121), factor=3)
    silent = values(found.withColumn("lasts", F.isnull("until")), "routing_key", "silence_s", "lasts")
    assert sorted(silent) == [("sensors.a", 360.0, False), ("sensors.a", 6720.0, True)]


def test_a_device_that_sends_several_messages_at_once_is_judged_by_its_other_intervals(spark: SparkSession) -> None:
    seen = appearances(messages(spark, seen_at(0, 0, 0, 1, 1, 1, 2, 2, 2, 30)))
    assert values(devices(seen), "messages", "median_interval_s") == [(10, 60.0)]
    assert values(silences(seen, as_of=after(minutes=31)), "silence_s") == [(28 * 60.0,)]


def test_messages_without_a_device_or_a_time_are_no_device(spark: SparkSession) -> None:
    rows = [{"client_id": "a"}, {"client_id": None}, {"client_id": "b", "timestamp": None}]
    frame = messages(spark, rows)
    assert values(devices(appearances(frame, ["client_id"])), "client_id", "messages") == [("a", 1)]
    assert incomplete(sightings(frame, ["client_id"])).count() == 2


def test_a_device_with_one_message_is_never_silent(spark: SparkSession) -> None:
    assert values(silences(appearances(messages(spark, seen_at(0))), after(days=9)), "silence_s") == []
