"""The topic rules of a virtual host change over HTTP in a running broker: clients connect again, and lose nothing."""

import paho.mqtt.client as paho
import pika
import pytest

from tests.management_client import get, request
from tests.paho_loop import stop_loop
from tests.running import Gateway
from tests.waiting import wait_until

RULES = "parameters/mqtt-topics/%2F/topics"


class Subscriber:
    """A paho client with a kept session, which connects again by itself."""

    def __init__(self, gateway: Gateway) -> None:
        self.received: list[tuple[str, bytes]] = []
        self.connects = 0
        self.client = paho.Client(paho.CallbackAPIVersion.VERSION2, "subscriber", clean_session=False)
        self.client.username_pw_set("guest", "guest")
        self.client.reconnect_delay_set(1, 1)
        self.client.on_connect = self._connected
        self.client.on_message = lambda _client, _data, message: self.received.append((message.topic, message.payload))
        self.client.connect(*gateway.addresses["mqtt"])
        self.client.loop_start()
        wait_until(lambda: self.connects == 1, lambda: "not connected")

    def _connected(self, *arguments: object) -> None:
        self.connects += 1

    def close(self) -> None:
        self.client.disconnect()
        stop_loop(self.client)


def test_a_session_moves_to_another_exchange_and_prefix(gateway: Gateway) -> None:
    gateway.start()
    subscriber = Subscriber(gateway)
    subscriber.client.subscribe("lamp/#", 1)
    wait_until(lambda: len(get(gateway, "bindings/%2F")) == 2, lambda: "not subscribed")
    request(gateway, "PUT", RULES, {"value": {"exchange": "telemetry", "prefix": "plant"}})
    wait_until(lambda: subscriber.connects == 2, lambda: "not connected again")
    host, port = gateway.addresses["amqp"]
    connection = pika.BlockingConnection(pika.ConnectionParameters(host, port))
    connection.channel().basic_publish("telemetry", "plant.lamp.1", b"amqp", pika.BasicProperties(delivery_mode=2))
    subscriber.client.publish("lamp/2", b"mqtt", qos=1).wait_for_publish(10)
    wait_until(lambda: len(subscriber.received) == 2, lambda: f"received: {subscriber.received}")
    assert sorted(subscriber.received) == [("lamp/1", b"amqp"), ("lamp/2", b"mqtt")]
    connection.close()
    subscriber.close()  # before the restart: it would connect again by itself and receive the next message
    gateway.restart()
    connection = pika.BlockingConnection(pika.ConnectionParameters(*gateway.addresses["amqp"]))
    connection.channel().basic_publish("telemetry", "plant.lamp.3", b"late", pika.BasicProperties(delivery_mode=2))
    connection.close()
    again = Subscriber(gateway)
    # the kill may come before the removal of the others was written: then they are delivered again
    wait_until(lambda: ("lamp/3", b"late") in again.received, lambda: f"received: {again.received}")
    again.close()
    assert [each["source"] for each in get(gateway, "bindings/%2F") if each["source"]] == ["telemetry"]


def test_an_invalid_value_is_refused_with_the_reason(gateway: Gateway) -> None:
    gateway.start()
    with pytest.raises(Exception, match="400"):
        request(gateway, "PUT", RULES, {"value": {"exchange": "amq.direct"}})
    assert get(gateway, "parameters") == []
