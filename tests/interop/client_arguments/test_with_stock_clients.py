"""``gateway.clients`` with pika, aio-pika, paho and stomp.py at a real broker, whose clock the tests advance."""

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import aio_pika
import paho.mqtt.client as mqtt
import pika
import pytest
import stomp
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from pika.adapters.blocking_connection import BlockingChannel

from gateway.clients import (
    DeduplicationRule,
    delayed_exchange_arguments,
    message_headers,
    queue_arguments,
    stream_arguments,
    stream_consumer_arguments,
    text_headers,
)
from gateway.testing import Gateway, TestBroker


@pytest.fixture
def broker() -> Iterator[TestBroker]:
    with Gateway(fake_clock=True) as broker:
        yield broker


@pytest.fixture
def channel(broker: TestBroker) -> Iterator[BlockingChannel]:
    connection = pika.BlockingConnection(pika.URLParameters(broker.amqp_url))
    channel = connection.channel()
    channel.confirm_delivery()
    yield channel
    connection.close()


def properties(**headers: Any) -> pika.BasicProperties:
    return pika.BasicProperties(headers=message_headers(**headers))


def test_a_delayed_exchange_routes_when_a_message_is_due(broker: TestBroker, channel: BlockingChannel) -> None:
    arguments = delayed_exchange_arguments("topic", deduplication=DeduplicationRule(size=10))
    channel.exchange_declare("later", "x-delayed-message", arguments=arguments)
    channel.queue_declare("q")
    channel.queue_bind("q", "later", "a.*")
    for _ in range(2):
        channel.basic_publish("later", "a.b", b"tea", properties(delay=60, deduplication_id=1))
    broker.advance(59)
    assert broker.bodies("q") == []
    broker.advance(1)
    broker.assert_arrived("q", b"tea")


def test_a_queue_delays_drops_repetitions_and_retries_with_pauses(broker: TestBroker, channel: BlockingChannel) -> None:
    channel.exchange_declare("dead", "fanout")
    channel.queue_declare("rejected")
    channel.queue_bind("rejected", "dead")
    arguments = queue_arguments(
        delayed=True,
        retry_delays=[10, timedelta(minutes=1)],
        deduplication=DeduplicationRule(ttl=timedelta(hours=1)),
        dead_letter_exchange="dead",
        dead_letter_routing_key="gone",
    )
    channel.queue_declare("q", arguments=arguments)
    for _ in range(2):
        channel.basic_publish("", "q", b"m", properties(delay=timedelta(seconds=5), deduplication_id="17"))
    assert broker.bodies("q") == []
    for pause in (5, 10, 60):
        broker.advance(pause)
        broker.assert_arrived("q", b"m")
        method, _, _ = channel.basic_get("q")
        channel.basic_nack(method.delivery_tag, requeue=False)
        channel.queue_declare("q", passive=True)  # its answer comes after the rejection
    broker.assert_arrived("rejected", b"m")


def test_messages_expire_anywhere_and_the_queue_after_them(broker: TestBroker, channel: BlockingChannel) -> None:
    arguments = queue_arguments(message_ttl=3600, expire_anywhere=True, expires=timedelta(days=1))
    channel.queue_declare("q", arguments=arguments)
    for body, expiration in ((b"long", None), (b"short", "1000")):
        channel.basic_publish("", "q", body, pika.BasicProperties(expiration=expiration))
    broker.advance(1)
    broker.assert_arrived("q", b"long")
    broker.advance(3600)
    broker.assert_arrived("q")
    broker.advance(86_400)
    assert broker.request("GET", "queues", broker.vhost) == []


def test_a_full_queue_refuses(broker: TestBroker, channel: BlockingChannel) -> None:
    channel.queue_declare(
        "q", durable=True, arguments=queue_arguments(type="quorum", max_length=1, reject_when_full=True)
    )
    channel.basic_publish("", "q", b"one")
    with pytest.raises(pika.exceptions.NackError):
        channel.basic_publish("", "q", b"two")


def test_a_stream_is_read_from_an_offset_by_filter(broker: TestBroker, channel: BlockingChannel) -> None:
    arguments = stream_arguments(max_age=timedelta(days=7), max_bytes=10_000_000, segment_bytes=1_000_000)
    channel.queue_declare("s", durable=True, arguments=arguments)
    for number in range(4):
        channel.basic_publish(
            "", "s", b"%d" % number, properties(stream_filter_value="even" if number % 2 == 0 else "odd")
        )
    channel.basic_qos(prefetch_count=10)
    wanted = stream_consumer_arguments(1, name="reader", filters=["even"])
    bodies = []
    for method, _, body in channel.consume("s", arguments=wanted, inactivity_timeout=30):
        bodies.append(body)
        channel.basic_ack(method.delivery_tag)
        break
    channel.cancel()
    assert bodies == [b"2"]


@pytest.mark.parametrize("start", ["first", "last", "next", 0, timedelta(hours=1)])
def test_each_start_of_a_stream_is_accepted(start: Any, channel: BlockingChannel) -> None:
    channel.queue_declare("s", durable=True, arguments=stream_arguments())
    channel.basic_qos(prefetch_count=1)
    arguments = stream_consumer_arguments(start, match_unfiltered=True, filters=["x"])
    assert channel.basic_consume("s", lambda *delivery: None, arguments=arguments)


def test_aio_pika_takes_the_same_arguments(broker: TestBroker) -> None:
    async def publish() -> None:
        connection = await aio_pika.connect(broker.amqp_url)
        async with connection:
            channel = await connection.channel()
            queue = await channel.declare_queue("q", arguments=queue_arguments(delayed=True))
            message = aio_pika.Message(b"m", headers=message_headers({"own": 1}, delay=60))
            await channel.default_exchange.publish(message, queue.name)

    asyncio.run(publish())
    assert broker.bodies("q") == []
    broker.advance(60)
    broker.assert_arrived("q", b"m")


def test_an_mqtt_client_delays_by_user_properties(broker: TestBroker, channel: BlockingChannel) -> None:
    channel.queue_declare("q", arguments=queue_arguments(delayed=True))
    channel.queue_bind("q", "amq.topic", "plant.1")
    client = mqtt.Client(CallbackAPIVersion.VERSION2, protocol=mqtt.MQTTv5)
    client.username_pw_set(broker.mqtt_username, broker.password)
    client.connect(broker.host, broker.mqtt_port)
    client.loop_start()
    delayed = Properties(PacketTypes.PUBLISH)
    delayed.UserProperty = text_headers(message_headers(delay=60))
    client.publish("plant/1", b"m", qos=1, properties=delayed).wait_for_publish(30)
    client.disconnect()
    client.loop_stop()
    assert broker.bodies("q") == []
    broker.advance(60)
    broker.assert_arrived("q", b"m")


def test_a_stomp_client_delays_by_headers(broker: TestBroker, channel: BlockingChannel) -> None:
    channel.queue_declare("q", arguments=queue_arguments(delayed=True))
    connection = stomp.Connection12([(broker.host, broker.stomp_port)], vhost=broker.vhost)
    connection.connect(broker.username, broker.password, wait=True)
    headers = dict(text_headers(message_headers(delay=60)))
    connection.send("/amq/queue/q", "m", headers=headers, receipt="sent")
    connection.disconnect()
    assert broker.bodies("q") == []
    broker.advance(60)
    broker.assert_arrived("q", b"m")
