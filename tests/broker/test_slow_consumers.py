"""A consumer that stops reading for a while is skipped, and continues where it stopped."""

import socket
from typing import Final

import pika

from tests.broker.conftest import Connect
from tests.broker.raw import CONSUMING, LOGIN, consume, delivery_size, read_until
from tests.running import Gateway
from tests.waiting import wait_until_stable

MESSAGES: Final = 400
BODY: Final = bytes(50_000)


def test_a_consumer_that_pauses_receives_everything(gateway: Gateway, connect: Connect) -> None:
    gateway.start()
    channel = connect().channel()
    channel.queue_declare("q")
    for _ in range(MESSAGES):
        channel.basic_publish("", "q", BODY, pika.BasicProperties(delivery_mode=1))
    channel.queue_declare("q", passive=True)
    with socket.create_connection(gateway.addresses["amqp"], timeout=10) as peer:
        peer.sendall(LOGIN + consume("q"))
        received = read_until(peer, CONSUMING)
        unsent = wait_until_stable(lambda: channel.queue_declare("q", passive=True).method.message_count, for_s=0.3)
        assert unsent > MESSAGES // 4, "everything is already sent"
        rest = MESSAGES * delivery_size("q", BODY) - len(received.split(CONSUMING, 1)[1]) + len(b"\x01c\xce")
        while rest > 0:
            data = peer.recv(1 << 16)
            assert data, "the broker closed the connection"
            rest -= len(data)
    assert channel.queue_declare("q", passive=True).method.message_count == 0
