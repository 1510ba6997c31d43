"""A client sends nothing further until the dead letters are published that its request causes in later turns."""

from collections.abc import Callable

import pytest
from pamqp import commands

from gateway.kernel.messages.message import Message
from gateway.kernel.queueing.ledger import MOST_AT_ONCE
from gateway.kernel.routing.exchange import MOST_QUEUES
from gateway.kernel.routing.router import Walk
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.testing.broker import header_of
from tests.clocks import TurnClock
from tests.protocols.amqp.dialogue import Gateway
from tests.protocols.amqp.frames import publish, wire
from tests.protocols.broker_harness import BrokerHarness
from tests.protocols.stomp.dialogue import Gateway as StompGateway
from tests.protocols.stomp.dialogue import frame

WIDE = MOST_QUEUES + 100
LETTER_WIDTH = 40


@pytest.fixture
def clock() -> TurnClock:
    return TurnClock()


def prepare(vhost: VirtualHost) -> None:
    """Declare the exchange ``dead`` with 40 queues, and ``marker``."""
    dead = vhost.declare_exchange("dead", "fanout")
    for number in range(LETTER_WIDTH):
        vhost.bind(dead, vhost.declare_queue(f"dead{number}"), "")
    vhost.declare_queue("marker")


def bind_many(vhost: VirtualHost) -> None:
    """Bind very many queues that drop each message."""
    prepare(vhost)
    source = vhost.exchange("amq.fanout")
    for number in range(WIDE):
        queue = vhost.declare_queue(f"q{number}", arguments={"x-max-length": 0, "x-dead-letter-exchange": "dead"})
        vhost.bind(source, queue, "k")
    walk = vhost.find_route(source, Message("amq.fanout", "k", header_of(), b""))
    assert isinstance(walk, Walk)
    for _ in vhost.walking(walk):
        pass


def letters_when(gateway: BrokerHarness, clock: TurnClock, has_come: Callable[[], object]) -> int:
    """Run turns until something comes; return the number of dead letters in each queue then."""
    for _ in range(5000):
        gateway.settle()
        if has_come():
            return len(gateway.vhost.queue(f"dead{LETTER_WIDTH - 1}"))
        clock.turn()
        gateway.turn.go_on()
    raise AssertionError("it does not come")


def marker_of(gateway: BrokerHarness) -> Callable[[], object]:
    return lambda: len(gateway.vhost.queue("marker"))


def test_after_a_message_to_very_many_queues(clock: TurnClock) -> None:
    gateway = Gateway(clock=clock)
    bind_many(gateway.vhost)
    peer = gateway.connect()
    peer.io.take(wire(publish("amq.fanout", "k"), publish("", "marker")))
    assert letters_when(gateway, clock, marker_of(gateway)) == WIDE


def test_a_message_to_very_many_queues_is_confirmed_before(clock: TurnClock) -> None:
    gateway = Gateway(clock=clock)
    bind_many(gateway.vhost)
    peer = gateway.connect()
    peer.request(commands.Confirm.Select())
    peer.io.take(wire(publish("amq.fanout", "k")))
    assert letters_when(gateway, clock, lambda: "Basic.Ack(delivery_tag=1, multiple=False)" in peer.receive()) < WIDE


def test_after_a_commit_of_amqp(clock: TurnClock) -> None:
    gateway = Gateway(clock=clock)
    bind_many(gateway.vhost)
    peer = gateway.connect()
    peer.request(commands.Tx.Select())
    held = wire(publish("amq.fanout", "k"), commands.Tx.Commit(), publish("", "marker"), commands.Tx.Commit())
    peer.io.take(held)
    assert letters_when(gateway, clock, marker_of(gateway)) == WIDE


def test_after_a_commit_of_stomp(clock: TurnClock) -> None:
    gateway = StompGateway(clock=clock)
    bind_many(gateway.vhost)
    client = gateway.client()
    client.command("BEGIN", transaction="t")
    client.command("SEND", destination="/exchange/amq.fanout/k", transaction="t")
    client.io.take(frame("COMMIT", {"transaction": "t"}) + frame("SEND", {"destination": "/amq/queue/marker"}))
    assert letters_when(gateway, clock, marker_of(gateway)) == WIDE


def test_after_a_rejection_of_very_many_messages(clock: TurnClock) -> None:
    gateway = Gateway(clock=clock)
    prepare(gateway.vhost)
    gateway.vhost.declare_queue("source", arguments={"x-dead-letter-exchange": "dead"})
    peer = gateway.connect()
    count = MOST_AT_ONCE + 100
    peer.send(commands.Basic.Consume(queue="source"), *[publish("", "source")] * count)
    while gateway.ready("source"):
        clock.turn()
        gateway.settle()
    peer.receive()
    nack = commands.Basic.Nack(delivery_tag=0, multiple=True, requeue=False)
    peer.io.take(wire(nack, publish("", "marker")))
    assert letters_when(gateway, clock, marker_of(gateway)) == count
