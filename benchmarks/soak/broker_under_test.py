"""The broker under test, and blocking clients."""

import json
import socket
import struct
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, Final

import pika
from paho.mqtt import client as paho
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from pika.adapters.blocking_connection import BlockingChannel

from benchmarks.load.management import Management
from benchmarks.soak.ledger import Ledger, Miscounted
from tests.paho_loop import stop_loop

#: Longest wait for an answer or a message, in seconds.
ANSWER_TIMEOUT_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class BrokerUnderTest:
    """The broker's addresses, and the ledger shared by all activities."""

    ports: Mapping[str, int]
    pid: int
    ledger: Ledger

    def api(self, method: str, path: str, fields: object = None) -> Any:
        """Make a request below ``/api/``."""
        body = None if fields is None else json.dumps(fields)
        answer = Management(self.ports["management"]).ask(method, f"/api/{path}", body)
        return json.loads(answer) if answer else None

    @contextmanager
    def channel(self, vhost: str = "/") -> Iterator[BlockingChannel]:
        """Open an AMQP connection with a channel in confirm mode; close it normally at the end."""
        connection = self.amqp(vhost)
        try:
            channel = connection.channel()
            channel.confirm_delivery()
            yield channel
        finally:
            if connection.is_open:
                connection.close()

    def amqp(self, vhost: str = "/") -> pika.BlockingConnection:
        """Open an AMQP connection."""
        parameters = pika.ConnectionParameters("127.0.0.1", self.ports["amqp"], vhost, heartbeat=60)
        return pika.BlockingConnection(parameters)


def reset_connection(connection: pika.BlockingConnection) -> None:
    """Reset an AMQP connection."""
    reset(connection._impl._transport._sock)


def reset(peer: socket.socket) -> None:
    """Close a socket so that the peer sees a reset."""
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.close()


def drain(channel: BlockingChannel, queue: str, count: int, acknowledge: bool = True) -> list[bytes]:
    """Get messages from a queue, up to this count, or fewer on a timeout."""
    came: list[bytes] = []
    deadline = time.monotonic() + ANSWER_TIMEOUT_S
    while len(came) < count and time.monotonic() < deadline:
        method, _, body = channel.basic_get(queue, auto_ack=False)
        if method is None:
            time.sleep(0.01)
            continue
        came.append(body)
        if acknowledge:
            channel.basic_ack(method.delivery_tag)
    return came


class MqttClient:
    """An MQTT 5 client that records received messages."""

    def __init__(
        self,
        broker: BrokerUnderTest,
        name: str,
        *,
        clean: bool = True,
        expiry_s: int = 0,
        will: tuple[str, bytes] | None = None,
        web: bool = False,
    ) -> None:
        self.inbox: SimpleQueue[bytes] = SimpleQueue()
        self._answers: SimpleQueue[str] = SimpleQueue()
        transport = "websockets" if web else "tcp"
        self._paho = paho.Client(
            paho.CallbackAPIVersion.VERSION2,
            name,
            protocol=paho.MQTTv5,
            transport=transport,  # type: ignore[arg-type]
        )
        self._paho.username_pw_set("guest", "guest")
        if web:
            self._paho.ws_set_options("/ws")
        if will is not None:
            self._paho.will_set(*will, qos=1)
        self._paho.on_connect = lambda *_: self._answers.put("connected")
        self._paho.on_subscribe = lambda *_: self._answers.put("subscribed")
        self._paho.on_message = lambda _client, _data, message: self.inbox.put(message.payload)
        properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
        properties.SessionExpiryInterval = expiry_s
        port = broker.ports["web_mqtt" if web else "mqtt"]
        self._paho.connect("127.0.0.1", port, clean_start=clean, properties=properties)
        self._paho.loop_start()
        self._answers.get(timeout=ANSWER_TIMEOUT_S)

    def subscribe(self, topic: str, qos: int) -> None:
        """Subscribe, and wait for the answer."""
        self._paho.subscribe(topic, qos)
        self._answers.get(timeout=ANSWER_TIMEOUT_S)

    def publish(self, topic: str, body: bytes, qos: int, *, retain: bool = False) -> None:
        """Publish; for QoS 1 and 2 return when it is acknowledged."""
        self._paho.publish(topic, body, qos, retain).wait_for_publish(ANSWER_TIMEOUT_S)

    def receive(self, count: int) -> list[bytes]:
        """Wait for this many messages; return fewer on a timeout."""
        came: list[bytes] = []
        try:
            while len(came) < count:
                came.append(self.inbox.get(timeout=ANSWER_TIMEOUT_S))
        except Empty:
            pass
        return came

    def close(self) -> None:
        """Disconnect normally."""
        self._paho.disconnect()
        stop_loop(self._paho)

    def reset_connection(self) -> None:
        """Reset the connection, so that the will is published."""
        peer = self._paho.socket()
        stop_loop(self._paho)
        if isinstance(peer, socket.socket):
            reset(peer)


class StompClient:
    """A STOMP 1.2 client of plain frames."""

    def __init__(self, broker: BrokerUnderTest) -> None:
        self._peer = socket.create_connection(("127.0.0.1", broker.ports["stomp"]), ANSWER_TIMEOUT_S)
        self._unread = b""
        self._receipts = 0
        self.send("CONNECT", "accept-version:1.2", "host:/", "login:guest", "passcode:guest")
        self.expect("CONNECTED")

    def send(self, verb: str, *lines: str, body: bytes = b"") -> None:
        """Send a frame."""
        self._peer.sendall("\n".join([verb, *lines]).encode() + b"\n\n" + body + b"\0")

    def ask(self, verb: str, *lines: str, body: bytes = b"") -> None:
        """Send a frame, and wait for its receipt."""
        self._receipts += 1
        self.send(verb, *lines, f"receipt:{self._receipts}", body=body)
        self.expect("RECEIPT")

    def expect(self, verb: str) -> tuple[str, bytes]:
        """Wait for a frame; return its head and its body."""
        while b"\0" not in self._unread:
            piece = self._peer.recv(65_536)
            if not piece:
                raise ConnectionError("the broker closed the connection")
            self._unread += piece
        frame, _, self._unread = self._unread.partition(b"\0")
        head, _, body = frame.lstrip(b"\n").partition(b"\n\n")
        if not head.startswith(verb.encode()):
            raise Miscounted(f"expected {verb}, got {head[:200]!r}")
        return head.decode(), body

    def close(self) -> None:
        """Disconnect normally."""
        self.ask("DISCONNECT")
        self._peer.close()

    def reset_connection(self) -> None:
        """Reset the connection."""
        reset(self._peer)
