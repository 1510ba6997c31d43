"""Fills the broker's bounded caches before memory is judged: names, topics and headers that are used once.

The caches of topics, routes and headers hold up to 10,000 entries. The steady traffic of a soak uses so few new ones
that the caches would take an hour and a half to reach their bounds, and memory would rise as long.
"""

from typing import Final

import pika

from benchmarks.soak.broker_under_test import BrokerUnderTest, MqttClient, StompClient

#: More than the largest cache holds.
_NAMES: Final = 12_000


def fill_caches(broker: BrokerUnderTest) -> None:
    """Publish to many names over each protocol; each message has its own header and goes to one subscriber or none."""
    _fill_by_mqtt(broker)
    _fill_by_amqp(broker)
    _fill_by_stomp(broker)


def _fill_by_mqtt(broker: BrokerUnderTest) -> None:
    subscriber, publisher = MqttClient(broker, "fill-subscriber"), MqttClient(broker, "fill-publisher")
    subscriber.subscribe("fill/#", 1)
    for number in range(_NAMES):
        publisher.publish(f"fill/{number}/value", b"%d" % number, 1)
    received = subscriber.receive(_NAMES)
    assert len(received) == _NAMES, f"{len(received)} of {_NAMES} messages"
    publisher.close()
    subscriber.close()


def _fill_by_amqp(broker: BrokerUnderTest) -> None:
    connection = broker.amqp()
    channel = connection.channel()
    channel.confirm_delivery()
    for number in range(_NAMES):
        properties = pika.BasicProperties(headers={"number": number})
        channel.basic_publish("amq.topic", f"fill.amqp.{number}", b"x", properties)
    connection.close()


def _fill_by_stomp(broker: BrokerUnderTest) -> None:
    client = StompClient(broker)
    for number in range(_NAMES):
        client.ask("SEND", f"destination:/topic/fill.stomp.{number}", f"number:{number}", body=b"x")
    client.close()
