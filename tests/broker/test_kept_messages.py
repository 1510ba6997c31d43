"""Messages that exchanges keep are there after the broker was killed or stopped."""

import pika
import pytest

from tests.broker.conftest import Connect
from tests.interop.amqp_clients.pika_client import fetch
from tests.running import Gateway

PERSISTENT = pika.BasicProperties(delivery_mode=2)
END = {"killed": Gateway.kill, "stopped": Gateway.stop}


@pytest.mark.parametrize("end", END.values(), ids=END)
def test_confirmed_messages_are_handed_over_after_a_restart(gateway: Gateway, connect: Connect, end: object) -> None:
    gateway.start()
    channel = connect().channel()
    channel.confirm_delivery()
    channel.exchange_declare("room", "x-recent-history", durable=True, arguments={"x-recent-history-length": 2})
    channel.exchange_declare("prices", "x-lvc", durable=True)
    for body in (b"1", b"2", b"3"):
        channel.basic_publish("room", "", body, PERSISTENT)
        channel.basic_publish("prices", "EUR", body, PERSISTENT)
    end(gateway)  # type: ignore[operator]  # a method of the table
    gateway.start()
    channel = connect().channel()
    for exchange, key, expected in (("room", "", [b"2", b"3"]), ("prices", "EUR", [b"3"])):
        queue = channel.queue_declare("", exclusive=True).method.queue
        channel.queue_bind(queue, exchange, key)
        assert fetch(channel, queue, len(expected)) == expected
