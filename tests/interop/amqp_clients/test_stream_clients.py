"""Streams with pika, aio-pika and stomp.py: start offsets, repeated reads, filters, and offsets stored over a crash."""

import asyncio
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aio_pika
import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel, BlockingConnection
from pika.exceptions import ChannelClosedByBroker, ConnectionClosedByBroker

from tests.interop.amqp_clients.pika_client import parameters, wait_for
from tests.interop.broker import Broker
from tests.interop.gateways import gateway_in
from tests.interop.stomp_clients.stomp_client import Stomp
from tests.interop.stomp_clients.stomp_server import StompServer

STREAM = {"x-queue-type": "stream"}
Connect = Callable[..., BlockingConnection]

#: The time without a message after which none is expected.
SILENCE_S = 0.5


@pytest.fixture
def stream(channel: BlockingChannel, name: str) -> Iterator[str]:
    """Declare a stream with ten confirmed messages."""
    channel.queue_declare(name, durable=True, arguments=STREAM)
    publish(channel, name, *(b"%d" % number for number in range(10)))
    yield name
    channel.connection.channel().queue_delete(name)


def publish(channel: BlockingChannel, stream: str, *bodies: bytes, **headers: object) -> None:
    """Publish and wait for the confirms."""
    other = channel.connection.channel()
    other.confirm_delivery()
    for body in bodies:
        other.basic_publish("", stream, body, pika.BasicProperties(headers=dict(headers) or None))
    other.close()


def read(connection: BlockingConnection, stream: str, count: int, prefetch: int = 100, **arguments: Any) -> list[Any]:
    """Return ``count`` messages as (offset, body), each acknowledged; no more may arrive for a while."""
    channel = connection.channel()
    channel.basic_qos(prefetch_count=prefetch)
    arrived: list[Any] = []

    def take(_: object, method: Any, properties: Any, body: bytes) -> None:
        arrived.append((properties.headers["x-stream-offset"], body))
        channel.basic_ack(method.delivery_tag)

    named = {f"x-stream-{name.replace('_', '-')}": value for name, value in arguments.items()}
    channel.basic_consume(stream, take, arguments=named)
    wait_for(connection, lambda: len(arrived) >= count)
    if not count:
        connection.process_data_events(SILENCE_S)
    channel.close()
    assert len(arrived) == count
    return arrived


def numbered(*numbers: int) -> list[Any]:
    return [(number, b"%d" % number) for number in numbers]


STARTS = {
    "first": ("first", range(10)),
    "last": ("last", range(9, 10)),
    "next": ("next", range(0)),
    "an offset": (7, range(7, 10)),
    "beyond the end": (1000, range(0)),
    "an hour ago": (datetime.now(UTC) - timedelta(hours=1), range(10)),
    "in an hour": (datetime.now(UTC) + timedelta(hours=1), range(0)),
    "an interval": ("1h", range(10)),
}


@pytest.mark.parametrize(("start", "seen"), STARTS.values(), ids=STARTS)
def test_a_consumer_starts_at_its_offset(channel: BlockingChannel, stream: str, start: Any, seen: range) -> None:
    assert read(channel.connection, stream, len(seen), offset=start) == numbered(*seen)


def test_a_stream_can_be_read_repeatedly(connect: Connect, stream: str) -> None:
    assert [read(connect(), stream, 10, offset="first") for _ in range(3)] == [numbered(*range(10))] * 3


def test_a_prefetch_of_one_reads_the_whole_stream(channel: BlockingChannel, stream: str) -> None:
    assert read(channel.connection, stream, 10, prefetch=1, offset="first") == numbered(*range(10))


def test_a_long_stream_is_read_completely_and_in_order(channel: BlockingChannel, stream: str) -> None:
    publish(channel, stream, *(b"%d" % number for number in range(10, 1000)))
    assert read(channel.connection, stream, 1000, prefetch=200, offset="first") == numbered(*range(1000))


def test_later_messages_are_delivered(channel: BlockingChannel, stream: str) -> None:
    reader = channel.connection.channel()
    reader.basic_qos(prefetch_count=100)
    arrived: list[bytes] = []
    reader.basic_consume(stream, lambda *delivery: arrived.append(delivery[3]), arguments={"x-stream-offset": "last"})
    wait_for(channel.connection, lambda: arrived == [b"9"])
    publish(channel, stream, b"10")
    wait_for(channel.connection, lambda: arrived == [b"9", b"10"])


def test_headers_are_kept_and_the_offset_is_a_long(channel: BlockingChannel, stream: str) -> None:
    publish(channel, stream, b"10", a="b")
    reader = channel.connection.channel()
    reader.basic_qos(prefetch_count=1)
    found: list[Any] = []
    reader.basic_consume(
        stream, lambda *delivery: found.append(delivery[2].headers), arguments={"x-stream-offset": "last"}
    )
    wait_for(channel.connection, lambda: found)
    assert found == [{"a": "b", "x-stream-offset": 10}]
    assert repr(found[0]["x-stream-offset"]) == "10L"  # pika's representation of 64 bits


REFUSED: dict[str, tuple[Callable[[BlockingChannel, str], Any], int, str]] = {
    "get": (lambda channel, name: channel.basic_get(name), 540, "basic.get not supported by stream queues queue '{}'"),
    "purge": (lambda channel, name: channel.queue_purge(name), 540, "queue.purge not supported by stream queues"),
    "no prefetch": (
        lambda channel, name: channel.basic_consume(name, print),
        406,
        "consumer prefetch count is not set for 'queue '{}' in vhost '/''",
    ),
    "no acknowledgements": (
        lambda channel, name: (channel.basic_qos(0, 5), channel.basic_consume(name, print, auto_ack=True)),
        540,
        "automatic acknowledgement not supported by stream queues queue '{}' in vhost '/'",
    ),
    "a classic queue": (
        lambda channel, name: channel.queue_declare(name, durable=True),
        406,
        "inequivalent arg 'x-queue-type' for queue '{}' in vhost '/': received none but current is the value 'stream' "
        "of type 'longstr'",
    ),
}


@pytest.mark.parametrize(("request_", "code", "text"), REFUSED.values(), ids=REFUSED)
def test_operations_that_streams_do_not_support_are_refused(
    connect: Connect, stream: str, request_: Callable[[BlockingChannel, str], Any], code: int, text: str
) -> None:
    with pytest.raises((ChannelClosedByBroker, ConnectionClosedByBroker)) as refusal:
        request_(connect().channel(), stream)
    assert refusal.value.reply_code == code
    assert text.format(stream) in refusal.value.reply_text


def test_aio_pika_reads_a_stream(broker: Broker, stream: str) -> None:
    async def numbers() -> list[int]:
        connection = await aio_pika.connect(broker.url, timeout=5)
        async with connection, asyncio.timeout(15):
            channel = await connection.channel()
            await channel.set_qos(prefetch_count=3)
            queue = await channel.declare_queue(stream, durable=True, arguments=dict(STREAM))
            found: list[int] = []
            async with queue.iterator(arguments={"x-stream-offset": 4}) as messages:
                async for message in messages:
                    async with message.process():
                        found.append(int(message.body))
                        assert message.headers["x-stream-offset"] == found[-1]
                    if len(found) == 6:
                        return found
        return []

    assert asyncio.run(numbers()) == [4, 5, 6, 7, 8, 9]


# stomp.py, and features of the gateway only


@pytest.fixture
def amqp_connection(whole_gateway: StompServer) -> Iterator[BlockingConnection]:
    """Return an AMQP connection to the gateway of stomp.py."""
    connection = pika.BlockingConnection(parameters(whole_gateway.amqp))
    yield connection
    connection.close()


@pytest.fixture
def regions(amqp_connection: BlockingConnection, name: str) -> Iterator[str]:
    """Declare a stream in which every message except the last has a region as filter value."""
    channel = amqp_connection.channel()
    channel.queue_declare(name, durable=True, arguments=STREAM)
    for number in range(6):
        publish(channel, name, b"%d" % number, **{"x-stream-filter-value": ("eu", "us")[number % 2]})
    publish(channel, name, b"6")
    yield name
    channel.queue_delete(name)


@pytest.mark.parametrize(
    ("asked", "seen"),
    [
        ({"filter": "eu"}, [0, 2, 4]),
        ({"filter": ["eu", "us"]}, [0, 1, 2, 3, 4, 5]),
        ({"filter": "us", "match_unfiltered": True}, [1, 3, 5, 6]),
        ({"filter": "asia"}, []),
    ],
)
def test_a_filter_delivers_matching_messages(
    amqp_connection: BlockingConnection, regions: str, asked: dict[str, Any], seen: list[int]
) -> None:
    assert read(amqp_connection, regions, len(seen), offset="first", **asked) == numbered(*seen)


@pytest.mark.parametrize(
    ("start", "first"), [("first", 0), ("last", 6), ("offset=4", 4), ("timestamp=1", 0), ("1h", 0)]
)
@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2"])
def test_stomp_py_reads_a_stream(
    stomp: Callable[..., Stomp], whole_gateway: StompServer, regions: str, version: str, start: str, first: int
) -> None:
    client = stomp(version, at=whole_gateway).connect()
    client.subscribe(f"/amq/queue/{regions}", ack="client-individual", prefetch_count="2", x_stream_offset=start)
    for number in range(first, 7):
        message = client.next()
        assert (int(message.body), message.headers["x-stream-offset"]) == (number, str(number))
        client.ack(message)


def test_stomp_py_declares_and_reads_a_stream(
    stomp: Callable[..., Stomp], whole_gateway: StompServer, name: str, amqp_connection: BlockingConnection
) -> None:
    client = stomp("1.2", at=whole_gateway).connect()
    for number in range(3):
        client.send(f"/queue/{name}", str(number), x_queue_type="stream", x_max_age="7D")
    client.subscribe(
        f"/queue/{name}",
        ack="client",
        prefetch_count="9",
        x_queue_type="stream",
        x_max_age="7D",
        x_stream_offset="first",
    )
    assert client.bodies(3) == [b"0", b"1", b"2"]
    amqp_connection.channel().queue_delete(name)


def deliveries(channel: BlockingChannel, stream: str, count: int, **arguments: Any) -> list[tuple[int, bytes]]:
    """Return the tags and bodies of ``count`` messages for the consumer ``me``, unacknowledged."""
    channel.basic_qos(prefetch_count=count)
    arrived: list[tuple[int, bytes]] = []
    channel.basic_consume(
        stream,
        lambda _, method, __, body: arrived.append((method.delivery_tag, body)),
        consumer_tag="c",
        arguments={"x-stream-consumer": "me", **arguments},
    )
    wait_for(channel.connection, lambda: len(arrived) == count)
    return arrived


@pytest.mark.parametrize("vanishing", ["the client", "the broker"])
def test_a_named_consumer_continues_after_its_last_acknowledged_message(
    tmp_path: Path, name: str, vanishing: str
) -> None:
    with gateway_in(tmp_path) as gateway:
        first = pika.BlockingConnection(parameters(gateway.broker))
        channel = first.channel()
        channel.queue_declare(name, durable=True, arguments=STREAM)
        publish(channel, name, *(b"%d" % number for number in range(100)))
        sent = deliveries(channel, name, 50, **{"x-stream-offset": "first"})
        channel.basic_ack(sent[29][0], multiple=True)
        if vanishing == "the client":
            channel.queue_declare(name, passive=True)  # the answer shows that the ack was read
            first.close()
        else:
            channel.basic_cancel("c")  # its offset is stored ...
            channel.queue_declare(f"{name}-fence", durable=True)  # ... and the answer shows that it is durable
            gateway.restart()
        second = pika.BlockingConnection(parameters(gateway.broker))
        again = deliveries(second.channel(), name, 70)
        assert [body for _, body in again] == [b"%d" % number for number in range(30, 100)]
        second.close()
