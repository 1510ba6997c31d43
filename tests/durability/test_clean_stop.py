"""A clean stop: clients are notified, staged changes are committed, and the exit code is 0 within seconds."""

import signal
import socket
import time
from typing import Final

import pika
import pytest
from pika.exceptions import ConnectionClosedByBroker

from tests.broker.conftest import Connect
from tests.interop.amqp_clients.pika_client import fetch, is_empty
from tests.running import Gateway
from tests.waiting import wait_until

PERSISTENT: Final = pika.BasicProperties(delivery_mode=2)
LONGEST_S: Final = 5.0
SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


def stops_in_time(gateway: Gateway, number: signal.Signals = signal.SIGTERM) -> bool:
    """Stop the broker; return whether it exited with 0 in time."""
    began = time.monotonic()
    return gateway.stop(number) == 0 and time.monotonic() - began < LONGEST_S


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_a_signal_stops_the_broker_and_closes_connections(
    number: signal.Signals, gateway: Gateway, connect: Connect
) -> None:
    gateway.start()
    connections = [connect() for _ in range(3)]
    assert stops_in_time(gateway, number)
    for connection in connections:
        with pytest.raises(ConnectionClosedByBroker) as closed:
            connection.process_data_events(time_limit=5)
        assert closed.value.reply_code == 320
        assert closed.value.reply_text == "CONNECTION_FORCED - broker forced connection closure with reason 'shutdown'"


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_messages_published_without_confirms_survive_a_clean_stop(
    number: signal.Signals, gateway: Gateway, connect: Connect
) -> None:
    gateway.start()
    channel = connect().channel()
    channel.queue_declare("q", durable=True)
    bodies = [f"{number}".encode() * (1 + number % 500) for number in range(2000)]
    for body in bodies:
        channel.basic_publish("", "q", body, PERSISTENT)
    watching = connect().channel()
    wait_until(lambda: watching.queue_declare("q", passive=True).method.message_count == len(bodies))
    assert stops_in_time(gateway, number)
    gateway.start()
    assert fetch(connect().channel(), "q", len(bodies)) == bodies


def test_unacknowledged_messages_are_requeued_in_order(gateway: Gateway, connect: Connect) -> None:
    gateway.start()
    channel = connect().channel()
    channel.queue_declare("q", durable=True)
    channel.confirm_delivery()
    for number in range(6):
        channel.basic_publish("", "q", str(number).encode(), PERSISTENT)
    tags = [channel.basic_get("q")[0].delivery_tag for _ in range(4)]
    channel.basic_ack(tags[1])
    channel.basic_publish("", "q", b"6", PERSISTENT)
    assert stops_in_time(gateway)
    gateway.start()
    channel = connect().channel()
    assert fetch(channel, "q", 6) == [b"0", b"2", b"3", b"4", b"5", b"6"]
    assert is_empty(channel, "q")


def test_unresponsive_clients_do_not_delay_the_stop(gateway: Gateway, connect: Connect) -> None:
    gateway.start()
    connect()  # never reads the close method
    with socket.create_connection(gateway.addresses["amqp"]):  # never sends anything
        channel = connect().channel()
        channel.queue_declare("q")
        for _ in range(200):
            channel.basic_publish("", "q", bytes(100_000))
        channel.basic_consume("q", lambda *delivery: None, auto_ack=True)  # these deliveries are never read
        assert stops_in_time(gateway)


def test_a_second_signal_has_no_effect(gateway: Gateway, connect: Connect) -> None:
    gateway.start()
    connect()
    gateway.child.send_signal(signal.SIGINT)
    assert stops_in_time(gateway)


def test_a_broker_with_a_full_disk_can_be_stopped(gateway: Gateway, connect: Connect) -> None:
    gateway.start()
    channel = connect().channel()
    channel.queue_declare("q", durable=True)
    gateway.limit_files(64 * 1024)
    for _ in range(100):
        channel.basic_publish("", "q", bytes(10_000), PERSISTENT)
    gateway.log_has("store.stalled")
    assert gateway.stop() == 69, "the exit code shows that not everything could be written"
    gateway.log_has("closed while the store could not write")
    gateway.start()
    channel = connect().channel()
    channel.confirm_delivery()
    channel.basic_publish("", "q", b"works again", PERSISTENT)
