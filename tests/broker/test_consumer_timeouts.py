"""A consumer that does not acknowledge, in a broker with a real clock."""

import pytest
from pika.exceptions import ChannelClosedByBroker

from tests.broker.conftest import Connect
from tests.running import Gateway


def test_a_consumer_timeout_closes_the_channel_and_requeues_the_message(gateway: Gateway, connect: Connect) -> None:
    gateway.start("queues.consumer_timeout_ms=1000")
    connection = connect()
    channel = connection.channel()
    channel.queue_declare("q")
    channel.basic_publish("", "q", b"m")
    channel.basic_consume("q", lambda *delivery: None)
    with pytest.raises(ChannelClosedByBroker) as closed:
        channel.start_consuming()
    assert (closed.value.reply_code, closed.value.reply_text) == (
        406,
        "PRECONDITION_FAILED - delivery acknowledgement on channel 1 timed out. Timeout value used: 1000 ms. "
        "This timeout value can be configured, see consumers doc guide to learn more",
    )
    method, _, body = connection.channel().basic_get("q", auto_ack=True)
    assert (body, method.redelivered) == (b"m", True)


def test_deprecated_arguments_cause_one_warning_for_each_queue(gateway: Gateway, connect: Connect) -> None:
    gateway.start()
    channel = connect().channel()
    for _ in range(2):
        channel.queue_declare("lazy", durable=True, arguments={"x-queue-mode": "lazy"})
    gateway.stop()
    assert gateway.log.count("x-queue-mode") == 1
    assert "deprecated" in gateway.log
