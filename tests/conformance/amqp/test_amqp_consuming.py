"""Consuming: consume and cancel, get, prefetch, settlement, recover, flow, and direct reply-to."""

import pytest
from pamqp import commands

from gateway.kernel.messages.message import Value
from tests.conformance.amqp.tables import (
    ALIVE,
    CHANNEL_CLOSED,
    CLOSE,
    CLOSE_CHANNEL,
    OPENED,
    PROBE,
    Row,
    ack,
    acked,
    bind,
    cancel,
    channel_close,
    connection_close,
    consume,
    declared,
    delete,
    delivered,
    exchange,
    get,
    got,
    nack,
    passes,
    purge,
    queue,
    reject,
    returned,
    row,
)
from tests.protocols.amqp.dialogue import Gateway, Peer
from tests.protocols.amqp.frames import ALL_CAPABILITIES, Sent, asked, publish

EMPTY = "Basic.GetEmpty(cluster_id='')"
QOS_OK = "Basic.QosOk()"

REPLY_TO = "amq.rabbitmq.reply-to"


def consuming(tag: str = "c") -> str:
    return f"Basic.ConsumeOk(consumer_tag={tag!r})"


def cancelled(tag: str = "c") -> str:
    return f"Basic.CancelOk(consumer_tag={tag!r})"


def qos(count: int, *, is_global: bool = False) -> commands.Basic.Qos:
    return commands.Basic.Qos(0, count, is_global)


def numbered(count: int, name: str = "t") -> list[Sent]:
    return [publish("", name, b"%d" % number) for number in range(1, count + 1)]


REUSED = connection_close("NOT_ALLOWED - attempt to reuse consumer tag 'c'", 60, 20)


def bad_priority(value: Value, type: str) -> Row:
    wrong = f'"expected integer, got {type}"'
    text = f"PRECONDITION_FAILED - invalid arg 'x-priority' for queue 't' in vhost '/': {wrong}"
    return row(
        f"R92: priority of type {type}",
        [consume("t", arguments={"x-priority": value})],
        channel_close(text, 60, 20),
    )


ANSWERS: list[Row] = [
    row("R99: a consumer tag used twice", [consume("t"), consume("t")], consuming(), REUSED),
    row("R99: for another queue", [consume("t"), consume("d")], consuming(), REUSED),
    row("R99: without an answer", [consume("t"), consume("t", nowait=True)], consuming(), REUSED),
    row("R99: free again once cancelled", [consume("t"), cancel(), consume("t")],
        consuming(), cancelled(), consuming()),
    row("R99: an empty tag", [consume("t", "")], consuming("amq.ctag-token-1")),
    row("a tag of 255 bytes", [consume("t", "c" * 255)], consuming("c" * 255)),
    row("cancelling an unknown tag", [cancel("nosuch")], cancelled("nosuch")),
    row("R92: priority 5", [consume("t", arguments={"x-priority": 5})], consuming()),
    row("R92: priority below zero", [consume("t", arguments={"x-priority": -5})], consuming()),
    row("R92: a large priority", [consume("t", arguments={"x-priority": 1 << 40})], consuming()),
    bad_priority("5", "longstr"),
    bad_priority(1.5, "double"),
    bad_priority(True, "bool"),
    bad_priority(None, "void"),
    row("an unknown argument", [consume("t", arguments={"x-foo": 1})], consuming()),
    row("R49: an argument of streams", [consume("t", arguments={"x-stream-offset": "first"})],
        channel_close("PRECONDITION_FAILED - invalid arg 'x-stream-offset' for queue 't' in vhost '/' of queue type "
                      "rabbit_classic_queue", 60, 20)),
    row("no-local is ignored", [consume("t", no_local=True, no_ack=True), publish("", "t")],
        consuming(), delivered("c", 1, "t")),
    row("R84: a prefetch size", [commands.Basic.Qos(1, 0, False)],
        connection_close("NOT_IMPLEMENTED - prefetch_size!=0 (1)", 60, 10)),
    row("R84: the largest prefetch", [qos(65535)], QOS_OK),
    row("R83: for the channel, then for consumers", [qos(1, is_global=True), qos(1)], QOS_OK, QOS_OK),
    row("recover with nothing outstanding", [commands.Basic.Recover(True)], "Basic.RecoverOk()"),
    row("recover to the same consumer", [commands.Basic.Recover(False)],
        connection_close("NOT_IMPLEMENTED - requeue=false", 60, 110)),
    passes("recover-async has no answer", commands.Basic.RecoverAsync(True)),
    row("recover-async to the same consumer", [commands.Basic.RecoverAsync(False)],
        connection_close("NOT_IMPLEMENTED - requeue=false", 60, 100)),
    row("recover what was fetched",
        [*numbered(2), get("t"), get("t"), commands.Basic.Recover(True), get("t"), get("t")],
        got(1, "t", b"1", left=1), got(2, "t", b"2"), "Basic.RecoverOk()",
        got(3, "t", b"1", left=1, redelivered=True), got(4, "t", b"2", redelivered=True)),
    row("channel.flow on", [commands.Channel.Flow(True)], "Channel.FlowOk(active=True)"),
    row("channel.flow off", [commands.Channel.Flow(False)],
        connection_close("NOT_IMPLEMENTED - active=false", 20, 20)),
    row("purge answers with the number of messages", [*numbered(2), purge("t")], "Queue.PurgeOk(message_count=2)"),
    row("delete answers with the number of messages", [*numbered(1), delete("t")], "Queue.DeleteOk(message_count=1)"),
    row("R90: get from an empty queue", [get("t")], EMPTY),
    row("R36: declare-ok has the numbers of messages and consumers",
        [*numbered(2), get("t"), queue("t"), consume("t"), queue("t")],
        got(1, "t", b"1", left=1), declared("t", 1), consuming(), delivered("c", 2, "t", b"2"), declared("t", 0, 1)),
    row("R89: what was refused with requeue comes back in order",
        [*numbered(3), get("t"), get("t"), get("t"), nack(3, multiple=True), get("t"), get("t"), get("t")],
        got(1, "t", b"1", left=2), got(2, "t", b"2", left=1), got(3, "t", b"3"),
        got(4, "t", b"1", left=2, redelivered=True), got(5, "t", b"2", left=1, redelivered=True),
        got(6, "t", b"3", redelivered=True)),
    row("R89: what was refused for good is gone", [*numbered(1), get("t"), reject(1, requeue=False), get("t")],
        got(1, "t", b"1"), EMPTY),
    row("R32: an auto-delete queue is deleted with its last consumer",
        [queue("ad", auto_delete=True), consume("ad"), cancel(), queue("ad", passive=True)],
        declared("ad"), consuming(), cancelled(), channel_close("NOT_FOUND - no queue 'ad' in vhost '/'", 50, 10)),
    row("R32: a get is no consumer", [queue("ad", auto_delete=True), get("ad"), queue("ad", passive=True)],
        declared("ad"), EMPTY, declared("ad")),
    row("R98: the queue is deleted under a consumer", [consume("t"), delete("t"), consume("d")],
        consuming(), "Basic.Cancel(consumer_tag='c', nowait=True)", "Queue.DeleteOk(message_count=0)", consuming()),
    row("R86: prefetch does not bind automatic acknowledgement", [qos(1), *numbered(2), consume("t", no_ack=True)],
        QOS_OK, consuming(), delivered("c", 1, "t", b"1"), delivered("c", 2, "t", b"2")),
    row("R85: the limit of the channel holds automatic acknowledgement back while others have used it up",
        [qos(1, is_global=True), consume("d", "held"), publish("", "d"), consume("t", no_ack=True), *numbered(2)],
        QOS_OK, consuming("held"), delivered("held", 1, "d"), consuming()),
    row("R85: and lets it go on when there is room again",
        [qos(1, is_global=True), consume("d", "held"), publish("", "d"), consume("t", no_ack=True), *numbered(2),
         ack(1)],
        QOS_OK, consuming("held"), delivered("held", 1, "d"), consuming(),
        delivered("c", 2, "t", b"1"), delivered("c", 3, "t", b"2")),
    row("R85: deliveries with automatic acknowledgement use none of it",
        [qos(1, is_global=True), consume("t", no_ack=True), *numbered(2), consume("d", "held"), publish("", "d")],
        QOS_OK, consuming(), delivered("c", 1, "t", b"1"), delivered("c", 2, "t", b"2"),
        consuming("held"), delivered("held", 3, "d")),
    row("R85: replies are not held back",
        [qos(1, is_global=True), consume("d", "held"), publish("", "d"), consume(REPLY_TO, no_ack=True),
         publish("", "t", b"ask", reply_to=REPLY_TO), publish("", "amq.rabbitmq.reply-to.token-1", b"reply")],
        QOS_OK, consuming("held"), delivered("held", 1, "d"), consuming(),
        delivered("c", 2, "amq.rabbitmq.reply-to.token-1", b"reply")),
    row("access.request is granted", [b"\1\0\1\0\0\0\x0b\0\x1e\0\x0a\x05/data\x1f\xce"], "Access.RequestOk()"),
]  # fmt: skip


@pytest.mark.parametrize(("sent", "answers"), ANSWERS)
def test_consuming_is_answered(peer: Peer, sent: list[Sent], answers: list[str]) -> None:
    assert peer.send(*sent).receive() == answers


def test_r99_a_consumer_tag_is_unique_per_channel(peer: Peer) -> None:
    peer.send(consume("t"))
    peer.send(commands.Channel.Open(), consume("t"), channel=2)
    assert peer.receive() == [consuming(), f"{OPENED} ch=2", f"{consuming()} ch=2"]


def test_r98_without_the_capability_no_cancel_is_sent(gateway: Gateway) -> None:
    capabilities = {name: True for name in ALL_CAPABILITIES if name != "consumer_cancel_notify"}
    peer = gateway.connect(capabilities=capabilities)
    peer.send(consume("t"), delete("t"))
    assert peer.receive() == [consuming(), "Queue.DeleteOk(message_count=0)"]


def test_r98_another_connection_deletes_the_queue(gateway: Gateway, peer: Peer) -> None:
    peer.send(consume("t"), consume("t", "d")).receive()
    gateway.connect().send(delete("t")).receive()
    assert peer.receive() == [f"Basic.Cancel(consumer_tag={tag!r}, nowait=True)" for tag in "cd"]


# ---------------------------------------------------------------- prefetch


def test_r83_a_limit_applies_to_each_new_consumer(peer: Peer) -> None:
    peer.send(*numbered(5), qos(1), consume("t", "a"), qos(2), consume("t", "b"))
    assert peer.receive() == [
        QOS_OK,
        consuming("a"),
        delivered("a", 1, "t", b"1"),
        QOS_OK,
        consuming("b"),
        delivered("b", 2, "t", b"2"),
        delivered("b", 3, "t", b"3"),
    ]
    assert peer.send(ack(1)).receive() == [delivered("a", 4, "t", b"4")]
    assert peer.send(ack(3)).receive() == [delivered("b", 5, "t", b"5")]


def test_r83_a_channel_limit_is_shared(peer: Peer) -> None:
    peer.send(*numbered(4), qos(2, is_global=True), consume("t", "a"), consume("t", "b"))
    assert [line for line in peer.receive() if "Deliver" in line] == [
        delivered("a", 1, "t", b"1"),
        delivered("a", 2, "t", b"2"),
    ]
    assert len(peer.send(ack(2, multiple=True)).receive()) == 2


def test_r83_consumers_that_share_a_limit_are_served_round_robin(peer: Peer) -> None:
    peer.send(*numbered(4), qos(1, is_global=True), consume("t", "a"), consume("t", "b"))
    served = [line.split("'")[1] for line in peer.receive() if "Deliver" in line]
    for tag in (1, 2, 3):
        served += [line.split("'")[1] for line in peer.send(ack(tag)).receive()]
    assert served == ["a", "b", "a", "b"]


def test_r83_a_commit_returns_shared_credit_to_all_consumers(peer: Peer) -> None:
    peer.send(*numbered(1), *numbered(1, "d"), qos(1, is_global=True), commands.Tx.Select())
    peer.send(consume("t", "a"), consume("d", "b")).receive()
    assert peer.send(ack(1), commands.Tx.Commit()).receive() == [delivered("b", 2, "d", b"1"), "Tx.CommitOk()"]


def test_r85_a_new_shared_limit_counts_what_a_transaction_has_not_settled_yet(peer: Peer) -> None:
    peer.send(*numbered(5), qos(2, is_global=True), commands.Tx.Select(), consume("t", "a")).receive()
    assert peer.send(ack(1), qos(2, is_global=True)).receive() == ["Basic.QosOk()"]
    assert peer.send(commands.Tx.Commit()).receive() == [delivered("a", 3, "t", b"3"), "Tx.CommitOk()"]


def test_r85_settlements_that_a_transaction_rolls_back_still_count(peer: Peer) -> None:
    peer.send(*numbered(5), qos(2, is_global=True), commands.Tx.Select(), consume("t", "a")).receive()
    assert peer.send(ack(1), qos(2, is_global=True), commands.Tx.Rollback()).receive() == [
        "Basic.QosOk()",
        "Tx.RollbackOk()",
    ]
    assert peer.send(ack(2, multiple=True), commands.Tx.Commit()).receive() == [
        delivered("a", 3, "t", b"3"),
        delivered("a", 4, "t", b"4"),
        "Tx.CommitOk()",
    ]


def test_r85_both_limits_apply(peer: Peer) -> None:
    peer.send(*numbered(5), qos(3, is_global=True), qos(2), consume("t", "a"), consume("t", "b"))
    tags = [line.split("'")[1] for line in peer.receive() if "Deliver" in line]
    assert tags == ["a", "a", "b"]


def test_r84_raising_the_channel_limit_delivers_more(peer: Peer) -> None:
    peer.send(*numbered(3), qos(1, is_global=True), consume("t")).receive()
    assert peer.send(qos(0, is_global=True)).receive() == [
        delivered("c", 2, "t", b"2"),
        delivered("c", 3, "t", b"3"),
        QOS_OK,
    ]


def test_basic_get_does_not_count_against_the_limit(peer: Peer) -> None:
    peer.send(*numbered(3), get("t"), qos(1), consume("t")).receive()
    assert peer.send(ack(1)).receive() == []
    assert peer.send(ack(2)).receive() == [delivered("c", 3, "t", b"3")]


# ---------------------------------------------------------------- settling


def test_r87_multiple_settles_all_up_to_a_tag(peer: Peer) -> None:
    peer.send(*numbered(4), consume("t")).receive()
    peer.send(ack(2), ack(3, multiple=True), CLOSE_CHANNEL, commands.Channel.Open(), get("t"), get("t"))
    assert peer.receive() == [CHANNEL_CLOSED, OPENED, got(1, "t", b"4", redelivered=True), EMPTY]


def test_r87_tag_0_settles_everything(peer: Peer) -> None:
    peer.send(*numbered(3), consume("t")).receive()
    peer.send(nack(0, multiple=True, requeue=False), CLOSE_CHANNEL, commands.Channel.Open(), get("t"))
    assert peer.receive() == [CHANNEL_CLOSED, OPENED, EMPTY]


@pytest.mark.parametrize("end", ["close the channel", "close the connection", "lose the connection", "be refused"])
def test_r88_unsettled_deliveries_are_requeued_at_their_old_positions(gateway: Gateway, peer: Peer, end: str) -> None:
    holder = gateway.connect()
    holder.send(*numbered(4), get("t"), get("t"), get("t"), ack(2)).receive()
    if end == "close the channel":
        holder.send(CLOSE_CHANNEL)
    elif end == "close the connection":
        holder.send(CLOSE)
    elif end == "be refused":
        holder.send(get("nosuchq"))
    else:
        holder.lose()
    peer.send(get("t"), get("t"), get("t"), get("t"))
    assert peer.receive() == [
        got(1, "t", b"1", left=2, redelivered=True),
        got(2, "t", b"3", left=1, redelivered=True),
        got(3, "t", b"4"),
        EMPTY,
    ]


def test_r88_requeued_deliveries_do_not_go_to_other_channels_of_the_closing_connection(
    gateway: Gateway, peer: Peer
) -> None:
    holder = gateway.connect()
    holder.send(*numbered(3), get("t"), get("t"), get("t")).receive()
    holder.send(commands.Channel.Open(), consume("t", no_ack=True), channel=2).receive()
    holder.lose()
    assert peer.send(queue("t")).receive() == [declared("t", 3)]


def test_r88_other_consumers_are_served_at_once(gateway: Gateway, peer: Peer) -> None:
    holder = gateway.connect()
    holder.send(*numbered(2), consume("t")).receive()
    peer.send(consume("t")).receive()
    holder.lose()
    assert peer.receive() == [
        delivered("c", 1, "t", b"1", redelivered=True),
        delivered("c", 2, "t", b"2", redelivered=True),
    ]


def test_r82_consumers_are_served_round_robin(peer: Peer) -> None:
    peer.send(consume("t", "a"), consume("t", "b"), *numbered(4))
    tags = [line.split("'")[1] for line in peer.receive() if "Deliver" in line]
    assert tags == ["a", "b", "a", "b"]


def test_r92_the_higher_priority_is_served_while_it_has_credit(peer: Peer) -> None:
    peer.send(qos(2), consume("t", "low"), consume("t", "high", arguments={"x-priority": 1}), *numbered(3))
    tags = [line.split("'")[1] for line in peer.receive() if "Deliver" in line]
    assert tags == ["high", "high", "low"]


def test_recovery_serves_consumers_again(peer: Peer) -> None:
    peer.send(*numbered(2), consume("t")).receive()
    peer.send(commands.Basic.Recover(True))
    assert sorted(peer.receive()) == sorted(
        [
            "Basic.RecoverOk()",
            delivered("c", 3, "t", b"1", redelivered=True),
            delivered("c", 4, "t", b"2", redelivered=True),
        ]
    )


def test_unsettled_deliveries_of_a_cancelled_consumer_stay_with_the_channel(peer: Peer) -> None:
    peer.send(*numbered(1), consume("t"), cancel(), get("t")).receive()
    assert peer.send(ack(1), PROBE).receive() == [ALIVE]


def test_a_consumer_with_a_full_outbox_is_skipped(gateway: Gateway, peer: Peer) -> None:
    slow = gateway.connect()
    slow.send(consume("t", "slow", no_ack=True)).receive()
    peer.send(consume("t", "quick", no_ack=True)).receive()
    slow.is_reading = False
    peer.send(*numbered(2)).receive()
    first = len([line for line in peer.receive() if "Deliver" in line])
    peer.send(*numbered(50))
    assert len([line for line in peer.receive() if "Deliver" in line]) >= 49
    slow.read_again()
    assert len(slow.receive()) <= 2 - first + 1


# ---------------------------------------------------------------- direct reply-to

FAST = f"{REPLY_TO}.token-1"


def precondition(text: str, method: int = 20) -> str:
    return channel_close(f"PRECONDITION_FAILED - {text}", 60, method)


def no_queue(name: str, class_id: int, method_id: int) -> str:
    return channel_close(f"NOT_FOUND - no queue '{name}' in vhost '/'", class_id, method_id)


REPLIES: list[Row] = [
    row("replies that have to be acknowledged", [consume(REPLY_TO)],
        precondition("reply consumer cannot acknowledge")),
    row("replies without", [consume(REPLY_TO, no_ack=True)], consuming()),
    row("twice on a channel", [consume(REPLY_TO, no_ack=True), consume(REPLY_TO, "d", no_ack=True)],
        consuming(), precondition("reply consumer already set")),
    row("exclusively", [consume(REPLY_TO, no_ack=True, exclusive=True)], consuming()),
    row("with a tag generated by the broker", [consume(REPLY_TO, "", no_ack=True)], consuming("amq.ctag-token-1")),
    row("a request without a reply consumer", [publish("", "t", reply_to=REPLY_TO)],
        precondition("fast reply consumer does not exist", 40)),
    row("a request after a cancel", [consume(REPLY_TO, no_ack=True), cancel(), publish("", "t", reply_to=REPLY_TO)],
        consuming(), cancelled(), precondition("fast reply consumer does not exist", 40)),
    row("declaring it passively", [queue(REPLY_TO, passive=True)], declared(REPLY_TO, 0, 1)),
    row("declaring it", [queue(REPLY_TO)], declared(REPLY_TO, 0, 1)),
    row("declaring an unknown one passively", [queue(f"{REPLY_TO}.bogus", passive=True)],
        no_queue(f"{REPLY_TO}.bogus", 50, 10)),
    row("getting from it", [get(REPLY_TO)], no_queue(REPLY_TO, 60, 70)),
    row("deleting it", [delete(REPLY_TO)], "Queue.DeleteOk(message_count=0)"),
    row("binding it", [bind(REPLY_TO, "xd")], no_queue(REPLY_TO, 50, 20)),
    row("purging it", [purge(REPLY_TO)], no_queue(REPLY_TO, 50, 30)),
    row("replying to an unknown address", [publish("", f"{REPLY_TO}.bogus.key", mandatory=True)],
        returned(f"{REPLY_TO}.bogus.key")),
    row("through an exchange", [consume(REPLY_TO, no_ack=True), publish("xd", FAST, mandatory=True)],
        consuming(), returned(FAST, exchange="xd")),
]  # fmt: skip


@pytest.mark.parametrize(("sent", "answers"), REPLIES)
def test_direct_replies_are_answered(peer: Peer, sent: list[Sent], answers: list[str]) -> None:
    assert peer.send(*sent).receive() == answers


def test_r148_a_request_is_answered_by_direct_reply_to(gateway: Gateway, peer: Peer) -> None:
    peer.send(consume(REPLY_TO, no_ack=True), publish("", "t", b"ask", reply_to=REPLY_TO)).receive()
    server = gateway.connect()
    server.send(get("t"))
    [request] = server.receive_frames()
    assert FAST.encode() in request.properties
    confirm = commands.Confirm.Select()
    server.send(confirm, queue(FAST, passive=True), publish("", FAST, b"answer", mandatory=True))
    assert server.receive() == ["Confirm.SelectOk()", declared(FAST, 0, 1), acked(1)]
    assert peer.receive() == [delivered("c", 1, FAST, b"answer")]


@pytest.mark.parametrize("end", [cancel(), CLOSE_CHANNEL, CLOSE], ids=["cancel", "close channel", "close"])
def test_a_reply_without_a_consumer_is_returned(gateway: Gateway, peer: Peer, end: Sent) -> None:
    peer.send(consume(REPLY_TO, no_ack=True), end).receive()
    server = gateway.connect()
    server.send(publish("", FAST, mandatory=True), queue(FAST, passive=True))
    assert server.receive() == [returned(FAST), no_queue(FAST, 50, 10)]


def test_replies_are_routed_by_the_default_exchange_only(peer: Peer) -> None:
    declare = asked(commands.Queue.Declare, queue="amq.rabbitmq.reply-to.x", passive=True)
    peer.send(exchange("xd", durable=True), declare)
    assert peer.receive() == ["Exchange.DeclareOk()", no_queue("amq.rabbitmq.reply-to.x", 50, 10)]
