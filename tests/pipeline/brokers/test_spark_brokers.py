"""Spark reads the streams of one name of two brokers as one table."""

import json
from collections.abc import Iterator

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.pipeline.fake_broker import fake_broker


@pytest.fixture(scope="module")
def options() -> Iterator[dict[str, str]]:
    """The options of a source that reads ``readings`` of both brokers, with 70 and 40 messages."""
    with fake_broker() as oslo, fake_broker() as rome:
        oslo.declare("readings", 0, 70)
        rome.declare("readings", 10, 50)
        urls = {"oslo": oslo.options()["url"], "rome": rome.options()["url"]}
        yield {"brokers": json.dumps(urls), "queue": "readings", "pushdown": "true"}


def rows(frame: DataFrame) -> list[tuple[str, int]]:
    return sorted((row.broker, row.offset) for row in frame.collect())


def test_a_table_has_the_messages_of_both(spark: SparkSession, options: dict[str, str]) -> None:
    table = spark.read.format("gateway").options(**options).load()
    assert table.columns[-2:] == ["body", "broker"]
    assert rows(table) == [("oslo", offset) for offset in range(70)] + [("rome", offset) for offset in range(10, 50)]
    assert rows(table.where("broker = 'rome' and offset < 20")) == [("rome", offset) for offset in range(10, 20)]
