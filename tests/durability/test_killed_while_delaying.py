"""Kills while delayed messages become due: each confirmed one is delivered once, from queues and exchanges."""

import random
import time
from collections import Counter
from typing import Final

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import AMQPError

from tests.broker.conftest import Connect
from tests.running import Gateway

KILLS: Final = 8

#: The maximum delay, so that some messages become due while the broker runs, others while it is down.
LONGEST_MS: Final = 500

#: A delayed exchange with an ordinary queue, and a queue that delays messages.
DESTINATIONS: Final = (("later", "routed"), ("", "delaying"))


class DelayTrial:
    """The published and confirmed messages, through all kills."""

    def __init__(self) -> None:
        self.numbers = 0
        self.confirmed: dict[str, set[str]] = {queue: set() for _, queue in DESTINATIONS}
        self.rng = random.Random()

    def publish_until(self, channel: BlockingChannel, deadline_s: float) -> None:
        """Publish with confirms, one by one, until the deadline or a failure."""
        while time.monotonic() < deadline_s:
            for exchange, queue in DESTINATIONS:
                self.numbers += 1
                name = str(self.numbers)
                delay_ms = self.rng.randrange(1, LONGEST_MS)
                properties = pika.BasicProperties(delivery_mode=2, message_id=name, headers={"x-delay": delay_ms})
                channel.basic_publish(exchange, queue, name.encode(), properties)
                self.confirmed[queue].add(name)


def declare(channel: BlockingChannel) -> None:
    channel.exchange_declare("later", "x-delayed-message", durable=True, arguments={"x-delayed-type": "direct"})
    channel.queue_declare("routed", durable=True)
    channel.queue_bind("routed", "later", "routed")
    channel.queue_declare("delaying", durable=True, arguments={"x-delayed-delivery": True})


def contents(channel: BlockingChannel, queue: str) -> list[str]:
    """Consume all messages of a queue."""
    found: list[str] = []
    while True:
        method, _, body = channel.basic_get(queue, auto_ack=True)
        if method is None:
            return found
        assert body is not None
        found.append(body.decode())


@pytest.mark.timeout(120)
def test_each_delayed_message_is_delivered_once(gateway: Gateway, connect: Connect) -> None:
    trial = DelayTrial()
    for _ in range(KILLS):
        gateway.start()
        channel = connect().channel()
        declare(channel)
        channel.confirm_delivery()
        kill_at = time.monotonic() + trial.rng.uniform(0.1, 0.7)
        try:
            trial.publish_until(channel, kill_at)
        except AMQPError:  # it must not stop before it is killed
            pytest.fail("the broker stopped before it was killed")
        time.sleep(trial.rng.uniform(0.0, 0.3))  # some delays end before the kill
        gateway.kill()
    gateway.start()
    channel = connect().channel()
    time.sleep(LONGEST_MS / 1000 + 0.5)  # a second delivery of a message would come by then
    for _, queue in DESTINATIONS:
        times = Counter(contents(channel, queue))
        assert not [name for name, count in times.items() if count > 1], "some were delivered twice"
        assert set(times) == trial.confirmed[queue]
        assert len(times) > 100
