"""aio-pika on its own asyncio loop: confirms by default, iterators, transactions, RPC over a reply queue."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from decimal import Decimal
from functools import wraps
from typing import Any, Final, ParamSpec

import aio_pika
import pytest
from aio_pika import Message
from aio_pika.abc import AbstractChannel, AbstractConnection, AbstractIncomingMessage, AbstractQueue
from aio_pika.exceptions import (
    ChannelClosed,
    ChannelNotFoundEntity,
    ChannelPreconditionFailed,
    DeliveryError,
    QueueEmpty,
)
from aio_pika.patterns import RPC
from aiormq.exceptions import ChannelAccessRefused, ChannelLockedResource
from pamqp.commands import Basic

from tests.interop.broker import Broker

P = ParamSpec("P")

TIMEOUT_S: Final = 15.0


def on_a_loop(test: Callable[P, Awaitable[None]]) -> Callable[P, None]:
    """Run an async test on its own event loop, with a time limit."""

    async def bounded(*args: P.args, **kwargs: P.kwargs) -> None:
        async with asyncio.timeout(TIMEOUT_S):
            await test(*args, **kwargs)

    @wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        asyncio.run(bounded(*args, **kwargs))

    return run


@asynccontextmanager
async def connected(broker: Broker, **settings: int) -> AsyncIterator[AbstractConnection]:
    query = "&".join(f"{key}={value}" for key, value in settings.items())
    connection = await aio_pika.connect(f"{broker.url}?{query}", timeout=5)
    async with connection:
        yield connection


@asynccontextmanager
async def channel_and_queue(broker: Broker, name: str) -> AsyncIterator[tuple[AbstractChannel, AbstractQueue]]:
    async with connected(broker) as connection:
        channel = await connection.channel(on_return_raises=True)
        yield channel, await channel.declare_queue(name, exclusive=True)


async def publish(channel: AbstractChannel, queue: str, *bodies: bytes) -> None:
    for body in bodies:
        await channel.default_exchange.publish(Message(body), queue)


async def until(happened: Callable[[], bool]) -> None:
    """Wait until the condition is true; ``on_a_loop`` limits the time."""
    while not happened():
        await asyncio.sleep(0.01)


async def waiting_in(channel: AbstractChannel, queue: str) -> int | None:
    """Return the number of ready messages; deliveries that were sent before have arrived."""
    return (await channel.declare_queue(queue, passive=True)).declaration_result.message_count


async def take(queue: AbstractQueue) -> AbstractIncomingMessage:
    message = await queue.get()
    assert message is not None
    return message


@on_a_loop
async def test_a_confirmed_message_is_in_the_queue(broker: Broker, name: str) -> None:
    async with channel_and_queue(broker, name) as (channel, queue):
        await publish(channel, name, b"safe")
        assert (await channel.declare_queue(name, passive=True)).declaration_result.message_count == 1
        assert (await take(queue)).body == b"safe"


@on_a_loop
async def test_concurrent_publishes_are_all_confirmed(broker: Broker, name: str) -> None:
    async with channel_and_queue(broker, name) as (channel, _):
        await asyncio.gather(*(publish(channel, name, b"%d" % number) for number in range(500)))
        assert (await channel.declare_queue(name, passive=True)).declaration_result.message_count == 500


@on_a_loop
async def test_an_unroutable_message_raises_with_its_return(broker: Broker, name: str) -> None:
    async with channel_and_queue(broker, name) as (channel, _):
        with pytest.raises(DeliveryError) as returned:
            await publish(channel, f"{name}-absent", b"nowhere to go")
        message = returned.value.message
        assert message is not None
        assert isinstance(message.delivery, Basic.Return)
        assert (message.delivery.reply_code, message.body) == (312, b"nowhere to go")


@on_a_loop
async def test_an_iterator_yields_messages_in_order(broker: Broker, name: str) -> None:
    bodies = [b"%d" % number for number in range(100)]
    async with channel_and_queue(broker, name) as (channel, queue):
        await publish(channel, name, *bodies)
        arrived = []
        async with queue.iterator() as messages:
            async for message in messages:
                async with message.process():
                    arrived.append(message.body)
                if len(arrived) == len(bodies):
                    break
        assert arrived == bodies


@on_a_loop
async def test_get_on_an_empty_queue_returns_nothing(broker: Broker, name: str) -> None:
    async with channel_and_queue(broker, name) as (_, queue):
        with pytest.raises(QueueEmpty):
            await queue.get()


@pytest.mark.parametrize("refuse", ["nack", "reject"])
@on_a_loop
async def test_a_refused_message_is_redelivered(broker: Broker, name: str, refuse: str) -> None:
    async with channel_and_queue(broker, name) as (channel, queue):
        await publish(channel, name, b"again")
        await getattr(await take(queue), refuse)(requeue=True)
        message = await take(queue)
        assert (message.redelivered, message.body) == (True, b"again")


@on_a_loop
async def test_a_message_whose_handler_fails_is_requeued(broker: Broker, name: str) -> None:
    async with channel_and_queue(broker, name) as (channel, queue):
        await publish(channel, name, b"try again")
        with pytest.raises(RuntimeError):
            async with (await take(queue)).process(requeue=True):
                raise RuntimeError
        assert (await take(queue)).redelivered


@on_a_loop
async def test_an_acknowledged_message_is_not_redelivered(broker: Broker, name: str) -> None:
    async with connected(broker) as first:
        channel = await first.channel()
        queue = await channel.declare_queue(name)
        await publish(channel, name, b"done", b"left")
        await (await take(queue)).ack()
    async with connected(broker) as second:
        channel = await second.channel()
        queue = await channel.get_queue(name)
        assert (await take(queue)).body == b"left"
        await queue.delete(if_empty=False)


@on_a_loop
async def test_qos_limits_unacknowledged_messages(broker: Broker, name: str) -> None:
    arrived: list[AbstractIncomingMessage] = []

    async def keep(message: AbstractIncomingMessage) -> None:
        arrived.append(message)

    async with channel_and_queue(broker, name) as (channel, queue):
        await channel.set_qos(prefetch_count=2)
        await publish(channel, name, b"1", b"2", b"3", b"4", b"5")
        await queue.consume(keep)
        await until(lambda: len(arrived) >= 2)
        assert await waiting_in(channel, name) == 3
        assert [message.body for message in arrived] == [b"1", b"2"]
        await arrived[1].ack(multiple=True)
        await until(lambda: len(arrived) >= 4)
        assert await waiting_in(channel, name) == 1
        assert [message.body for message in arrived] == [b"1", b"2", b"3", b"4"]


@on_a_loop
async def test_a_cancelled_consumer_receives_nothing_more(broker: Broker, name: str) -> None:
    arrived: list[AbstractIncomingMessage] = []

    async def keep(message: AbstractIncomingMessage) -> None:
        arrived.append(message)

    async with channel_and_queue(broker, name) as (channel, queue):
        await queue.cancel(await queue.consume(keep))
        await publish(channel, name, b"late")
        assert (await take(queue)).body == b"late"
        assert arrived == []


@on_a_loop
async def test_an_exclusive_queue_is_locked_for_a_second_connection(broker: Broker, name: str) -> None:
    async with channel_and_queue(broker, name), connected(broker) as second:
        with pytest.raises(ChannelLockedResource, match="RESOURCE_LOCKED"):
            await (await second.channel()).declare_queue(name, exclusive=True)


@on_a_loop
async def test_a_transaction_is_committed_or_rolled_back(broker: Broker, name: str) -> None:
    async with connected(broker) as connection:
        channel = await connection.channel(publisher_confirms=False)
        queue = await channel.declare_queue(name, exclusive=True)
        discarded = channel.transaction()
        await discarded.select()
        await publish(channel, name, b"discarded")
        await discarded.rollback()
        async with channel.transaction():
            await publish(channel, name, b"kept")
        assert (await take(queue)).body == b"kept"
        with pytest.raises(QueueEmpty):
            await queue.get()


@pytest.mark.parametrize(
    ("queue", "settings", "refusal"),
    [
        ("interop-absent", {"passive": True}, ChannelNotFoundEntity),
        ("amq.reserved", {}, ChannelAccessRefused),
        ("interop-argument", {"exclusive": True, "arguments": {"x-message-ttl": -1}}, ChannelPreconditionFailed),
    ],
)
@on_a_loop
async def test_a_refused_declaration_raises_the_exception_of_its_code(
    broker: Broker, queue: str, settings: dict[str, Any], refusal: type[ChannelClosed]
) -> None:
    async with connected(broker) as connection:
        with pytest.raises(refusal):
            await (await connection.channel()).declare_queue(queue, **settings)
        assert not (await connection.channel()).is_closed


@on_a_loop
async def test_headers_of_every_type_survive(broker: Broker, name: str) -> None:
    # Each integer is written as the narrowest type that holds it.
    headers: dict[str, Any] = {
        "text": "größer",
        "bytes": bytearray(b"\x00\xff"),
        "true": True,
        "integers": [1, -1, 200, -200, 40_000, -40_000, 70_000, 2**31, -(2**31), 2**40, -(2**62)],
        "double": 2.5,
        "decimal": Decimal("12.345"),
        "timestamp": datetime(2024, 2, 29, 12, 30, tzinfo=UTC),
        "nothing": None,
        "table": {"nested": {"deeper": [True, [1.5, None]]}},
    }
    async with channel_and_queue(broker, name) as (channel, queue):
        await channel.default_exchange.publish(Message(b"", headers=headers), name)
        assert (await take(queue)).headers == headers


@pytest.mark.parametrize("size", [0, 1024 * 1024 + 1])
@on_a_loop
async def test_a_body_of_any_size_is_delivered_unchanged(broker: Broker, name: str, size: int) -> None:
    body = b"\xce" * size
    async with channel_and_queue(broker, name) as (channel, queue):
        await publish(channel, name, body)
        assert (await take(queue)).body == body


@on_a_loop
async def test_an_exchange_can_be_bound_to_an_exchange(broker: Broker, name: str) -> None:
    async with channel_and_queue(broker, name) as (channel, queue):
        source = await channel.declare_exchange(f"{name}-source", "topic", auto_delete=True)
        target = await channel.declare_exchange(f"{name}-target", "fanout", auto_delete=True)
        await queue.bind(target)
        await target.bind(source, "a.*")
        await source.publish(Message(b"through both"), "a.b")
        assert (await take(queue)).body == b"through both"


@on_a_loop
async def test_channels_of_one_connection_are_independent(broker: Broker, name: str) -> None:
    async def publish_on_its_own_channel(connection: AbstractConnection) -> None:
        async with connection.channel() as channel:
            await publish(channel, name, *[b"x" * 1000] * 20)

    async with connected(broker) as connection:
        observer = await connection.channel()
        await observer.declare_queue(name, exclusive=True)
        await asyncio.gather(*(publish_on_its_own_channel(connection) for _ in range(20)))
        assert (await observer.declare_queue(name, passive=True)).declaration_result.message_count == 400


@on_a_loop
async def test_an_idle_connection_outlives_its_heartbeat(broker: Broker, name: str) -> None:
    async with connected(broker, heartbeat=1) as connection:
        await asyncio.sleep(3.5)  # longer than the broker waits for heartbeats
        channel = await connection.channel()
        await channel.declare_queue(name, exclusive=True)


@on_a_loop
async def test_a_remote_procedure_call(broker: Broker, name: str) -> None:
    async def multiply(*, x: int, y: int) -> int:
        return x * y

    async with connected(broker) as serving, connected(broker) as calling:
        server = await RPC.create(await serving.channel())
        await server.register(name, multiply, auto_delete=True)
        client = await RPC.create(await calling.channel())
        assert await client.call(name, kwargs={"x": 6, "y": 7}) == 42
        await client.close()
        await server.close()
