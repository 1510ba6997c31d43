"""Tables of dead letters with known causes."""

from typing import Any, Final

import pytest
from pyspark.sql import DataFrame, SparkSession

from gateway_spark.transforms.deaths import causes, chains, deaths, samples, top_keys
from tests.pipeline.frames import after, messages, values

EXPIRED: Final = ("orders", "expired", 1, after(minutes=1), "shop", ["order.new"])
REJECTED: Final = ("orders", "rejected", 1, after(minutes=2), "shop", ["order.new"])
FULL: Final = ("mail", "maxlen", 1, after(minutes=3), "shop", ["mail.new"])


def round_of(count: int, minute: int) -> list[tuple[Any, ...]]:
    """A message that was rejected, expired in the retry queue, and so on; the latest death comes first."""
    retried = ("retry", "expired", count, after(minutes=minute), "", ["orders"])
    return [retried, ("orders", "rejected", count, after(minutes=minute - 1), "shop", ["order.old"])]


@pytest.fixture(scope="module")
def letters(spark: SparkSession) -> DataFrame:
    """Five expired, three rejected, one dropped, two in their fourth loop, and one that never died."""
    chains: list[list[tuple[Any, ...]] | None] = [[EXPIRED]] * 5 + [[REJECTED]] * 3 + [[FULL]] + [round_of(4, 9)] * 2
    rows = [{"queue": "dead", "x_death": chain, "body": b"%d" % number} for number, chain in enumerate(chains)]
    return messages(spark, [*rows, {"queue": "dead"}, {"queue": "dead", "x_death": []}]).cache()


def test_each_entry_of_each_message_is_a_death(letters: DataFrame) -> None:
    found = values(deaths(letters), "died_in", "reason", "count", "offset")
    assert len(found) == 5 + 3 + 1 + 2 * 2
    assert ("orders", "rejected", 4, 9) in found
    assert ("retry", "expired", 4, 9) in found


def test_causes_are_counted_by_messages_and_by_deaths(letters: DataFrame) -> None:
    found = causes(deaths(letters), as_of=after(minutes=11))
    assert values(found, "died_in", "reason", "exchange", "messages", "deaths", "oldest_s") == [
        ("orders", "rejected", "shop", 5, 11, 540.0),
        ("retry", "expired", "", 2, 8, 120.0),
        ("orders", "expired", "shop", 5, 5, 600.0),
        ("mail", "maxlen", "shop", 1, 1, 480.0),
    ]


def test_a_chain_reads_from_the_first_death_to_the_last(letters: DataFrame) -> None:
    assert values(chains(letters), "chain", "messages", "most_rounds", "is_loop") == [
        ("orders (expired)", 5, 1, False),
        ("orders (rejected)", 3, 1, False),
        ("orders (rejected) > retry (expired)", 2, 4, True),
        ("mail (maxlen)", 1, 1, False),
    ]


def test_the_keys_with_most_deaths_come_first(letters: DataFrame) -> None:
    found = values(top_keys(deaths(letters), most=2), "routing_key", "deaths")
    assert found == [("order.new", 8), ("order.old", 8)]


def test_samples_are_the_latest_messages_of_each_queue_and_reason(letters: DataFrame) -> None:
    found = values(samples(deaths(letters), each=2), "died_in", "reason", "body")
    assert sorted(found) == [
        ("mail", "maxlen", "8"),
        ("orders", "expired", "3"),
        ("orders", "expired", "4"),
        ("orders", "rejected", "10"),
        ("orders", "rejected", "9"),
        ("retry", "expired", "10"),
        ("retry", "expired", "9"),
    ]


BODIES = [
    (b"caf\xc3\xa9", "café"),
    (b"\xff\x00", "FF00"),
    (b"", ""),
    (b"x" * 300, "x" * 200),
    (b"\xff" * 300, "FF" * 200),
]


def test_a_body_is_shown_as_text_or_in_hex(spark: SparkSession) -> None:
    frame = messages(spark, [{"body": body, "x_death": [EXPIRED]} for body, _ in BODIES])
    found = values(samples(deaths(frame), each=len(BODIES)), "offset", "body")
    assert dict(found) == {offset: shown for offset, (_, shown) in enumerate(BODIES)}
