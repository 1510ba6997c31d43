"""Killed while messages die: each is in its queue or among the dead letters, never in both, and none is lost.

Three queues, each with a grave of its own: ``short`` lets messages expire, ``small`` drops its head, ``refused`` has a
consumer who rejects everything.
"""

import time
from collections.abc import Iterator
from typing import Any, Final

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from pika.channel import Channel
from pika.spec import Basic

from tests.broker.conftest import Connect
from tests.durability.expected import Key, body, properties
from tests.durability.load import Client
from tests.durability.trial import Trial
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


class Dying(Trial):
    """Queues whose messages die, and their graves; ``died`` is how many lie in each."""

    def __init__(self, gateway: Gateway, connect: Connect) -> None:
        super().__init__(gateway, connect, QUEUES)
        self.died = dict.fromkeys(QUEUES, 0)

    def declare(self) -> None:
        channel = self.connect().channel()
        for queue, (arguments, _) in QUEUES.items():
            channel.queue_declare(grave(queue), durable=True)
            buried = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": grave(queue)}
            channel.queue_declare(queue, durable=True, arguments={**arguments, **buried})

    def clients(self) -> list[Client]:
        publishers = [self.publisher(queue, "", queue, [queue], window=40) for queue in QUEUES]
        return [*publishers, Rejecter(self.gateway.broker)]

    def audit(self) -> None:
        """What died and what did not are all there is owed, in order, each once."""
        channel = self.connect().channel()
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
def test_dead_letters_are_neither_lost_nor_duplicated(gateway: Gateway, connect: Connect) -> None:
    trial = Dying(gateway, connect)
    trial.survive(KILLS, within_s=0.3)
    assert all(died > 100 for died in trial.died.values()), trial.died
