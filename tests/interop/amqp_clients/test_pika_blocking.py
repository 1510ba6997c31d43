"""pika's BlockingConnection: queues, channels and connections."""

from collections.abc import Callable

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel, BlockingConnection
from pika.exceptions import (
    ChannelClosedByBroker,
    ProbableAccessDeniedError,
    ProbableAuthenticationError,
)

from tests.interop.amqp_clients.pika_client import fetch, publish

Connect = Callable[..., BlockingConnection]


def test_a_declared_queue_reports_its_messages_and_consumers(channel: BlockingChannel, queue: str) -> None:
    channel.confirm_delivery()
    publish(channel, queue, b"one", b"two")
    assert channel.queue_declare(queue, passive=True).method.message_count == 2
    channel.basic_qos(prefetch_count=1)
    channel.basic_consume(queue, lambda *_: None)
    assert channel.queue_declare(queue, passive=True).method.consumer_count == 1


def test_a_queue_declared_without_a_name_gets_one(channel: BlockingChannel) -> None:
    assert channel.queue_declare("", exclusive=True).method.queue.startswith("amq.gen-")


def test_purge_and_delete_return_the_number_of_messages(channel: BlockingChannel, queue: str) -> None:
    channel.confirm_delivery()
    publish(channel, queue, b"one", b"two")
    assert channel.queue_purge(queue).method.message_count == 2
    publish(channel, queue, b"three")
    assert channel.queue_delete(queue).method.message_count == 1


def test_a_durable_queue_can_be_declared_again_and_deleted(connect: Connect, name: str) -> None:
    for connection in (connect(), connect()):
        assert connection.channel().queue_declare(name, durable=True).method.queue == name
    channel = connect().channel()
    channel.queue_delete(name)
    with pytest.raises(ChannelClosedByBroker) as closed:
        channel.queue_declare(name, passive=True)
    assert closed.value.reply_code == 404


def test_an_exclusive_queue_is_locked_for_other_connections(connect: Connect, queue: str) -> None:
    with pytest.raises(ChannelClosedByBroker) as closed:
        connect().channel().queue_declare(queue, exclusive=True)
    assert closed.value.reply_code == 405


def test_an_exclusive_queue_is_deleted_with_its_connection(
    connect: Connect, channel: BlockingChannel, queue: str
) -> None:
    channel.connection.close()
    with pytest.raises(ChannelClosedByBroker) as closed:
        connect().channel().queue_declare(queue, passive=True)
    assert closed.value.reply_code == 404


def test_an_auto_delete_queue_is_deleted_with_its_last_consumer(channel: BlockingChannel, name: str) -> None:
    channel.queue_declare(name, auto_delete=True)
    channel.basic_cancel(channel.basic_consume(name, lambda *_: None))
    with pytest.raises(ChannelClosedByBroker) as closed:
        channel.queue_declare(name, passive=True)
    assert closed.value.reply_code == 404


def test_an_error_on_one_channel_leaves_the_others_open(channel: BlockingChannel, queue: str) -> None:
    doomed = channel.connection.channel()
    with pytest.raises(ChannelClosedByBroker):
        doomed.queue_declare(f"{queue}-absent", passive=True)
    publish(channel, queue, b"unharmed")
    assert fetch(channel, queue, 1) == [b"unharmed"]


def test_many_channels_share_a_connection(connect: Connect, name: str) -> None:
    connection = connect()
    channels = [connection.channel() for _ in range(50)]
    channels[0].queue_declare(name, exclusive=True)
    for number, channel in enumerate(channels):
        channel.confirm_delivery()
        publish(channel, name, b"%d" % number)
    assert fetch(channels[0], name, 50) == [b"%d" % number for number in range(50)]


def test_a_closed_channel_number_can_be_opened_again(connect: Connect) -> None:
    connection = connect()
    for _ in range(3):
        channel = connection.channel(7)
        assert channel.queue_declare("", exclusive=True).method.message_count == 0
        channel.close()


def test_a_served_connection_outlives_its_heartbeat(connect: Connect, name: str) -> None:
    connection = connect(heartbeat=1)
    connection.sleep(3.5)  # longer than the broker waits for heartbeats
    connection.channel().queue_declare(name, exclusive=True)
    assert connection.is_open


def test_an_updated_secret_is_accepted(connect: Connect) -> None:
    connection = connect()
    connection.update_secret("guest", "rotated")
    assert connection.is_open


def test_a_wrong_password_is_refused(connect: Connect) -> None:
    with pytest.raises(ProbableAuthenticationError) as refused:
        connect(credentials=pika.PlainCredentials("guest", "wrong"))
    assert "(403)" in str(refused.value)
    assert "ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN" in str(refused.value)


def test_an_unknown_virtual_host_is_refused(connect: Connect, name: str) -> None:
    with pytest.raises(ProbableAccessDeniedError) as refused:
        connect(virtual_host=name)
    assert "(530)" in str(refused.value)
    assert f"NOT_ALLOWED - vhost {name} not found" in str(refused.value)
