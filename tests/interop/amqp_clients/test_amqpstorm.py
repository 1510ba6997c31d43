"""AMQPStorm, whose largest body frames are 8 bytes too long, because it counts only the payload of a frame."""

from collections.abc import Iterator

import amqpstorm
import pytest

from tests.interop.broker import Broker


@pytest.fixture(scope="module")
def channel(broker: Broker) -> Iterator[amqpstorm.Channel]:
    with (
        amqpstorm.Connection(
            broker.host, broker.user, broker.password, port=broker.port, virtual_host=broker.vhost, timeout=10
        ) as connection,
        connection.channel() as opened,
    ):
        yield opened


@pytest.mark.parametrize("size", [131_063, 131_064, 131_065, 131_072, 131_073, 1_000_000])
def test_a_body_of_about_the_largest_frame_is_delivered_unchanged(
    channel: amqpstorm.Channel, name: str, size: int
) -> None:
    channel.queue.declare(name, exclusive=True)
    channel.confirm_deliveries()
    body = bytes(range(256)) * (size // 256 + 1)
    assert channel.basic.publish(body[:size], name, mandatory=True)
    message = channel.basic.get(name, auto_decode=False)
    assert message is not None
    assert message.body == body[:size]
    message.ack()
