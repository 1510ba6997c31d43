"""RabbitMQ's firehose, switched on by a setting, seen by a client."""

import pika

from tests.broker.conftest import Connect
from tests.interop.pika_client import is_empty
from tests.running import Gateway

TRACED = 'vhosts."/".tracing=true'


def test_what_is_published_and_delivered_is_copied(gateway: Gateway, connect: Connect) -> None:
    gateway.start(TRACED)
    channel = connect().channel()
    channel.queue_declare("q")
    channel.queue_declare("trace", exclusive=True)
    channel.queue_bind("trace", "amq.rabbitmq.trace", "#")
    channel.basic_publish("amq.direct", "nowhere", b"lost")
    channel.basic_publish("", "q", b"seen", pika.BasicProperties(content_type="text/plain", headers={"a": 1}))
    assert channel.basic_get("q", auto_ack=True)[2] == b"seen"

    copies = [channel.basic_get("trace", auto_ack=True) for _ in range(3)]
    assert is_empty(channel, "trace")
    assert [method.routing_key for method, _, _ in copies] == ["publish.amq.direct", "publish.", "deliver.q"]
    assert [body for _, _, body in copies] == [b"lost", b"seen", b"seen"]
    lost, published, delivered = (properties.headers for _, properties, _ in copies)
    assert lost["routed_queues"] == []
    assert published["routed_queues"] == ["q"]
    assert published["routing_keys"] == ["q"]
    assert published["properties"] == {"content_type": "text/plain", "headers": {"a": 1}}
    assert (published["user"], published["vhost"], published["channel"]) == ("guest", "/", 1)
    assert delivered["redelivered"] == 0


def test_nothing_is_copied_unless_it_is_switched_on(gateway: Gateway, connect: Connect) -> None:
    gateway.start(TRACED)
    gateway.stop()
    gateway.start('vhosts."/".tracing=false')
    channel = connect().channel()
    channel.queue_declare("trace", exclusive=True)
    channel.queue_bind("trace", "amq.rabbitmq.trace", "#")
    channel.queue_declare("q")
    channel.confirm_delivery()
    channel.basic_publish("", "q", b"private")
    assert is_empty(channel, "trace")
