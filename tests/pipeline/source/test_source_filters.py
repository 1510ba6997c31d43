"""Spark's filters narrow the read, but never exclude matching messages."""

import operator
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringStartsWith,
)

from gateway_spark.batch_reader import FilteringReader
from gateway_spark.offsets import Key
from gateway_spark.pushdown import narrowed
from gateway_spark.source import GatewaySource
from tests.pipeline.fake_broker import EPOCH_MS, FakeBroker, fake_broker

MESSAGES = 60
EPOCH = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=EPOCH_MS)

COMPARISONS: dict[type[Filter], Callable[[Any, Any], bool]] = {
    EqualTo: operator.eq,
    GreaterThan: operator.gt,
    GreaterThanOrEqual: operator.ge,
    LessThan: operator.lt,
    LessThanOrEqual: operator.le,
}


@pytest.fixture(scope="module")
def broker() -> Iterator[FakeBroker]:
    with fake_broker() as broker:
        broker.declare("orders", 0, MESSAGES)
        broker.declare_super("sales", (0, 5), (0, 7))
        yield broker


def offsets(broker: FakeBroker, filters: list[Filter], queue: str = "orders") -> list[int]:
    source = GatewaySource(broker.options(queues=queue, pushdown="true"))
    reader = source.reader(source.schema())
    assert isinstance(reader, FilteringReader)
    assert list(reader.pushFilters(filters)) == filters, "Spark must apply all of them too"
    return [
        offset for task in reader.partitions() for rows in reader.read(task) for offset in rows["offset"].to_pylist()
    ]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(kind=st.sampled_from(sorted(COMPARISONS, key=str)), bound=st.integers(-3, MESSAGES + 3))
def test_offsets_are_narrowed_exactly(broker: FakeBroker, kind: Any, bound: int) -> None:
    expected = [offset for offset in range(MESSAGES) if COMPARISONS[kind](offset, bound)]
    assert offsets(broker, [kind(("offset",), bound)]) == expected


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    kind=st.sampled_from(sorted(COMPARISONS, key=str)),
    second=st.integers(-2, MESSAGES + 2),
    micros=st.sampled_from([-1001, -1000, -999, -1, 0, 1, 999, 1000, 1001]),
)
def test_times_are_narrowed_exactly(broker: FakeBroker, kind: Any, second: int, micros: int) -> None:
    """Message n has a time n seconds after the epoch of the fake; bounds have the resolution of Spark's times."""
    bound = EPOCH + timedelta(seconds=second, microseconds=micros)
    expected = [n for n in range(MESSAGES) if COMPARISONS[kind](EPOCH + timedelta(seconds=n), bound)]
    assert offsets(broker, [kind(("timestamp",), bound)]) == expected


def test_all_filters_apply(broker: FakeBroker) -> None:
    filters = [
        GreaterThanOrEqual(("offset",), 5),
        LessThan(("timestamp",), EPOCH + timedelta(seconds=9)),
        LessThanOrEqual(("offset",), 40),
        IsNotNull(("offset",)),
    ]
    assert offsets(broker, filters) == [5, 6, 7, 8]


def test_a_set_is_narrowed_to_its_range(broker: FakeBroker) -> None:
    assert offsets(broker, [In(("offset",), (9, 7, 12))]) == [7, 8, 9, 10, 11, 12]


PLACES = [
    (EqualTo(("queue",), "orders"), MESSAGES),
    (In(("queue",), ("sales", "other")), 12),
    (StringStartsWith(("queue",), "sa"), 12),
    (EqualTo(("partition",), 1), 7),
    (In(("partition",), (0, 5)), MESSAGES + 5),
]


@pytest.mark.parametrize(("filter", "count"), PLACES, ids=str)
def test_queues_and_partitions_excluded_by_filters_are_not_read(broker: FakeBroker, filter: Filter, count: int) -> None:
    assert len(offsets(broker, [filter], "orders,sales")) == count


NOTHING_SAID = [
    EqualTo(("routing_key",), "x"),
    Not(EqualTo(("offset",), 5)),
    StringStartsWith(("offset",), "5"),
    In(("offset",), (5, None)),
    In(("offset",), ()),
    GreaterThan(("partition",), 1),
    GreaterThan(("queue",), "z"),
]


@pytest.mark.parametrize("filter", NOTHING_SAID, ids=str)
def test_other_filters_narrow_nothing(filter: Filter) -> None:
    narrowing = narrowed([filter])
    assert (narrowing.offsets.begin, narrowing.offsets.end) == (None, None)
    assert narrowing.allows(Key("orders", "0"))
