"""A super stream: created by gatewayctl, published to by every protocol, read by partition, and monitored."""

import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel

from tests.interop.amqp_clients.pika_client import parameters, wait_for
from tests.interop.broker import PROJECT
from tests.interop.mqtt_clients.paho_client import Paho
from tests.interop.stomp_clients.stomp_client import Stomp
from tests.interop.stomp_clients.stomp_server import StompServer
from tests.interop.tools import run

#: The partitions, of three, to which RabbitMQ's stream clients send these keys, too.
PARTITION_BY_KEY = {"hello1": 1, "hello2": 0, "hello3": 1, "hello4": 2}

Ctl = Callable[..., str]


@pytest.fixture
def ctl(whole_gateway: StompServer) -> Ctl:
    """Run gatewayctl; return its output."""
    url = f"http://guest:guest@127.0.0.1:{whole_gateway.ports['management']}"

    def call(*arguments: str) -> str:
        ended = run([sys.executable, "-m", "gateway.cli.ctl", "--url", url, *arguments], cwd=PROJECT)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout.decode()

    return call


@pytest.fixture
def channel(whole_gateway: StompServer) -> Iterator[BlockingChannel]:
    """Return a channel to the gateway of the other clients."""
    connection = pika.BlockingConnection(parameters(whole_gateway.amqp))
    channel = connection.channel()
    channel.confirm_delivery()
    yield channel
    connection.close()


@pytest.fixture
def super_stream(ctl: Ctl, name: str) -> Iterator[str]:
    """Create a super stream of three partitions."""
    ctl("add_super_stream", name, "--partitions", "3", "--max-age", "P7D")
    yield name
    ctl("delete_super_stream", name)


def bodies(channel: BlockingChannel, stream: str, count: int) -> list[bytes]:
    """Read and acknowledge the messages of a partition; return their bodies."""
    reader = channel.connection.channel()
    reader.basic_qos(prefetch_count=100)
    arrived: list[Any] = []
    arguments = {"x-stream-offset": "first", "x-stream-consumer": "dashboard"}
    reader.basic_consume(stream, lambda *delivery: arrived.append(delivery), arguments=arguments)
    wait_for(channel.connection, lambda: len(arrived) == count)
    reader.basic_ack(arrived[-1][1].delivery_tag, multiple=True)
    reader.close()
    return [body for *_, body in arrived]


def test_a_key_maps_to_the_same_partition_in_every_protocol(
    ctl: Ctl,
    channel: BlockingChannel,
    super_stream: str,
    stomp: Callable[..., Stomp],
    paho: Callable[..., Paho],
    whole_gateway: StompServer,
) -> None:
    channel.exchange_bind(super_stream, "amq.topic", "#")
    speaker, sensor = stomp("1.2", at=whole_gateway).connect(), paho(at=whole_gateway.mqtt)
    sensor.connect()
    for key in PARTITION_BY_KEY:
        channel.basic_publish(super_stream, key, f"AMQP {key}".encode())
        speaker.send(f"/exchange/{super_stream}/{key}", f"STOMP {key}".encode())
        sensor.publish(key, f"MQTT {key}".encode(), qos=1)
    for number in range(3):
        keys = [key for key, partition in PARTITION_BY_KEY.items() if partition == number]
        expected = [f"{protocol} {key}".encode() for key in keys for protocol in ("AMQP", "STOMP", "MQTT")]
        assert bodies(channel, f"{super_stream}-{number}", len(expected)) == expected

    partition = f"{super_stream}-1"
    (status,) = json.loads(ctl("stream_status", partition, "--formatter", "json"))
    assert (status["first_offset"], status["committed_offset"], status["segments"]) == (0, 5, 1)
    (place,) = json.loads(ctl("list_stream_tracking", partition, "--formatter", "json"))
    assert place == {"type": "offset", "reference": "dashboard", "value": 5, "lag": 0}
    ctl("set_stream_offset", partition, "dashboard", "2")
    assert ctl("list_stream_tracking", partition, "-s") == "offset\tdashboard\t2\t3\n"
    assert "stream" in ctl("list_queues", "name", "type", "messages", "-s")


def test_the_key_of_a_message_selects_its_partition(ctl: Ctl, channel: BlockingChannel, name: str) -> None:
    ctl("add_super_stream", name, "--routing-keys", "amer,emea")
    channel.basic_publish(name, "emea", b"hello")
    assert bodies(channel, f"{name}-emea", 1) == [b"hello"]
    ctl("delete_super_stream", name)
    assert name not in ctl("list_queues", "-s")
