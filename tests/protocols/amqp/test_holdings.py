"""Limits of one connection's memory: unfinished bodies, open transactions, unacknowledged deliveries."""

from collections.abc import Callable

import pytest
from pamqp import commands

from gateway.kernel.alarms import Resource
from gateway_amqp.content import BODY, METHOD
from gateway_amqp.holdings import OVERHEAD
from gateway_amqp.methods import encode_method
from gateway_amqp.periodic_checks import check_unsettled_size
from tests.conformance.amqp.tables import (
    ALIVE,
    CLOSE_CHANNEL,
    PROBE,
    ack,
    acked,
    channel_close,
    consume,
    declared,
    get,
    got,
    queue,
)
from tests.protocols.amqp.dialogue import Gateway, Peer
from tests.protocols.amqp.frames import content_header, frame, publish

LIMIT = 20_000
BEYOND = "CONTENT_TOO_LARGE - unfinished contents exceed the connection's limit of 20000 bytes"
UNCOMMITTED = (
    "PRECONDITION_FAILED - open transactions exceed the connection's limit of 20000 bytes: commit smaller ones"
)


@pytest.fixture
def gateway() -> Gateway:
    gateway = Gateway(max_held_size=LIMIT, max_message_size=LIMIT, max_unsettled_size=LIMIT)
    gateway.vhost.declare_queue("t")
    return gateway


@pytest.fixture
def peer(gateway: Gateway) -> Peer:
    peer = gateway.connect()
    for channel in (2, 3):
        peer.send(commands.Channel.Open(), channel=channel)
    peer.receive()
    return peer


def begin(size: int, channel: int, sent: int) -> bytes:
    """Return the first frames of a publish, with this many bytes of its body."""
    method = encode_method(channel, commands.Basic.Publish(0, "", "t"))
    assert method[0] == METHOD
    return method + content_header(size, channel=channel) + frame(BODY, channel, bytes(sent))


def test_a_body_beyond_the_connections_limit_closes_only_its_channel(peer: Peer) -> None:
    peer.send(begin(10_000, 1, 9_000), begin(10_000, 2, 9_000), begin(10_000, 3, 9_000))
    assert peer.receive() == [f"Channel.Close 311 {BEYOND} (60,40) ch=3"]
    peer.send(frame(BODY, 1, bytes(1_000)), PROBE)
    assert peer.receive() == [ALIVE]
    assert peer.gateway.vhost.queue("t").ready.bytes == 10_000


def test_a_single_body_of_the_largest_size_is_always_accepted(peer: Peer) -> None:
    peer.send(begin(LIMIT, 1, LIMIT - 1), frame(BODY, 1, b"x"), PROBE)
    assert peer.receive() == [ALIVE]
    assert peer.gateway.vhost.queue("t").ready.bytes == LIMIT


def test_a_channel_that_closes_in_the_middle_of_a_body_releases_its_memory(peer: Peer) -> None:
    peer.send(begin(10_000, 1, 9_000), begin(10_000, 2, 9_000), begin(10_000, 3, 9_000))
    peer.send(begin(30_000, 1, 10))  # inside a content: that ends the connection
    assert peer.receive()[-1].startswith("Connection.Close 505")
    assert peer.machine.holdings.size == 0


def test_complete_messages_do_not_count_against_the_limit(peer: Peer) -> None:
    for _ in range(10):
        peer.send(publish("", "t", bytes(10_000), pieces=4_000))
    peer.send(PROBE)
    assert peer.receive() == [ALIVE]
    assert peer.machine.holdings.size == 0


def test_a_body_in_a_million_frames_uses_no_more_memory_than_its_bytes(peer: Peer) -> None:
    body = bytes(range(256)) * 40
    peer.send(publish("", "t", body, pieces=1), get("t"))
    assert peer.receive() == [got(1, "t", body)]


def test_an_unfinished_publish_is_blocked_when_an_alarm_is_raised(gateway: Gateway, peer: Peer) -> None:
    peer.send(begin(10_000, 1, 10))
    gateway.broker.alarms.set(Resource.MEMORY, True)
    assert peer.receive() == ["Connection.Blocked(reason='low on memory')"]


def test_the_method_frame_of_a_publish_is_enough_to_be_blocked(gateway: Gateway, peer: Peer) -> None:
    peer.send(encode_method(1, commands.Basic.Publish(0, "", "t")))
    gateway.broker.alarms.set(Resource.MEMORY, True)
    assert peer.receive() == ["Connection.Blocked(reason='low on memory')"]


def test_a_transaction_beyond_the_connections_limit_closes_its_channel_and_is_rolled_back(peer: Peer) -> None:
    peer.send(commands.Tx.Select(), publish("", "t", bytes(9_000)), publish("", "t", bytes(9_000)))
    peer.send(publish("", "t", bytes(9_000)), commands.Tx.Commit())
    assert peer.receive() == ["Tx.SelectOk()", channel_close(UNCOMMITTED, 60, 40)]
    assert len(peer.gateway.vhost.queue("t")) == 0
    assert peer.machine.holdings.size == 0


def test_empty_publishes_of_a_transaction_count_against_the_limit(peer: Peer) -> None:
    peer.send(commands.Tx.Select(), *[publish("", "t", b"")] * (LIMIT // OVERHEAD + 1))
    assert peer.receive() == ["Tx.SelectOk()", channel_close(UNCOMMITTED, 60, 40)]


@pytest.mark.parametrize("end", [commands.Tx.Commit(), commands.Tx.Rollback()])
def test_a_finished_transaction_releases_its_memory(peer: Peer, end: commands.Tx.Commit) -> None:
    peer.send(commands.Tx.Select())
    for _ in range(10):
        peer.send(publish("", "t", bytes(9_000)), end)
    assert {answer.split("(")[0] for answer in peer.receive()} == {"Tx.SelectOk", end.name + "Ok"}
    assert peer.machine.holdings.size == 0


def test_deliveries_of_refused_settlements_are_requeued_for_other_consumers(peer: Peer) -> None:
    count = LIMIT // OVERHEAD + 1
    peer.send(commands.Tx.Select(), *[publish("", "t", b"")] * 2, commands.Tx.Commit())
    queue_ = peer.gateway.vhost.queue("t")
    for _ in range(count):
        peer.send(publish("", "t", b""), commands.Tx.Commit())
    peer.send(*[get("t")] * (count + 2), *[ack(tag) for tag in range(1, count + 2)])
    assert peer.receive()[-1] == channel_close(UNCOMMITTED, 60, 80)
    assert (len(queue_), queue_.unsettled) == (count + 2, 0)


@pytest.fixture
def fill(gateway: Gateway) -> Callable[[int], None]:
    def fill(count: int) -> None:
        sender = gateway.connect()
        sender.send(*[publish("", "t", bytes(1_000))] * count)
        sender.receive()
        sender.lose()

    return fill


def test_a_consumer_with_too_many_unsettled_bytes_gets_nothing_until_it_acknowledges(
    gateway: Gateway, peer: Peer, fill: Callable[[int], None]
) -> None:
    peer.send(consume("t"))
    fill(20)
    assert len(peer.receive()) == 21
    check_unsettled_size(peer.machine)
    fill(5)
    assert peer.receive() == []
    peer.send(get("t"), channel=2)
    [answer] = peer.receive()
    assert answer.startswith("Channel.Close 406 PRECONDITION_FAILED - the connection holds too many deliveries")
    peer.send(ack(15, multiple=True))
    check_unsettled_size(peer.machine)
    assert len(peer.receive()) == 5


def test_other_consumers_are_served_meanwhile(gateway: Gateway, peer: Peer, fill: Callable[[int], None]) -> None:
    peer.send(consume("t"))
    fill(20)
    check_unsettled_size(peer.machine)
    other = gateway.connect()
    other.send(consume("t", "other"))
    fill(5)
    assert len(other.receive()) == 6
    assert len(peer.receive()) == 21


def test_the_size_of_many_deliveries_is_estimated(gateway: Gateway, peer: Peer, fill: Callable[[int], None]) -> None:
    fill(1_000)
    peer.send(consume("t"))
    peer.receive()
    [channel] = [each for each in peer.channels() if each.number == 1]
    assert channel.unacknowledged == 1_000
    check_unsettled_size(peer.machine)
    assert ("deliveries held back", {"unsettled_bytes": 1_512_000, "limit": LIMIT}) in peer.log_lines
    assert peer.send(queue("t"), CLOSE_CHANNEL).receive() == [declared("t", 0, 1), "Channel.CloseOk()"]


def test_confirms_are_sent_while_deliveries_are_held_back(peer: Peer, fill: Callable[[int], None]) -> None:
    peer.send(consume("t"))
    fill(20)
    peer.receive()
    check_unsettled_size(peer.machine)
    peer.send(commands.Confirm.Select(), publish("", "t"), channel=2)
    assert peer.receive() == ["Confirm.SelectOk() ch=2", f"{acked(1)} ch=2"]
