"""Messages selected for a replay."""

import json

import pytest
from pyspark.sql import SparkSession

from gateway_spark.transforms.replays import annotated, numbered, selected
from tests.pipeline.frames import after, messages, values


def test_an_sql_condition_selects_messages(spark: SparkSession) -> None:
    frame = messages(spark, [{"body": {"t": number}, "routing_key": f"k.{number}"} for number in range(4)])
    where = "routing_key like 'k.%' and get_json_object(cast(body as string), '$.t') >= 2"
    assert values(selected(frame, where), "offset") == [(2,), (3,)]
    assert selected(frame).count() == 4


HEADERS = [
    (None, None, {}),
    ({}, "{}", {}),
    ({"a": "1"}, '{"a": 1}', {"a": 1}),
    ({"a": '"}'}, '{"a": "\\"}"} ', {"a": '"}'}),
    ({"x-replayed-from": "old/0/7"}, '{"x-replayed-from": "old/0/7"}', {}),
]


@pytest.mark.parametrize(("headers", "headers_json", "own"), HEADERS)
def test_a_replayed_message_has_its_headers_and_its_origin(
    spark: SparkSession, headers: dict[str, str] | None, headers_json: str | None, own: dict[str, object]
) -> None:
    frame = messages(spark, [{"queue": 'q"1', "headers": headers, "headers_json": headers_json}])
    ((as_map, as_json),) = values(annotated(frame), "headers", "headers_json")
    assert as_map == {name: str(value) for name, value in own.items()} | {"x-replayed-from": 'q"1/0/0'}
    assert json.loads(as_json) == own | {"x-replayed-from": 'q"1/0/0'}


@pytest.mark.parametrize(("exchange", "origin"), [(None, "exchange:shop/0/0"), ("all", "exchange:all/0/0")])
def test_the_origin_in_the_archive_of_an_exchange_has_its_name(
    spark: SparkSession, exchange: str | None, origin: str
) -> None:
    frame = messages(spark, [{"queue": None, "exchange": "shop"}])
    ((as_map, as_json),) = values(annotated(frame, exchange), "headers", "headers_json")
    assert as_map == json.loads(as_json) == {"x-replayed-from": origin}


def test_messages_are_replayed_in_the_order_of_arrival(spark: SparkSession) -> None:
    rows = [{"timestamp": after(seconds=-number // 2), "queue": f"q{number % 2}"} for number in range(5)]
    found = numbered(messages(spark, rows), batch_size=2)
    placed = values(found.orderBy("number"), "number", "batch", "queue", "offset")
    assert placed == [(0, 0, "q0", 4), (1, 0, "q1", 3), (2, 1, "q0", 2), (3, 1, "q1", 1), (4, 2, "q0", 0)]
