"""Narrowing of reads by Spark's filters on offsets, times, queues and partitions.

Only the bounds of the read become narrower; Spark applies every filter itself as well.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
    StringStartsWith,
)

from gateway_spark.choices import ceil_ms
from gateway_spark.narrowing import Interval, Narrowing
from gateway_spark.offsets import Key

_FINEST: Final = timedelta(microseconds=1)


def narrowed(filters: Iterable[Filter]) -> Narrowing:
    """Return the narrowing by the filters; other filters have no effect on it."""
    result = Narrowing()
    for each in filters:
        attribute = getattr(each, "attribute", ())
        if attribute == ("offset",):
            result = replace(result, offsets=result.offsets.within(_interval(each, int, int)))
        elif attribute == ("timestamp",):
            result = replace(result, times_ms=result.times_ms.within(_interval(each, ceil_ms, _after_ms)))
        elif attribute == ("queue",):
            result = replace(result, tests=(*result.tests, _queue_test(each)))
        elif attribute == ("broker",):
            result = replace(result, tests=(*result.tests, _broker_test(each)))
        elif attribute == ("partition",):
            result = replace(result, tests=(*result.tests, _partition_test(each)))
    return result


def _interval(each: Filter, at: Callable[[Any], int], below: Callable[[Any], int]) -> Interval:
    """Return the numbers that satisfy a comparison.

    ``at`` returns the first number not below a value, ``below`` the last number not above it.
    """
    match each:
        case EqualTo(_, value):
            return Interval(at(value), below(value) + 1)
        case GreaterThanOrEqual(_, value):
            return Interval(begin=at(value))
        case GreaterThan(_, value):
            return Interval(begin=below(value) + 1)
        case LessThan(_, value):
            return Interval(end=at(value))
        case LessThanOrEqual(_, value):
            return Interval(end=below(value) + 1)
        case In(_, values) if values and None not in values:
            return Interval(min(map(at, values)), max(map(below, values)) + 1)
    return Interval()


def _after_ms(moment: datetime) -> int:
    """Return the last millisecond since the epoch that is not after a time."""
    return ceil_ms(moment + _FINEST) - 1


def _queue_test(each: Filter) -> Callable[[Key], bool]:
    is_wanted = _text_test(each)
    return lambda key: is_wanted(key.queue)


def _broker_test(each: Filter) -> Callable[[Key], bool]:
    is_wanted = _text_test(each)
    return lambda key: is_wanted(key.broker)


def _text_test(each: Filter) -> Callable[[str], bool]:
    match each:
        case EqualTo(_, value):
            return lambda text: text == value
        case In(_, values):
            return lambda text: text in values
        case StringStartsWith(_, value):
            return lambda text: text.startswith(value)
    return lambda text: True


def _partition_test(each: Filter) -> Callable[[Key], bool]:
    chosen: Collection[Any]
    match each:
        case EqualTo(_, value):
            chosen = (value,)
        case In(_, values):
            chosen = tuple(values)
        case _:
            return lambda key: True
    return lambda key: int(key.number) in chosen
