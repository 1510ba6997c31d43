"""Killed at any moment under load: every confirmed message is there, once, in order, as it was published."""

from collections.abc import Iterator
from typing import Final

import pytest
from pika.adapters.blocking_connection import BlockingChannel

from tests.broker.conftest import Connect
from tests.durability.expected import Key, body, properties
from tests.durability.load import Client, Consumer
from tests.durability.trial import Trial
from tests.running import Gateway

KILLS: Final = 20

#: ``left`` and ``right`` are bound to one fanout exchange; nobody consumes from ``kept``.
CONSUMED: Final = ("single", "left", "right")
QUEUES: Final = (*CONSUMED, "kept")


class Fanned(Trial):
    """Consumed and kept queues, two of which get the same messages."""

    def declare(self) -> None:
        channel = self.connect().channel()
        channel.exchange_declare("both", "fanout", durable=True)
        for queue in (*QUEUES, "marks"):
            channel.queue_declare(queue, durable=True)
        channel.queue_bind("left", "both")
        channel.queue_bind("right", "both")

    def clients(self) -> list[Client]:
        consumers = [Consumer(self.gateway.broker, queue, self.accounts[queue]) for queue in CONSUMED]
        return [
            self.publisher("a", "", "single", ["single"], window=60),
            self.publisher("b", "", "single", ["single"], window=20),
            self.publisher("c", "both", "", ["left", "right"], window=60),
            self.publisher("d", "both", "", ["left", "right"], window=20),
            self.publisher("e", "", "kept", ["kept"], window=2),
            *consumers,
        ]

    def audit(self) -> None:
        channel = self.connect().channel()
        left, right = self.accounts["left"], self.accounts["right"]
        settling = {"left": set(left.settling), "right": set(right.settling)}
        for queue, account in self.accounts.items():
            account.audit(contents(channel, queue))
        # One publish to two queues is one step: what is in one and not in the other was acknowledged there.
        for one, other, name in ((left, right, "right"), (right, left, "left")):
            half = one.owed - other.owed - other.gone - settling[name]
            assert not half, f"only half of these was stored: {sorted(half)[:5]}"
        channel.connection.close()


def contents(channel: BlockingChannel, queue: str) -> Iterator[Key]:
    """Take what a queue holds, checking each message, and leave it there: the channel gives it back when it closes."""
    count = channel.queue_declare(queue, passive=True).method.message_count
    deliveries = channel.consume(queue, inactivity_timeout=5)
    for _, (method, props, content) in zip(range(count), deliveries, strict=False):
        assert method is not None, "the queue holds less than it says"
        key = Key.of(props)
        assert content == body(key), f"{key} has another body"
        assert props == properties(key), f"{key} has other properties"
        yield key
    channel.connection.process_data_events(0)
    assert channel.get_waiting_message_count() == 0, "the queue holds more than it says"
    channel.cancel()


@pytest.mark.timeout(180)
def test_every_confirmed_message_survives_and_acknowledged_ones_stay_removed(
    gateway: Gateway, connect: Connect
) -> None:
    trial = Fanned(gateway, connect, QUEUES)
    trial.survive(KILLS, within_s=0.4)
    assert all(len(trial.accounts[queue].gone) > 100 for queue in CONSUMED)
    assert len(trial.accounts["kept"].owed) > 100
