"""Archive files of messages from three protocols and of their trace, with both storage engines."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import paho.mqtt.client as mqtt
import pika
import pyarrow.parquet as pq
import pytest
import stomp
from paho.mqtt.enums import CallbackAPIVersion

from tests.broker.conftest import Connect, connect, gateway
from tests.management_client import put
from tests.paho_loop import stop_loop
from tests.running import Gateway
from tests.waiting import wait_until

__all__ = ["connect", "gateway"]

SETTINGS = ("archive.segment_age_s=1", 'vhosts."/".trace_table=true')


def rows(data: Path, table: str) -> list[dict[str, Any]]:
    """Return the rows of a table, in the order of its files."""
    files = sorted((data / table).glob("vhost=*/date=*/*.parquet"))
    return [row for file in files for row in pq.ParquetFile(file).read().to_pylist(maps_as_pydicts="strict")]


def wait_for(found: Callable[[], Any], enough: Callable[[Any], bool], timeout_s: float = 20.0) -> Any:
    values: list[Any] = []

    def is_enough() -> bool:
        values[:] = [found()]
        return bool(enough(values[0]))

    wait_until(is_enough, lambda: f"not enough: {values[0]}", timeout_s=timeout_s, interval_s=0.1)
    return values[0]


def publish_by_amqp(gateway: Gateway, connect: Connect) -> None:
    channel = connect().channel()
    channel.confirm_delivery()
    properties = pika.BasicProperties(message_id="m-1", headers={"n": 5}, user_id="guest")
    channel.basic_publish("amq.topic", "room.1.temp", b"by amqp", properties)


def publish_by_mqtt(gateway: Gateway) -> None:
    client = mqtt.Client(CallbackAPIVersion.VERSION2, client_id="sensor")
    client.connect(*gateway.addresses["mqtt"])
    client.loop_start()
    client.publish("room/1/temp", b"by mqtt", qos=1).wait_for_publish(10)
    client.disconnect()
    stop_loop(client)


def publish_by_stomp(gateway: Gateway) -> None:
    connection = stomp.Connection([gateway.addresses["stomp"]])
    connection.connect("guest", "guest", wait=True)
    connection.send("/topic/room.1.temp", "by stomp", headers={"colour": "red"})
    connection.disconnect(receipt="bye")


@pytest.mark.parametrize("engine", ["lmdb", "memory"])
def test_messages_of_three_protocols_are_in_one_table(gateway: Gateway, connect: Connect, engine: str) -> None:
    gateway.start(*SETTINGS, f"storage.engine={engine}")
    put(gateway, "policies/%2F/keep", {"pattern": r"^amq\.topic$", "definition": {"archive": True}})
    publish_by_amqp(gateway, connect)
    publish_by_mqtt(gateway)
    publish_by_stomp(gateway)
    found = wait_for(lambda: rows(gateway.data, "archive"), lambda rows: len(rows) == 3)
    by_protocol = {row["protocol"]: row for row in found}
    amqp, by_mqtt, by_stomp = by_protocol["amqp-0-9-1"], by_protocol["mqtt"], by_protocol["stomp"]
    assert (amqp["body"], amqp["message_id"], amqp["user_id"]) == (b"by amqp", "m-1", "guest")
    assert amqp["headers"] == {"n": "5"}
    assert (by_mqtt["body"], by_mqtt["client_id"]) == (b"by mqtt", "sensor")
    assert by_mqtt["mqtt"] == {"topic": "room/1/temp", "qos": 1, "retain": False}
    assert (by_stomp["body"], by_stomp["headers"]["colour"]) == (b"by stomp", "red")
    assert {row["routing_key"] for row in found} == {"room.1.temp"}
    assert {(row["vhost"], row["exchange"], row["queue"]) for row in found} == {("/", "amq.topic", None)}
    assert sorted(row["offset"] for row in found) == [0, 1, 2]


def test_the_life_of_a_message_is_in_the_trace(gateway: Gateway, connect: Connect) -> None:
    gateway.start(*SETTINGS)
    channel = connect().channel()
    channel.confirm_delivery()
    channel.queue_declare("work", durable=True, arguments={"x-max-length": 1})
    for number in range(2):
        properties = pika.BasicProperties(message_id=f"m-{number}", delivery_mode=2)
        channel.basic_publish("", "work", b"body", properties)
    method, _, _ = next(channel.consume("work"))
    channel.basic_nack(method.delivery_tag, requeue=True)
    method, _, _ = next(channel.consume("work"))
    assert method.redelivered
    channel.basic_ack(method.delivery_tag)
    channel.cancel()
    found = wait_for(lambda: rows(gateway.data, "trace"), lambda rows: "settle" in {row["event"] for row in rows})
    assert [row["event"] for row in found if row["message_id"] == "m-0"] == ["publish", "route", "enqueue", "drop"]
    life = [row for row in found if row["message_id"] == "m-1"]
    expected = ["publish", "route", "enqueue", "deliver", "requeue", "deliver", "settle"]
    assert [row["event"] for row in life] == expected
    assert len({row["trace_id"] for row in life}) == 1
    assert {row["position"] for row in life if row["event"] not in ("publish", "route")} == {life[2]["position"]}
    assert [row["redelivered"] for row in life if row["event"] == "deliver"] == [False, True]
    assert {row["protocol"] for row in life if row["event"] in ("publish", "deliver")} == {"amqp091"}
    assert [row["monotonic_ns"] for row in life] == sorted(row["monotonic_ns"] for row in life)
