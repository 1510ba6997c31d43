"""A consumer of a long queue gets its messages over many turns: in order, each once, whatever lets it go on."""

import pytest
from pamqp import commands

from tests.clocks import TurnClock
from tests.protocols.amqp.dialogue import Gateway, Peer
from tests.protocols.amqp.frames import publish

COUNT = 1000

#: Deliveries in a turn in which each reading of the clock takes a millisecond, and each 32 deliveries need one.
MOST_IN_A_TURN = 8 * 32


@pytest.fixture
def gateway() -> Gateway:
    """A broker with a queue of messages."""
    gateway = Gateway(clock=TurnClock(is_ticking=False))
    publisher = gateway.connect()
    publisher.send(commands.Queue.Declare(queue="q"))
    for number in range(COUNT):
        publisher.send(publish("", "q", b"%d" % number))
    gateway.settle()
    return gateway


def start_ticking(gateway: Gateway) -> None:
    """Let the work take time from now on."""
    clock = gateway.fake_clock
    assert isinstance(clock, TurnClock)
    clock.is_ticking = True
    gateway.end_turn()


def numbers(consumer: Peer) -> list[int]:
    """Return the numbers of the messages that a client gets in a turn."""
    lines = [line for line in consumer.receive_now() if line.startswith("Basic.Deliver")]
    return [int(line.split("'")[-2]) for line in lines]


def by_turn(consumer: Peer) -> list[list[int]]:
    """Return the messages of each turn until nothing comes any more."""
    turns = [numbers(consumer)]
    while turn := numbers(consumer):
        turns.append(turn)
    return turns


def joined(turns: list[list[int]]) -> list[int]:
    return [number for turn in turns for number in turn]


def test_a_consumer_without_a_limit_gets_a_bounded_number_of_messages_in_a_turn(gateway: Gateway) -> None:
    consumer = gateway.connect()
    start_ticking(gateway)
    consumer.send(commands.Basic.Consume(queue="q", no_ack=True))
    turns = by_turn(consumer)
    assert joined(turns) == list(range(COUNT))
    assert max(map(len, turns)) <= MOST_IN_A_TURN


def test_a_consumer_that_acknowledges_many_one_by_one_is_held_and_gets_the_rest(gateway: Gateway) -> None:
    consumer, window = gateway.connect(), COUNT // 2
    consumer.send(commands.Basic.Qos(prefetch_count=window), commands.Basic.Consume(queue="q"))
    assert joined(by_turn(consumer)) == list(range(window))
    start_ticking(gateway)
    consumer.send(*[commands.Basic.Ack(tag) for tag in range(1, window + 1)])
    assert consumer.machine.is_held
    turns: list[list[int]] = []
    while consumer.machine.is_held:
        turns += by_turn(consumer)
        consumer.go_on()
    turns += by_turn(consumer)
    assert joined(turns) == list(range(window, COUNT))
    assert max(map(len, turns)) <= MOST_IN_A_TURN


def test_consumers_on_several_connections_share_the_turns(gateway: Gateway) -> None:
    consumers = [gateway.connect() for _ in range(3)]
    start_ticking(gateway)
    for consumer in consumers:
        consumer.send(commands.Basic.Consume(queue="q", no_ack=True))
        gateway.end_turn()
    found: dict[Peer, list[int]] = {consumer: [] for consumer in consumers}
    for _ in range(COUNT):
        for consumer in consumers:
            found[consumer] += numbers(consumer)
    assert sorted(joined(list(found.values()))) == list(range(COUNT))
    for got in found.values():
        assert got == sorted(got)
        assert got


def test_what_is_published_meanwhile_comes_last(gateway: Gateway) -> None:
    consumer, publisher = gateway.connect(), gateway.connect()
    start_ticking(gateway)
    consumer.send(commands.Basic.Consume(queue="q", no_ack=True))
    first = numbers(consumer)
    publisher.send(publish("", "q", b"%d" % COUNT))
    assert first + joined(by_turn(consumer)) == list(range(COUNT + 1))
