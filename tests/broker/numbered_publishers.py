"""Clients of each protocol that publish numbered messages, each confirmed before the next, until they are stopped."""

import threading
from typing import Any, ClassVar

import paho.mqtt.client as paho
import pika
import stomp

from tests.paho_loop import stop_loop
from tests.running import Gateway
from tests.waiting import wait_until

CONFIRM_TIMEOUT_S = 20.0


class NumberedPublisher:
    """Publishes the numbers 0, 1, 2 ... in a thread. ``name`` is the routing key.

    ``sent`` is the number of confirmed messages; ``faults`` has disconnects and everything else that went wrong.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.sent = 0
        self.faults: list[str] = []
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Start to publish."""
        self._thread.start()

    def stop(self) -> None:
        """Stop after the message that is on its way, and disconnect."""
        self._is_over.set()
        self._thread.join(2 * CONFIRM_TIMEOUT_S)
        assert not self._thread.is_alive()
        self.close()

    def _run(self) -> None:
        while not self._is_over.is_set():
            try:
                self.publish(str(self.sent))
            except Exception as error:
                self.faults.append(repr(error))
                return
            self.sent += 1

    def disconnected(self) -> None:
        """Count a connection that ends before ``stop``."""
        if not self._is_over.is_set():
            self.faults.append("disconnected")

    def publish(self, body: str) -> None:
        """Publish one message, and wait until the broker confirmed it."""
        raise NotImplementedError

    def close(self) -> None:
        """Disconnect."""
        raise NotImplementedError


class AmqpPublisher(NumberedPublisher):
    """Publishes with confirms to an exchange; an unroutable message is an error."""

    def __init__(self, gateway: Gateway, name: str, exchange: str, vhost: str = "/") -> None:
        super().__init__(name)
        host, port = gateway.addresses["amqp"]
        self._exchange = exchange
        self._connection = pika.BlockingConnection(pika.ConnectionParameters(host, port, vhost))
        self._channel = self._connection.channel()
        self._channel.confirm_delivery()

    def publish(self, body: str) -> None:
        """Publish one message, and wait for ``basic.ack``."""
        self._channel.basic_publish(self._exchange, self.name, body.encode(), mandatory=True)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


class MqttPublisher(NumberedPublisher):
    """Publishes with a QoS of 1 or 2 to the topic ``name``."""

    version: ClassVar[int] = paho.MQTTv5

    def __init__(self, gateway: Gateway, name: str, qos: int) -> None:
        super().__init__(name)
        self._qos = qos
        self._client = paho.Client(paho.CallbackAPIVersion.VERSION2, name, protocol=self.version)
        self._client.username_pw_set("guest", "guest")
        self._client.on_disconnect = lambda *arguments: self.disconnected()
        self._client.connect(*gateway.addresses["mqtt"])
        self._client.loop_start()
        wait_until(self._client.is_connected, lambda: "MQTT does not connect")

    def publish(self, body: str) -> None:
        """Publish one message, and wait for PUBACK or PUBCOMP."""
        info = self._client.publish(self.name, body, qos=self._qos)
        info.wait_for_publish(CONFIRM_TIMEOUT_S)
        assert info.is_published(), "no acknowledgement"

    def close(self) -> None:
        """Disconnect."""
        self._client.disconnect()
        stop_loop(self._client)


class StompPublisher(NumberedPublisher, stomp.ConnectionListener):
    """Publishes with receipts to a destination."""

    def __init__(self, gateway: Gateway, name: str, destination: str) -> None:
        super().__init__(name)
        self._destination = destination
        self._receipt = threading.Event()
        self._client = stomp.Connection12([gateway.addresses["stomp"]], vhost="/")
        self._client.set_listener("load", self)
        self._client.connect("guest", "guest", wait=True)

    def on_receipt(self, frame: Any) -> None:
        """Note the receipt."""
        self._receipt.set()

    def on_error(self, frame: Any) -> None:
        """Note an ERROR."""
        self.faults.append(str(frame.body))

    def on_disconnected(self) -> None:
        """Note a disconnect."""
        self.disconnected()

    def publish(self, body: str) -> None:
        """Publish one message, and wait for its RECEIPT."""
        self._receipt.clear()
        self._client.send(self._destination, body, headers={"receipt": body})
        assert self._receipt.wait(CONFIRM_TIMEOUT_S), "no receipt"

    def close(self) -> None:
        """Disconnect."""
        self._client.disconnect()
