"""Kills under load: every confirmed message is in its queue, once, in order and unchanged."""

from collections.abc import Iterator
from typing import Final

import pytest
from pika.adapters.blocking_connection import BlockingChannel

from tests.broker.conftest import Connect
from tests.durability.crash_trial import CrashTrial
from tests.durability.expected import Key, body, properties
from tests.durability.load import Client, Consumer
from tests.running import Gateway

KILLS: Final = 20

#: ``left`` and ``right`` are bound to one fanout exchange; ``kept`` has no consumer.
CONSUMED: Final = ("single", "left", "right")
QUEUES: Final = (*CONSUMED, "kept")


class FanoutTrial(CrashTrial):
    """Consumed and kept queues, two of which get the same messages."""

    def declare(self) -> None:
        channel = self.connect().channel()
        channel.exchange_declare("both", "fanout", durable=True)
        for queue in (*QUEUES, "marks"):
            channel.queue_declare(queue, durable=True)
        channel.queue_bind("left", "both")
        channel.queue_bind("right", "both")

    def clients(self) -> list[Client]:
        consumers = [Consumer(self.gateway.broker, queue, self.expectations[queue]) for queue in CONSUMED]
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
        left, right = self.expectations["left"], self.expectations["right"]
        settling = {"left": set(left.settling), "right": set(right.settling)}
        for queue, expected in self.expectations.items():
            expected.audit(contents(channel, queue))
        # One publish to two queues is one step: a message in one queue only was acknowledged in the other.
        for one, other, name in ((left, right, "right"), (right, left, "left")):
            half = one.required - other.required - other.removed - settling[name]
            assert not half, f"only half of these was stored: {sorted(half)[:5]}"
        channel.connection.close()


def contents(channel: BlockingChannel, queue: str) -> Iterator[Key]:
    """Read and check the messages of a queue; closing the channel requeues them."""
    count = channel.queue_declare(queue, passive=True).method.message_count
    deliveries = channel.consume(queue, inactivity_timeout=5)
    for _, (method, props, content) in zip(range(count), deliveries, strict=False):
        assert method is not None, "the queue contains fewer messages than it reports"
        key = Key.of(props)
        assert content == body(key), f"{key} has another body"
        assert props == properties(key), f"{key} has other properties"
        yield key
    channel.connection.process_data_events(0)
    assert channel.get_waiting_message_count() == 0, "the queue contains more messages than it reports"
    channel.cancel()


@pytest.mark.timeout(180)
def test_every_confirmed_message_survives_and_acknowledged_ones_stay_removed(
    gateway: Gateway, connect: Connect
) -> None:
    trial = FanoutTrial(gateway, connect, QUEUES)
    trial.survive(KILLS, within_s=0.4)
    assert all(len(trial.expectations[queue].removed) > 100 for queue in CONSUMED)
    assert len(trial.expectations["kept"].required) > 100
