"""Publishing by AMQP, MQTT and STOMP, in turns, to a broker that is killed meanwhile.

What was not confirmed is published again, so a message may be twice in the stream, and none is missing.
"""

import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

import pika
from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion
from pika.exceptions import AMQPError

EXCHANGE: Final = "amq.topic"
TIMEOUT_S: Final = 20.0
PERSISTENT: Final = pika.BasicProperties(delivery_mode=2)

Publish = Callable[[str, int, str, Sequence[bytes]], None]


def by_amqp(host: str, port: int, key: str, bodies: Sequence[bytes]) -> None:
    """Publish in one transaction."""
    with pika.BlockingConnection(pika.ConnectionParameters(host, port, socket_timeout=TIMEOUT_S)) as connection:
        channel = connection.channel()
        channel.tx_select()
        for body in bodies:
            channel.basic_publish(EXCHANGE, key, body, PERSISTENT)
        channel.tx_commit()


def by_mqtt(host: str, port: int, key: str, bodies: Sequence[bytes]) -> None:
    """Publish with QoS 1, and wait for all PUBACKs."""
    client = Client(CallbackAPIVersion.VERSION2)
    client.username_pw_set("guest", "guest")
    client.max_inflight_messages_set(len(bodies))
    client.connect(host, port)
    client.loop_start()
    try:
        deadline_s = time.monotonic() + TIMEOUT_S
        for each in [client.publish(key, body, qos=1) for body in bodies]:
            each.wait_for_publish(max(0.0, deadline_s - time.monotonic()))
            if not each.is_published():
                raise OSError("no PUBACK")
    finally:
        client.disconnect()
        client.loop_stop()


def by_stomp(host: str, port: int, key: str, bodies: Sequence[bytes]) -> None:
    """Publish in one transaction, and wait for its receipt."""
    head = f"SEND\ndestination:/exchange/{EXCHANGE}/{key}\ntransaction:t\npersistent:true\n".encode()
    frames = [
        b"CONNECT\naccept-version:1.2\nhost:/\nlogin:guest\npasscode:guest\n\n\0",
        b"BEGIN\ntransaction:t\n\n\0",
        *(head + b"content-length:%d\n\n%b\0" % (len(body), body) for body in bodies),
        b"COMMIT\ntransaction:t\nreceipt:done\n\n\0",
    ]
    with socket.create_connection((host, port), TIMEOUT_S) as connection:
        connection.sendall(b"".join(frames))
        answer = b""
        while b"receipt-id:done" not in answer:
            more = connection.recv(65536)
            answer += more
            if not more or b"ERROR\n" in answer:
                raise OSError(f"STOMP: {answer[-300:]!r}")


PROTOCOLS: Final[dict[str, Publish]] = {"amqp": by_amqp, "mqtt": by_mqtt, "stomp": by_stomp}


def publish(host: str, ports: dict[str, int], key: str, bodies: Sequence[bytes], at_once: int) -> int:
    """Publish all, in batches by each protocol in turn; return how many were published again."""
    again = 0
    names = list(PROTOCOLS)
    for number, begin in enumerate(range(0, len(bodies), at_once)):
        batch, name = bodies[begin : begin + at_once], names[number % len(names)]
        while not _is_published(host, ports[name], key, batch, PROTOCOLS[name]):
            again += len(batch)
            time.sleep(0.2)
    return again


def _is_published(host: str, port: int, key: str, bodies: Sequence[bytes], by: Publish) -> bool:
    with suppress(OSError, AMQPError):
        by(host, port, key, bodies)
        return True
    return False
