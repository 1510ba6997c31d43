"""One read of very many small SENDs is handled in several turns: in order, each once."""

from itertools import pairwise

import pytest

from gateway.kernel.budget import WORK_PER_CLOCK_READING
from tests.clocks import TurnClock
from tests.protocols.stomp.dialogue import Client, Gateway, frame, receipt

COUNT = 1000

#: SENDs in a turn in which each reading of the clock takes a millisecond, and each 64 SENDs need one.
MOST_IN_A_TURN = 7 * WORK_PER_CLOCK_READING // 2


@pytest.fixture
def gateway() -> Gateway:
    gateway = Gateway(clock=TurnClock(is_ticking=False))
    gateway.client().command("SEND", destination="/queue/q")
    return gateway


def read(gateway: Gateway, **headers: str) -> tuple[Client, list[int]]:
    """Let a client send all messages in one read; return it, and the number of messages published in each turn."""
    clock, queue = gateway.fake_clock, gateway.vhost.queue_by_name["q"]
    assert isinstance(clock, TurnClock)
    client = gateway.client()
    sent = [
        frame("SEND", {"destination": "/queue/q", **headers, "receipt": str(number)}, b"%d" % number)
        for number in range(COUNT)
    ]
    if headers:
        client.command("BEGIN", headers)
    clock.is_ticking = True
    gateway.broker.journal.budget.renew()
    lengths = [len(queue)]
    client.io.take(b"".join(sent))
    lengths.append(len(queue))
    while client.machine.is_held:
        gateway.broker.journal.budget.renew()
        client.machine.receive(b"")
        lengths.append(len(queue))
    clock.is_ticking = False
    return client, [after - before for before, after in pairwise(lengths)]


def test_a_turn_publishes_a_bounded_number_of_them(gateway: Gateway) -> None:
    client, turns = read(gateway)
    assert sum(turns) == COUNT
    assert max(turns) <= MOST_IN_A_TURN
    assert client.receive_frames() == [receipt(str(number)) for number in range(COUNT)]


def test_they_are_published_in_order(gateway: Gateway) -> None:
    read(gateway)
    reader = gateway.client()
    reader.command("SUBSCRIBE", id="0", destination="/queue/q")
    assert [message.body for message in reader.messages[1:]] == [b"%d" % number for number in range(COUNT)]


def test_those_of_a_transaction_are_held_in_several_turns_and_published_by_its_commit(gateway: Gateway) -> None:
    client, turns = read(gateway, transaction="t")
    assert len(turns) >= COUNT // MOST_IN_A_TURN
    assert not sum(turns)
    client.command("COMMIT", transaction="t")
    assert len(gateway.vhost.queue_by_name["q"]) == 1 + COUNT
