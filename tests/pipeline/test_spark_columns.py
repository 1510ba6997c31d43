"""Columns of messages by a user's name for them."""

from typing import Any

import pytest
from pyspark.sql import SparkSession

from gateway_spark.transforms.columns import label_of, number_of, text_of, time_of
from tests.pipeline.frames import START, after, messages, values

BODY = {"temp": 21.5, "at": {"x": 1}, "list": [{"v": 7}], "none": None, "word": "NA", "flag": True}

TEXTS = [
    ("routing_key", "sensors.a"),
    ("headers.site", "north"),
    ("headers.absent", None),
    ("mqtt.topic", "sensors/a"),
    ("offset", "0"),
    ("$.temp", "21.5"),
    ("$.at.x", "1"),
    ("$.list[0].v", "7"),
    ("$.none", None),
    ("$.absent", None),
]


@pytest.mark.parametrize(("name", "text"), TEXTS)
def test_a_name_is_resolved_to_text(spark: SparkSession, name: str, text: str | None) -> None:
    frame = messages(spark, [{"body": BODY, "headers": {"site": "north"}, "mqtt": ("sensors/a", 1, False)}])
    assert values(frame, text_of(name)) == [(text,)]


NUMBERS = [("$.temp", 21.5), ("$.at.x", 1.0), ("$.word", None), ("$.flag", None), ("$.none", None), ("offset", 0.0)]


@pytest.mark.parametrize(("name", "number"), NUMBERS)
def test_a_name_is_resolved_to_a_number_or_null(spark: SparkSession, name: str, number: float | None) -> None:
    assert values(messages(spark, [{"body": BODY}]), number_of(name)) == [(number,)]


def test_a_body_that_is_not_json_is_null(spark: SparkSession) -> None:
    frame = messages(spark, [{"body": b"\xff\xfe"}, {"body": b"{"}, {"body": b""}, {"body": None}])
    assert values(frame, text_of("$.temp"), number_of("$.temp")) == [(None, None)] * 4


TIMES: list[tuple[Any, Any]] = [
    ("2024-01-01T01:00:00Z", after(hours=1)),
    ("2024-01-01T01:00:00+01:00", START),
    ("2024-01-01 00:00:00", START),
    (1704067200, START),
    (1704067200.5, after(seconds=0.5)),
    (1704067200500, after(seconds=0.5)),
    ("1704067200", START),
    ("soon", None),
    (None, None),
]


@pytest.mark.parametrize(("written", "time"), TIMES)
def test_a_name_is_resolved_to_a_time(spark: SparkSession, written: Any, time: Any) -> None:
    frame = messages(spark, [{"body": {"time": written}}])
    seconds = None if time is None else time.timestamp()
    assert values(frame, time_of("$.time").cast("double")) == [(seconds,)]


def test_the_times_of_the_broker_and_of_the_publisher_are_columns(spark: SparkSession) -> None:
    frame = messages(spark, [{"message_timestamp": after(hours=2)}])
    found = values(frame, time_of("timestamp").cast("double"), time_of("message_timestamp").cast("double"))
    assert found == [(START.timestamp(), after(hours=2).timestamp())]


LABELS = [("$.temp", "temp"), ("$.at.x", "x"), ("$['temp']", "temp"), ("headers.site", "site"), ("queue", "queue")]


@pytest.mark.parametrize(("name", "label"), LABELS)
def test_the_last_word_is_the_label(name: str, label: str) -> None:
    assert label_of(name) == label
