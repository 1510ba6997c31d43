"""Killed while messages die: each is in its queue or among the dead letters, never in both, and none is lost.

Three queues, each with a grave of its own: ``short`` lets messages expire, ``small`` drops its head, ``refused`` has a
consumer who rejects everything.
"""

import random
import time
from collections.abc import Iterator
from typing import Any, Final

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from pika.channel import Channel
from pika.spec import Basic

from tests.broker.conftest import Connect
from tests.durability.expected import Account, Key, body, properties
from tests.durability.load import Client, Publisher
from tests.running import Gateway

KILLS: Final = 8

#: Queue to what lets its messages die, and the reason that is on record then.
QUEUES: Final[dict[str, tuple[dict[str, Any], str]]] = {  # Any: pika's argument tables
    "short": ({"x-message-ttl": 20}, "expired"),
    "small": ({"x-max-length": 20}, "maxlen"),
    "refused": ({}, "rejected"),
}


def grave(queue: str) -> str:
    return f"dead-{queue}"


class Rejecter(Client):
    """Rejects whatever comes, a few at a time."""

    def opened(self, channel: Channel) -> None:
        channel.basic_qos(prefetch_count=20)
        channel.basic_consume("refused", self._delivered)

    def _delivered(self, channel: Channel, method: Basic.Deliver, props: pika.BasicProperties, content: bytes) -> None:
        assert content == body(Key.of(props))
        channel.basic_nack(method.delivery_tag, requeue=False)
        self.is_busy.set()


class Trial:
    """One broker, its queues, and their accounts through all kills."""

    def __init__(self, gateway: Gateway, connect: Connect) -> None:
        self._gateway = gateway
        self._connect = connect
        self._next_number = dict.fromkeys(QUEUES, 0)
        self.accounts = {queue: Account() for queue in QUEUES}
        self.died = dict.fromkeys(QUEUES, 0)

    def declare(self) -> None:
        channel = self._connect().channel()
        for queue, (arguments, _) in QUEUES.items():
            channel.queue_declare(grave(queue), durable=True)
            buried = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": grave(queue)}
            channel.queue_declare(queue, durable=True, arguments={**arguments, **buried})

    def load_for(self, seconds: float) -> None:
        """Publish until the broker is killed, this long after everybody is busy."""
        broker = self._gateway.broker
        publishers = [
            Publisher(broker, queue, self._next_number[queue], "", queue, [self.accounts[queue]], window=40)
            for queue in QUEUES
        ]
        clients: list[Client] = [*publishers, Rejecter(broker)]
        for client in clients:
            client.start()
        for client in clients:
            assert client.is_busy.wait(10), "a client gets no answer"
        time.sleep(seconds)
        self._gateway.kill()
        for client in clients:
            client.ended()
        for publisher in publishers:
            self._next_number[publisher.name] = publisher.next_number

    def audit(self) -> None:
        """Start again; what died and what did not are all there is owed, in order, each once."""
        self._gateway.start()
        channel = self._connect().channel()
        while channel.queue_declare("short", passive=True).method.message_count:
            time.sleep(0.01)
        for queue, (_, reason) in QUEUES.items():
            dead = list(contents(channel, grave(queue), queue, reason))
            self.died[queue] = len(dead)
            self.accounts[queue].audit([*dead, *contents(channel, queue)])
        channel.connection.close()


def contents(channel: BlockingChannel, queue: str, died_in: str = "", reason: str = "") -> Iterator[Key]:
    """Take what a queue holds, checking each message, and leave it there: the channel gives it back when it closes."""
    count = channel.queue_declare(queue, passive=True).method.message_count
    for _, (method, props, content) in zip(range(count), channel.consume(queue, inactivity_timeout=5), strict=False):
        assert method is not None, "the queue holds less than it says"
        key = Key.of(props)
        assert content == body(key), f"{key} has another body"
        deaths = (props.headers or {}).pop("x-death", [])
        assert [(death["queue"], death["reason"], death["count"]) for death in deaths] == (
            [(died_in, reason, 1)] if died_in else []
        )
        props.headers = {name: value for name, value in props.headers.items() if not name.startswith("x-")}
        assert props == properties(key), f"{key} has other properties"
        yield key
    channel.cancel()


@pytest.mark.timeout(180)
def test_a_message_that_dies_is_neither_lost_nor_doubled(gateway: Gateway, connect: Connect) -> None:
    moments = random.Random()
    gateway.start()
    trial = Trial(gateway, connect)
    trial.declare()
    for _ in range(KILLS):
        trial.load_for(moments.uniform(0.0, 0.3))
        trial.audit()
    assert all(died > 100 for died in trial.died.values()), trial.died
