"""Steady traffic: clients that stay connected, and send and receive a little in each round."""

import time
from base64 import b64decode
from contextlib import suppress
from queue import Empty
from typing import Final

import pika

from benchmarks.soak.broker_under_test import ANSWER_TIMEOUT_S, BrokerUnderTest, MqttClient, StompClient
from benchmarks.soak.work import Activities, Bodies, Work

#: Properties of a persistent message.
_PERSISTENT: Final = pika.BasicProperties(delivery_mode=2)


def amqp(broker: BrokerUnderTest) -> Work:
    """Publish persistent messages with confirms to a consumer that acknowledges each."""
    connection = broker.amqp()
    channel, consumer = connection.channel(), connection.channel()
    channel.confirm_delivery()
    channel.queue_declare("soak.steady", durable=True)
    consumer.basic_qos(prefetch_count=10)
    came: list[bytes] = []

    def take(_channel: object, method: object, _properties: object, body: bytes) -> None:
        came.append(body)
        consumer.basic_ack(method.delivery_tag)  # type: ignore[attr-defined]

    consumer.basic_consume("soak.steady", take)
    bodies = Bodies("amqp")

    def work() -> None:
        came.clear()
        sent = bodies.some(20)
        for body in sent:
            channel.basic_publish("", "soak.steady", body, _PERSISTENT)
        deadline = time.monotonic() + ANSWER_TIMEOUT_S
        while len(came) < len(sent) and time.monotonic() < deadline:
            connection.process_data_events(0.1)
        connection.process_data_events(0)
        broker.ledger.settle("amqp", sent, came)

    return work


def mqtt(broker: BrokerUnderTest) -> Work:
    """Publish with each QoS to a subscriber."""
    publisher, subscriber = MqttClient(broker, "soak-publisher"), MqttClient(broker, "soak-subscriber")
    for qos in range(3):
        subscriber.subscribe(f"soak/steady/{qos}", qos)
    bodies = Bodies("mqtt")

    def work() -> None:
        sent = bodies.some(12)
        for number, body in enumerate(sent):
            publisher.publish(f"soak/steady/{number % 3}", body, number % 3)
        came = subscriber.receive(len(sent))
        with suppress(Empty):
            came.append(subscriber.inbox.get_nowait())
        broker.ledger.settle("mqtt", sent, came)

    return work


def stomp(broker: BrokerUnderTest) -> Work:
    """Send with receipts to a subscription with individual acknowledgement."""
    sender, receiver = StompClient(broker), StompClient(broker)
    receiver.ask("SUBSCRIBE", "id:0", "destination:/queue/soak.stomp", "ack:client-individual")
    bodies = Bodies("stomp")

    def work() -> None:
        sent, came = bodies.some(10), []
        for body in sent:
            sender.ask("SEND", "destination:/queue/soak.stomp", "persistent:true", body=body)
        for _ in sent:
            head, body = receiver.expect("MESSAGE")
            came.append(body)
            (ack,) = (line.partition(":")[2] for line in head.split("\n") if line.startswith("ack:"))
            receiver.send("ACK", f"id:{ack}")
        broker.ledger.settle("stomp", sent, came)

    return work


def http(broker: BrokerUnderTest) -> Work:
    """Publish and get over the management API, and read listings."""
    broker.api("PUT", "queues/%2F/soak.http", {"durable": True})
    bodies = Bodies("http")

    def work() -> None:
        sent = bodies.some(2)
        for body in sent:
            fields = {"properties": {"delivery_mode": 2}, "routing_key": "soak.http", "payload_encoding": "string"}
            answer = broker.api("POST", "exchanges/%2F/amq.default/publish", fields | {"payload": body.decode()})
            assert answer == {"routed": True}, answer
        wanted = {"count": 10, "ackmode": "ack_requeue_false", "encoding": "base64"}
        came = [b64decode(each["payload"]) for each in broker.api("POST", "queues/%2F/soak.http/get", wanted)]
        broker.ledger.settle("http", sent, came)
        for listing in ("overview", "queues", "connections", "channels", "exchanges", "bindings", "policies", "users"):
            broker.api("GET", listing)

    return work


STEADY: Final[Activities] = {
    "amqp": (amqp, 1.0),
    "mqtt": (mqtt, 1.0),
    "stomp": (stomp, 1.0),
    "http": (http, 5.0),
}
"""Each with its pause between two rounds, in seconds."""
