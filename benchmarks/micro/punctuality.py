"""The punctuality of delayed messages while very many others wait, with a whole broker and one client.

    python -m benchmarks.micro.punctuality [waiting messages]

This many persistent messages are delayed by an hour. Then one hundred messages with short delays are published, due
at different times; the last line shows how late they reached their consumer. The broker is then killed and
restarted, to measure its recovery, and the short delays are measured again.
"""

import os
import struct
import sys
import tempfile
import time
from pathlib import Path
from signal import SIGKILL
from typing import Final
from uuid import uuid4

import pika
from pika.adapters.blocking_connection import BlockingChannel

from benchmarks.load.amqp.client import connected
from benchmarks.load.gateway import launch
from benchmarks.load.processes import resident_bytes
from benchmarks.load.workloads import AMQP
from gateway.kernel.messages.message import Properties
from gateway_amqp.properties import encode_properties

HOST: Final = "127.0.0.1"
QUEUE: Final = "delaying"
BODY: Final = b"x" * 100
CHUNK: Final = 500
PROBES: Final = 100
LATEST_MS: Final = 100


def frame(kind: int, payload: bytes) -> bytes:
    """Return a frame of channel 1."""
    return struct.pack(">BHI", kind, 1, len(payload)) + payload + b"\xce"


def publish(delay_ms: int) -> bytes:
    """Return the frames of one persistent message to the queue."""
    method = struct.pack(">HHH", 60, 40, 0) + b"\x00" + bytes([len(QUEUE)]) + QUEUE.encode() + b"\x00"
    properties = encode_properties(Properties(delivery_mode=2, headers={"x-delay": delay_ms}))
    header = struct.pack(">HHQ", 60, 0, len(BODY)) + properties
    return frame(1, method) + frame(2, header) + frame(3, BODY)


def fill(port: int, messages: int) -> float:
    """Publish messages delayed by an hour; return how many per second were confirmed."""
    chunk = publish(3_600_000) * CHUNK
    start = time.perf_counter()
    with connected(port) as client:
        client.confirm_select()
        for _ in range(messages // CHUNK):
            client.socket.sendall(chunk)
        while client.read_confirm() < messages // CHUNK * CHUNK:
            pass
    return messages / (time.perf_counter() - start)


def lateness_ms(channel: BlockingChannel) -> list[float]:
    """Publish messages with delays from 10 to 1000 ms; return how late each arrived, in order."""
    due: dict[bytes, float] = {}
    name = uuid4().hex  # an acknowledgement lost in the kill may cause a redelivery from an earlier round
    for number in range(PROBES):
        delay_ms = 10 + number * 10
        body = f"{name} {number}".encode()
        due[body] = time.time() + delay_ms / 1000
        properties = pika.BasicProperties(delivery_mode=2, headers={"x-delay": delay_ms})
        channel.basic_publish("", QUEUE, body, properties)
    late: list[float] = []
    for method, _, found in channel.consume(QUEUE, inactivity_timeout=30):
        assert method is not None, f"{PROBES - len(late)} messages did not come"
        channel.basic_ack(method.delivery_tag)
        if found in due:
            late.append((time.time() - due[found]) * 1000)
        if len(late) == PROBES:
            break
    channel.cancel()
    return sorted(late)


def measure(port: int) -> bool:
    """Print how late messages arrive; return whether all were punctual."""
    connection = pika.BlockingConnection(pika.ConnectionParameters(HOST, port))
    late = lateness_ms(connection.channel())
    connection.close()
    print(f"  late by {late[0]:.1f} ms at best, {late[PROBES // 2]:.1f} in the middle, {late[-1]:.1f} at worst")
    return late[-1] <= LATEST_MS


def declare(port: int) -> None:
    """Declare the queue of delayed messages."""
    connection = pika.BlockingConnection(pika.ConnectionParameters(HOST, port))
    connection.channel().queue_declare(QUEUE, durable=True, arguments={"x-delayed-delivery": True})
    connection.close()


def main(messages: int) -> int:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        with launch(directory) as broker:
            port = broker.ports[AMQP]
            declare(port)
            empty = resident_bytes(broker.pid)
            print("no other messages wait")
            is_punctual = measure(port)
            rate = fill(port, messages)
            memory = resident_bytes(broker.pid) - empty
            print(f"{messages} wait: published at {rate:.0f} a second, {memory / messages:.0f} bytes of memory each")
            is_punctual = measure(port) and is_punctual
            os.kill(broker.pid, SIGKILL)
        start = time.perf_counter()
        with launch(directory) as broker:
            print(f"killed and started again in {time.perf_counter() - start:.1f} s")
            is_punctual = measure(broker.ports[AMQP]) and is_punctual
    return 0 if is_punctual else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000))
