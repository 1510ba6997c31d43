"""Killed at any moment under load: every confirmed message is there, once, in order, as it was published."""

import random
import time
from collections.abc import Iterator
from typing import Final

import pytest
from pika.adapters.blocking_connection import BlockingChannel

from tests.broker.conftest import Connect
from tests.durability.expected import Account, Key, body, properties
from tests.durability.load import Client, Consumer, Publisher
from tests.running import Gateway

KILLS: Final = 20

#: ``left`` and ``right`` are bound to one fanout exchange; nobody consumes from ``kept``.
CONSUMED: Final = ("single", "left", "right")
QUEUES: Final = (*CONSUMED, "kept")


class Trial:
    """One broker, its queues, and their accounts through all kills."""

    def __init__(self, gateway: Gateway, connect: Connect) -> None:
        self._gateway = gateway
        self._connect = connect
        self._next_number = dict.fromkeys("abcde", 0)
        self.accounts = {queue: Account() for queue in QUEUES}

    def declare(self) -> None:
        channel = self._connect().channel()
        channel.exchange_declare("both", "fanout", durable=True)
        for queue in (*QUEUES, "marks"):
            channel.queue_declare(queue, durable=True)
        channel.queue_bind("left", "both")
        channel.queue_bind("right", "both")

    def load_for(self, seconds: float) -> None:
        """Publish and consume until the broker is killed, this long after everybody is busy."""
        clients = list(self._clients())
        for client in clients:
            client.start()
        for client in clients:
            assert client.is_busy.wait(10), "a client gets no answer"
        time.sleep(seconds)
        self._gateway.kill()
        for client in clients:
            client.ended()
        for client in clients:
            if isinstance(client, Publisher):
                self._next_number[client.name] = client.next_number

    def audit(self) -> None:
        """Start again and compare what every queue holds with its account."""
        self._gateway.start()
        channel = self._connect().channel()
        left, right = self.accounts["left"], self.accounts["right"]
        settling = {"left": set(left.settling), "right": set(right.settling)}
        for queue, account in self.accounts.items():
            account.audit(contents(channel, queue))
        # One publish to two queues is one step: what is in one and not in the other was acknowledged there.
        for one, other, name in ((left, right, "right"), (right, left, "left")):
            half = one.owed - other.owed - other.gone - settling[name]
            assert not half, f"only half of these was stored: {sorted(half)[:5]}"
        channel.connection.close()

    def _clients(self) -> Iterator[Client]:
        broker = self._gateway.broker
        for name, exchange, key, queues, window in (
            ("a", "", "single", ("single",), 60),
            ("b", "", "single", ("single",), 20),
            ("c", "both", "", ("left", "right"), 60),
            ("d", "both", "", ("left", "right"), 20),
            ("e", "", "kept", ("kept",), 2),
        ):
            accounts = [self.accounts[queue] for queue in queues]
            yield Publisher(broker, name, self._next_number[name], exchange, key, accounts, window)
        for queue in CONSUMED:
            yield Consumer(broker, queue, self.accounts[queue])


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
def test_every_confirmed_message_survives_and_nothing_else_comes_back(gateway: Gateway, connect: Connect) -> None:
    moments = random.Random()
    gateway.start()
    trial = Trial(gateway, connect)
    trial.declare()
    for _ in range(KILLS):
        trial.load_for(moments.uniform(0.0, 0.4))
        trial.audit()
    assert all(len(trial.accounts[queue].gone) > 100 for queue in CONSUMED)
    assert len(trial.accounts["kept"].owed) > 100
