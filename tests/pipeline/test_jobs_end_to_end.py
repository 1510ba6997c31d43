"""Jobs with a real broker: they read from it and publish to it."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from pyspark.sql import SparkSession

from gateway_spark.jobs import dead_letters, latency, presence, replay
from gateway_spark.jobs.running import main
from gateway_spark.reports.page import ResultTables
from tests.interop.amqp_clients.pika_client import parameters, wait_for
from tests.pipeline.broker_api import call, url_of, wait_for_rows
from tests.running import Gateway, gateway_in

STREAM = {"x-queue-type": "stream"}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with gateway_in(tmp_path_factory.mktemp("jobs"), "archive.segment_age_s=1") as running:
        yield running


@pytest.fixture
def channel(gateway: Gateway) -> Iterator[BlockingChannel]:
    with pika.BlockingConnection(parameters(gateway.broker)) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        yield channel


def taken(channel: BlockingChannel, queue: str) -> list[tuple[Any, bytes]]:
    """Consume all messages of a queue."""
    found = []
    while True:
        method, properties, body = channel.basic_get(queue, auto_ack=True)
        if method is None:
            return found
        found.append((properties, body))


BODIES = [bytes([number, 0xFF, 0]) for number in range(25)]


def test_a_repeated_replay_publishes_each_message_once(
    spark: SparkSession, gateway: Gateway, channel: BlockingChannel, tmp_path: Path
) -> None:
    channel.queue_declare("orders.log", durable=True, arguments=STREAM)
    channel.queue_declare("again", durable=True)
    for number, body in enumerate(BODIES):
        headers = {"n": number, "nested": {"list": [1, "two"]}}
        properties = pika.BasicProperties(headers=headers, content_type="x/y", message_id=f"m{number}", priority=3)
        channel.basic_publish("", "orders.log", body, properties)
    source = ["--queue", "orders.log", "--url", url_of(gateway), "--name", "again", "--batch-size", "10"]
    target = ["--to-exchange", "", "--to-routing-key", "again"]
    for out in ("first", "first", "elsewhere"):
        assert main(replay.JOB, [*source, *target, "--out", str(tmp_path / out)]) == 0
    found = taken(channel, "again")
    assert [body for _, body in found] == BODIES
    properties, _ = found[3]
    assert properties.headers == {"n": 3, "nested": {"list": [1, "two"]}, "x-replayed-from": "orders.log/0/3"}
    assert (properties.content_type, properties.message_id, properties.priority) == ("x/y", "m3", 3)


def test_dead_letters_are_counted_by_queue_and_reason(
    spark: SparkSession, gateway: Gateway, channel: BlockingChannel, tmp_path: Path
) -> None:
    """Four expire, two exceed the length limit, three are rejected, two exceed the delivery limit."""
    channel.exchange_declare("dead", "fanout", durable=True)
    channel.queue_declare("dead", durable=True, arguments=STREAM)
    channel.queue_bind("dead", "dead")
    buried = {"x-dead-letter-exchange": "dead"}
    channel.queue_declare("brief", durable=True, arguments={**buried, "x-message-ttl": 0})
    channel.queue_declare("short", durable=True, arguments={**buried, "x-max-length": 3})
    channel.queue_declare("refused", durable=True, arguments=buried)
    limit = {"x-queue-type": "quorum", "x-delivery-limit": 1}
    channel.queue_declare("limited", durable=True, arguments={**buried, **limit})
    for queue, count in (("brief", 4), ("short", 5), ("refused", 3), ("limited", 2)):
        for number in range(count):
            channel.basic_publish("", queue, f"{queue} {number}".encode())
    for _ in range(3):
        method, _, _ = channel.basic_get("refused")
        channel.basic_reject(method.delivery_tag, requeue=False)
    for _ in range(4):
        method, _, _ = channel.basic_get("limited")
        channel.basic_reject(method.delivery_tag, requeue=True)
    wait_for(channel.connection, lambda: _end_of(gateway, "dead") == 11)
    assert main(dead_letters.JOB, ["--queue", "dead", "--url", url_of(gateway), "--out", str(tmp_path)]) == 0
    tables = ResultTables(tmp_path)
    causes = tables["causes"].set_index(["died_in", "reason"])
    assert causes["messages"].to_dict() == {
        ("brief", "expired"): 4,
        ("short", "maxlen"): 2,
        ("refused", "rejected"): 3,
        ("limited", "delivery_limit"): 2,
    }
    assert (causes["deaths"] == causes["messages"]).all()
    assert set(tables["samples"]["body"]) >= {"short 0", "short 1", "limited 0", "limited 1"}


def _end_of(gateway: Gateway, stream: str) -> int:
    answer = call(gateway, "GET", f"pipeline/%2F/streams?names=%5B%22{stream}%22%5D")
    end: int = answer["queues"][0]["partitions"]["0"]["next"]
    return end


#: How long the consumer holds its deliveries, in seconds.
KEPT_S = 0.25


def test_the_latency_to_settlement_is_that_of_the_consumer(
    spark: SparkSession, gateway: Gateway, channel: BlockingChannel, tmp_path: Path
) -> None:
    call(gateway, "PUT", "vhosts/%2F", {"trace_table": True})
    channel.queue_declare("slow", durable=True)
    begun = time.monotonic()
    for number in range(10):
        channel.basic_publish("", "slow", b"%d" % number)
    handed = [channel.basic_get("slow")[0] for _ in range(10)]
    time.sleep(KEPT_S)  # the latency that the job measures
    for method in handed[:8]:
        channel.basic_ack(method.delivery_tag)
    for method in handed[8:]:
        channel.basic_reject(method.delivery_tag, requeue=True)
    assert [channel.basic_get("slow", auto_ack=True)[0].redelivered for _ in range(2)] == [True, True]
    channel.queue_declare("slow", passive=True)
    whole_ms = (time.monotonic() - begun) * 1000
    call(gateway, "PUT", "vhosts/%2F", {"trace_table": False})
    trace = gateway.data / "trace"
    # Published, routed, enqueued and delivered ten times, with twelve other outcomes.
    wait_for_rows(trace, 10 * 4 + 12)
    assert main(latency.JOB, ["--archive", str(trace), "--queue", "slow", "--out", str(tmp_path)]) == 0
    (row,) = ResultTables(tmp_path)["latencies"].to_dict("records")
    assert (row["vhost"], row["protocol"], row["queue"]) == ("/", "amqp091", "slow")
    assert (row["deliveries"], row["redelivered"]) == (12, pytest.approx(2 / 12))
    assert KEPT_S * 1000 <= row["to_settle_p50"] <= row["in_all_p50"] <= whole_ms
    assert 0 <= row["to_deliver_p50"] <= whole_ms - KEPT_S * 1000
    assert row["to_deliver_p99"] >= KEPT_S * 1000


def test_an_alert_is_published_once(
    spark: SparkSession, gateway: Gateway, channel: BlockingChannel, tmp_path: Path
) -> None:
    channel.queue_declare("seen", durable=True, arguments=STREAM)
    channel.queue_bind("seen", "amq.topic", "seen.*")
    channel.queue_declare("alerts", durable=True)
    for minute in (0, 1, 2, 3):
        channel.basic_publish("amq.topic", "seen.a", json.dumps({"at": f"2024-01-01T00:{minute:02}:00Z"}).encode())
    source = ["--queue", "seen", "--url", url_of(gateway), "--time", "$.at", "--out", str(tmp_path)]
    alerts = ["--alert-exchange", "", "--alert-routing-key", "alerts"]
    for minute in (10, 20):
        assert main(presence.JOB, [*source, *alerts, "--as-of", f"2024-01-01T00:{minute}:00Z"]) == 0
    ((properties, body),) = taken(channel, "alerts")
    assert properties.content_type == "application/json"
    assert json.loads(body)["routing_key"] == "seen.a"
    assert json.loads(body)["silence_s"] == 420.0
