"""Kills while messages are dead-lettered: each message is in exactly one of the two queues.

Three queues, each with its own dead-letter queue: in ``short`` messages expire, ``small`` drops its head, ``refused``
has a consumer that rejects all messages.
"""

from collections.abc import Iterator
from typing import Any, Final

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from pika.channel import Channel
from pika.spec import Basic

from tests.broker.conftest import Connect
from tests.durability.crash_trial import CrashTrial
from tests.durability.expected import Key, body, properties
from tests.durability.load import Client
from tests.running import Gateway
from tests.waiting import wait_until

KILLS: Final = 8

#: Arguments by queue, and the reason recorded for dropped messages.
QUEUES: Final[dict[str, tuple[dict[str, Any], str]]] = {  # Any: pika's argument tables
    "short": ({"x-message-ttl": 20}, "expired"),
    "small": ({"x-max-length": 20}, "maxlen"),
    "refused": ({}, "rejected"),
}


def dead_letter_queue(queue: str) -> str:
    return f"dead-{queue}"


class Rejecter(Client):
    """Rejects all deliveries, a few at a time."""

    def opened(self, channel: Channel) -> None:
        channel.basic_qos(prefetch_count=20)
        channel.basic_consume("refused", self._delivered)

    def _delivered(self, channel: Channel, method: Basic.Deliver, props: pika.BasicProperties, content: bytes) -> None:
        assert content == body(Key.of(props))
        channel.basic_nack(method.delivery_tag, requeue=False)
        self.is_busy.set()


class DeadLetterTrial(CrashTrial):
    """Queues with dead-letter queues; ``dropped`` counts the messages in each of those."""

    def __init__(self, gateway: Gateway, connect: Connect) -> None:
        super().__init__(gateway, connect, QUEUES)
        self.dropped = dict.fromkeys(QUEUES, 0)

    def declare(self) -> None:
        channel = self.connect().channel()
        for queue, (arguments, _) in QUEUES.items():
            channel.queue_declare(dead_letter_queue(queue), durable=True)
            dead_lettering = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead_letter_queue(queue)}
            channel.queue_declare(queue, durable=True, arguments={**arguments, **dead_lettering})

    def clients(self) -> list[Client]:
        publishers = [self.publisher(queue, "", queue, [queue], window=40) for queue in QUEUES]
        return [*publishers, Rejecter(self.gateway.broker)]

    def audit(self) -> None:
        """Both queues together contain each required message once, in order."""
        channel = self.connect().channel()
        wait_until(lambda: not channel.queue_declare("short", passive=True).method.message_count)
        for queue, (_, reason) in QUEUES.items():
            dead = list(contents(channel, dead_letter_queue(queue), queue, reason))
            self.dropped[queue] = len(dead)
            self.expectations[queue].audit([*dead, *contents(channel, queue)])
        channel.connection.close()


def contents(channel: BlockingChannel, queue: str, died_in: str = "", reason: str = "") -> Iterator[Key]:
    """Read and check the messages of a queue; closing the channel requeues them."""
    count = channel.queue_declare(queue, passive=True).method.message_count
    for _, (method, props, content) in zip(range(count), channel.consume(queue, inactivity_timeout=5), strict=False):
        assert method is not None, "the queue contains fewer messages than it reports"
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
    trial = DeadLetterTrial(gateway, connect)
    trial.survive(KILLS, within_s=0.3)
    assert all(dropped > 100 for dropped in trial.dropped.values()), trial.dropped
