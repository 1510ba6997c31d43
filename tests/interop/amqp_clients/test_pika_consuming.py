"""pika's BlockingConnection: deliveries, acknowledgements, prefetch and cancellation."""

from collections.abc import Callable
from functools import partial

import pytest
from pika.adapters.blocking_connection import BlockingChannel, BlockingConnection

from tests.interop.amqp_clients.pika_client import fetch, is_empty, publish, wait_for

Connect = Callable[..., BlockingConnection]


def test_consumed_messages_arrive_in_publishing_order(channel: BlockingChannel, queue: str) -> None:
    arrived: list[bytes] = []
    channel.basic_consume(queue, lambda _channel, _method, _properties, body: arrived.append(body), auto_ack=True)
    published = [b"%d" % number for number in range(200)]
    publish(channel, queue, *published)
    wait_for(channel.connection, lambda: len(arrived) == len(published))
    assert arrived == published


def test_get_on_an_empty_queue_returns_nothing(channel: BlockingChannel, queue: str) -> None:
    assert channel.basic_get(queue) == (None, None, None)


def test_an_acknowledged_message_is_not_redelivered(connect: Connect, name: str) -> None:
    first = connect()
    channel = first.channel()
    channel.queue_declare(name)
    publish(channel, name, b"done", b"left")
    method, _, _ = channel.basic_get(name)
    assert method is not None
    channel.basic_ack(method.delivery_tag)
    first.close()
    second = connect().channel()
    assert fetch(second, name, 1) == [b"left"]
    assert is_empty(second, name)
    second.queue_delete(name)


@pytest.mark.parametrize("refuse", ["basic_nack", "basic_reject"])
def test_a_refused_message_is_redelivered(channel: BlockingChannel, queue: str, refuse: str) -> None:
    publish(channel, queue, b"again")
    first, _, _ = channel.basic_get(queue)
    assert first is not None
    assert not first.redelivered
    getattr(channel, refuse)(first.delivery_tag, requeue=True)
    second, _, body = channel.basic_get(queue)
    assert second is not None
    assert (second.redelivered, body) == (True, b"again")


@pytest.mark.parametrize("refuse", ["basic_nack", "basic_reject"])
def test_a_message_refused_without_requeue_is_discarded(channel: BlockingChannel, queue: str, refuse: str) -> None:
    publish(channel, queue, b"unwanted")
    method, _, _ = channel.basic_get(queue)
    assert method is not None
    getattr(channel, refuse)(method.delivery_tag, requeue=False)
    assert is_empty(channel, queue)


def test_one_acknowledgement_can_settle_all_before_it(channel: BlockingChannel, queue: str) -> None:
    publish(channel, queue, b"1", b"2", b"3")
    methods = [channel.basic_get(queue)[0] for _ in range(3)]
    assert methods[1] is not None
    channel.basic_ack(methods[1].delivery_tag, multiple=True)
    channel.basic_recover(requeue=True)
    assert fetch(channel, queue, 1) == [b"3"]
    assert is_empty(channel, queue)


def test_unacknowledged_messages_return_in_order_when_the_channel_closes(
    connect: Connect, channel: BlockingChannel, queue: str
) -> None:
    publish(channel, queue, b"1", b"2", b"3")
    other = channel.connection.channel()
    for _ in range(2):
        other.basic_get(queue)
    other.close()
    assert fetch(channel, queue, 3) == [b"1", b"2", b"3"]


def test_qos_limits_the_unacknowledged_messages_of_a_consumer(channel: BlockingChannel, queue: str) -> None:
    arrived: list[int] = []
    channel.basic_qos(prefetch_count=2)
    channel.basic_consume(queue, lambda _channel, method, _properties, _body: arrived.append(method.delivery_tag))
    publish(channel, queue, b"1", b"2", b"3", b"4")
    wait_for(channel.connection, lambda: len(arrived) == 2)
    assert channel.queue_declare(queue, passive=True).method.message_count == 2
    assert len(arrived) == 2
    channel.basic_ack(arrived[0])
    wait_for(channel.connection, lambda: len(arrived) == 3)


def test_a_cancelled_consumer_receives_nothing_more(channel: BlockingChannel, queue: str) -> None:
    arrived: list[bytes] = []
    tag = channel.basic_consume(queue, lambda *delivery: arrived.append(delivery[-1]), auto_ack=True)
    channel.basic_cancel(tag)
    publish(channel, queue, b"late")
    assert fetch(channel, queue, 1) == [b"late"]
    assert arrived == []


def test_a_consumer_is_notified_when_its_queue_is_deleted(channel: BlockingChannel, queue: str) -> None:
    cancelled: list[str] = []
    channel.add_on_cancel_callback(lambda frame: cancelled.append(frame.method.consumer_tag))
    tag = channel.basic_consume(queue, lambda *_: None)
    channel.connection.channel().queue_delete(queue)
    wait_for(channel.connection, lambda: cancelled == [tag])


def test_two_consumers_share_a_queue_alternately(channel: BlockingChannel, queue: str) -> None:
    arrived: dict[str, list[bytes]] = {"left": [], "right": []}

    def keep(side: str, _channel: object, _method: object, _properties: object, body: bytes) -> None:
        arrived[side].append(body)

    for side in arrived:
        channel.basic_consume(queue, partial(keep, side), auto_ack=True)
    publish(channel, queue, b"1", b"2", b"3", b"4")
    wait_for(channel.connection, lambda: sum(map(len, arrived.values())) == 4)
    assert sorted(arrived.values()) == [[b"1", b"3"], [b"2", b"4"]]
