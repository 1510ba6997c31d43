"""Latencies from trace events with known times."""

from typing import Any

from pyspark.sql import SparkSession

from gateway_spark.transforms.latencies import deliveries, endings, latencies, throughput
from tests.pipeline.frames import trace, values


def life(number: int, begin: float, to_deliver: float, to_settle: float, **columns: Any) -> list[dict[str, Any]]:
    """Return the events of one message from publish to settlement."""
    delivered = begin + to_deliver
    return [
        {"event": "publish", "ms": begin, "trace_id": number, **columns, "queue": None},
        {"event": "enqueue", "ms": begin, "trace_id": number, "position": number, **columns},
        {"event": "deliver", "ms": delivered, "position": number, **columns},
        {"event": "settle", "ms": delivered + to_settle, "position": number, "outcome": "accepted", **columns},
    ]


def published(**columns: Any) -> list[dict[str, Any]]:
    """Return a message that was published and enqueued at the start."""
    return [{"event": event, "ms": 0, "trace_id": 1, **columns} for event in ("publish", "enqueue")]


def test_a_delivery_has_three_durations(spark: SparkSession) -> None:
    found = deliveries(trace(spark, life(1, 0, 5, 20)))
    assert values(found, "queue", "to_deliver", "to_settle", "in_all") == [("orders", 5.0, 20.0, 25.0)]


def test_percentiles_are_grouped_by_queue_and_protocol(spark: SparkSession) -> None:
    slow = [event for number in range(1, 101) for event in life(number, number * 7, number, 2 * number)]
    fast = life(200, 0, 1, 1, queue="mail", protocol="mqtt")
    found = latencies(deliveries(trace(spark, slow + fast)))
    columns = ("protocol", "queue", "deliveries", "to_deliver_p50", "to_deliver_p99", "to_settle_p95", "in_all_p50")
    (orders, mail) = values(found, *columns)
    assert mail == ("mqtt", "mail", 1, 1.0, 1.0, 1.0, 2.0)
    assert orders[:3] == ("amqp", "orders", 100)
    assert [round(figure, 6) for figure in orders[3:]] == [50.5, 99.01, 190.1, 151.5]


def test_a_requeued_message_has_two_deliveries(spark: SparkSession) -> None:
    first = [*published(), {"event": "deliver", "ms": 1}, {"event": "requeue", "ms": 3}]
    second = [{"event": "deliver", "ms": 10, "redelivered": True}, {"event": "settle", "ms": 14}]
    found = deliveries(trace(spark, first + second))
    assert sorted(values(found, "redelivered", "to_deliver", "to_settle")) == [(False, 1.0, 2.0), (True, 10.0, 4.0)]
    assert values(latencies(found), "deliveries", "redelivered") == [(2, 0.5)]


def test_each_queue_of_a_fanout_is_measured_separately(spark: SparkSession) -> None:
    rows = [*published(queue="a"), *published(queue="b")]
    rows += [{"event": "deliver", "ms": ms, "queue": queue} for queue, ms in (("a", 2), ("b", 4))]
    rows += [{"event": "settle", "ms": ms, "queue": queue} for queue, ms in (("a", 12), ("b", 7))]
    found = deliveries(trace(spark, rows))
    assert sorted(values(found, "queue", "to_deliver", "to_settle")) == [("a", 2.0, 10.0), ("b", 4.0, 3.0)]


def test_times_outside_the_trace_are_null(spark: SparkSession) -> None:
    found = deliveries(trace(spark, [{"event": "deliver", "ms": 1}]))
    assert values(found, "to_deliver", "to_settle", "in_all") == [(None, None, None)]


def test_another_virtual_host_may_use_the_same_numbers(spark: SparkSession) -> None:
    found = deliveries(trace(spark, life(1, 0, 5, 5) + life(1, 100, 7, 5, vhost="other")))
    assert sorted(values(found, "vhost", "to_deliver")) == [("/", 5.0), ("other", 7.0)]


def test_a_number_reused_after_a_restart_is_another_message(spark: SparkSession) -> None:
    again = [event | {"position": 9} for event in life(1, 1000, 2, 5)]
    found = deliveries(trace(spark, life(1, 0, 5, 5) + again))
    assert sorted(values(found, "position", "to_deliver")) == [(1, 5.0), (9, 2.0)]


def test_throughput_is_counted_by_window(spark: SparkSession) -> None:
    events = [event for number in range(3) for event in life(number, number * 40_000, 1, 1)]
    found = throughput(trace(spark, events)).selectExpr(
        "unix_timestamp(window_start) % 3600 as at", "event", "messages"
    )
    assert values(found.where("event = 'publish'"), "at", "messages") == [(0, 2), (60, 1)]
    assert values(found.where("event = 'settle'"), "at", "messages") == [(0, 2), (60, 1)]


def test_other_outcomes_are_counted(spark: SparkSession) -> None:
    rows = [{"event": "expire", "ms": 1}, {"event": "expire", "ms": 2}, {"event": "drop", "reason": "maxlen", "ms": 3}]
    found = endings(trace(spark, rows + life(9, 0, 1, 1)))
    assert values(found, "event", "reason", "messages") == [("expire", None, 2), ("drop", "maxlen", 1)]
