"""Names: reserved ones (403), missing entities (404), and exclusive queues of other connections (405)."""

import pytest
from pamqp import commands

from tests.conformance.amqp.tables import (
    ALIVE,
    CLOSE,
    CLOSE_CHANNEL,
    PROBE,
    Row,
    bind,
    bind_exchange,
    cancel,
    channel_close,
    consume,
    declared,
    delete,
    delete_exchange,
    exchange,
    get,
    passes,
    purge,
    queue,
    queue_with,
    row,
    unbind,
    unbind_exchange,
)
from tests.protocols.amqp.dialogue import Gateway, Peer
from tests.protocols.amqp.frames import Sent, publish

ON_DEFAULT = "ACCESS_REFUSED - operation not permitted on the default exchange"
RESERVED = "contains reserved prefix 'amq.*'"
EXCLUSIVE_USE = "ACCESS_REFUSED - queue 't' in vhost '/' in exclusive use"
CONSUMING = "Basic.ConsumeOk(consumer_tag='c')"


def no_queue(name: str) -> str:
    return f"NOT_FOUND - no queue '{name}' in vhost '/'"


def no_exchange(name: str) -> str:
    return f"NOT_FOUND - no exchange '{name}' in vhost '/'"


REFUSED_ACCESS: list[Row] = [
    row("R9: a queue with a reserved name", [queue("amq.foo")],
        channel_close(f"ACCESS_REFUSED - queue name 'amq.foo' {RESERVED}", 50, 10)),
    row("R9: the bare prefix", [queue("amq.")],
        channel_close(f"ACCESS_REFUSED - queue name 'amq.' {RESERVED}", 50, 10)),
    row("R9: the prefix without its dot is free", [queue("amqx")], declared("amqx")),
    row("R9: a server-named queue's name is not for clients", [queue("amq.gen-x")],
        channel_close(f"ACCESS_REFUSED - queue name 'amq.gen-x' {RESERVED}", 50, 10)),
    row("R9: asking passively for a reserved name", [queue("amq.foo", passive=True)],
        channel_close(no_queue("amq.foo"), 50, 10)),
    row("R9: an exchange with a reserved name", [exchange("amq.foo")],
        channel_close(f"ACCESS_REFUSED - exchange name 'amq.foo' {RESERVED}", 40, 10)),
    row("R9: asking passively for a reserved exchange", [exchange("amq.foo", passive=True)],
        channel_close(no_exchange("amq.foo"), 40, 10)),
    row("R9: declaring a predeclared exchange as it is", [exchange("amq.direct", durable=True)],
        "Exchange.DeclareOk()"),
    row("R10: declaring a predeclared exchange otherwise", [exchange("amq.direct")],
        channel_close("PRECONDITION_FAILED - inequivalent arg 'durable' for exchange 'amq.direct' in vhost '/': "
                      "received 'false' but current is 'true'", 40, 10)),
    row("R18: declaring the default exchange", [exchange("")], channel_close(ON_DEFAULT, 40, 10)),
    row("R18: declaring it passively", [exchange("", passive=True)], channel_close(ON_DEFAULT, 40, 10)),
    row("R18: deleting it", [delete_exchange("")], channel_close(ON_DEFAULT, 40, 20)),
    row("R18: binding a queue to it", [bind("t", "", "k")], channel_close(ON_DEFAULT, 50, 20)),
    row("R18: unbinding a queue from it", [unbind("t", "", "k")], channel_close(ON_DEFAULT, 50, 50)),
    row("R18: binding an exchange to it", [bind_exchange("xf", "")], channel_close(ON_DEFAULT, 40, 30)),
    row("R18: binding it to an exchange", [bind_exchange("", "xf")], channel_close(ON_DEFAULT, 40, 30)),
    row("R18: unbinding an exchange from it", [unbind_exchange("xf", "")], channel_close(ON_DEFAULT, 40, 40)),
    row("R9: deleting a system exchange", [delete_exchange("amq.direct")],
        channel_close("ACCESS_REFUSED - deletion of system exchange 'amq.direct' in vhost '/' not allowed", 40, 20)),
    row("R9: deleting a system exchange that is not there", [delete_exchange("amq.nosuch")],
        channel_close("ACCESS_REFUSED - deletion of system exchange 'amq.nosuch' in vhost '/' not allowed", 40, 20)),
    row("deleting a queue with a reserved name that is not there", [delete("amq.nosuch")],
        "Queue.DeleteOk(message_count=0)"),
    row("R22: binding a system exchange to another", [bind_exchange("amq.fanout", "xf")], "Exchange.BindOk()"),
    row("R22: binding an internal exchange", [bind_exchange("xint", "xf")], "Exchange.BindOk()"),
    row("R22: binding from an internal exchange", [bind_exchange("xf", "xint")], "Exchange.BindOk()"),
    row("R23: publishing to an internal exchange", [publish("xint", "k")],
        channel_close("ACCESS_REFUSED - cannot publish to internal exchange 'xint' in vhost '/'", 60, 40)),
    row("R9: publishing to the firehose", [publish("amq.rabbitmq.trace", "k")],
        channel_close("ACCESS_REFUSED - cannot publish to internal exchange 'amq.rabbitmq.trace' in vhost '/'",
                      60, 40)),
    row("R9: binding to the firehose", [bind("t", "amq.rabbitmq.trace", "#")], "Queue.BindOk()"),
    row("R97: an exclusive consumer beside another", [consume("t"), consume("t", "d", exclusive=True)],
        CONSUMING, channel_close(EXCLUSIVE_USE, 60, 20)),
    row("R97: a consumer beside an exclusive one", [consume("t", exclusive=True), consume("t", "d")],
        CONSUMING, channel_close(EXCLUSIVE_USE, 60, 20)),
    row("R97: the queue is free again when the exclusive one is gone",
        [consume("t", exclusive=True), cancel(), consume("t")],
        CONSUMING, "Basic.CancelOk(consumer_tag='c')", CONSUMING),
    row("R35: an empty name is replaced by the broker's", [queue("")], declared("amq.gen-token-1")),
    row("line breaks are removed from a queue's name", [queue("a\r\nb")], declared("ab")),
    row("line breaks are removed from an exchange's name", [exchange("a\nb"), exchange("ab", passive=True)],
        "Exchange.DeclareOk()", "Exchange.DeclareOk()"),
    row("a name of 255 bytes", [queue("n" * 255)], declared("n" * 255)),
    row("a name with spaces and umlauts", [queue("drei Grüße ✓")], declared("drei Grüße ✓")),
    row("1.8: a long text is cut to 255 bytes", [queue("n" * 255, passive=True)],
        channel_close(("NOT_FOUND - no queue '" + "n" * 255)[:252] + "...", 50, 10)),
]  # fmt: skip

NOT_FOUND: list[Row] = [
    row("R11: publishing to an exchange that is not there", [publish("nosuchx", "k")],
        channel_close(no_exchange("nosuchx"), 60, 40)),
    row("R36: asking passively for a queue", [queue("nosuchq", passive=True)],
        channel_close(no_queue("nosuchq"), 50, 10)),
    row("asking passively for an exchange", [exchange("nosuchx", passive=True)],
        channel_close(no_exchange("nosuchx"), 40, 10)),
    row("a passive declare ignores the type", [exchange("xd", "fanout", passive=True)], "Exchange.DeclareOk()"),
    row("a passive declare ignores an unknown type", [exchange("xd", "no such", passive=True)],
        "Exchange.DeclareOk()"),
    row("a passive declare ignores properties", [queue("d", passive=True, auto_delete=True)], declared("d")),
    row("R33: consuming", [consume("nosuchq")], channel_close(no_queue("nosuchq"), 60, 20)),
    row("R90: getting", [get("nosuchq")], channel_close(no_queue("nosuchq"), 60, 70)),
    row("purging", [purge("nosuchq")], channel_close(no_queue("nosuchq"), 50, 30)),
    row("deleting a queue that is not there", [delete("nosuchq")], "Queue.DeleteOk(message_count=0)"),
    row("deleting it if unused", [delete("nosuchq", if_unused=True)], "Queue.DeleteOk(message_count=0)"),
    row("deleting an exchange that is not there", [delete_exchange("nosuchx")], "Exchange.DeleteOk()"),
    row("binding an absent queue", [bind("nosuchq", "xd", "k")], channel_close(no_queue("nosuchq"), 50, 20)),
    row("binding to an absent exchange", [bind("t", "nosuchx", "k")], channel_close(no_exchange("nosuchx"), 50, 20)),
    row("binding with both absent", [bind("nosuchq", "nosuchx", "k")], channel_close(no_exchange("nosuchx"), 50, 20)),
    row("unbinding an absent queue", [unbind("nosuchq", "xd", "k")], "Queue.UnbindOk()"),
    row("unbinding from an absent exchange", [unbind("t", "nosuchx", "k")], "Queue.UnbindOk()"),
    row("unbinding with both absent", [unbind("nosuchq", "nosuchx", "k")], "Queue.UnbindOk()"),
    row("unbinding what is not bound", [unbind("t", "xd", "nosuchkey")], "Queue.UnbindOk()"),
    row("binding an exchange to an absent source", [bind_exchange("xf", "nosuchx")],
        channel_close(no_exchange("nosuchx"), 40, 30)),
    row("binding an absent exchange", [bind_exchange("nosuchx", "xf")],
        channel_close(no_exchange("nosuchx"), 40, 30)),
    row("binding exchanges with both absent", [bind_exchange("nosuchx", "nosuchy")],
        channel_close(no_exchange("nosuchy"), 40, 30)),
    row("unbinding exchanges that are not bound", [unbind_exchange("xf", "xd")], "Exchange.UnbindOk()"),
    row("unbinding an exchange from an absent one", [unbind_exchange("xf", "nosuchx")], "Exchange.UnbindOk()"),
    row("R19: no queue declared yet: consume", [consume("")],
        channel_close("NOT_FOUND - no previously declared queue", 60, 20)),
    row("R19: no queue declared yet: get", [get("")],
        channel_close("NOT_FOUND - no previously declared queue", 60, 70)),
    row("R19: no queue declared yet: bind", [bind("", "xd", "k")],
        channel_close("NOT_FOUND - no previously declared queue", 50, 20)),
    row("R19: no queue declared yet: purge", [purge("")],
        channel_close("NOT_FOUND - no previously declared queue", 50, 30)),
    row("R19: no queue declared yet: delete", [delete("")],
        channel_close("NOT_FOUND - no previously declared queue", 50, 40)),
    row("R19: no queue declared yet: unbind", [unbind("", "xd", "k")],
        channel_close("NOT_FOUND - no previously declared queue", 50, 50)),
    row("R19: a passive declare needs a name", [queue("", passive=True)], channel_close(no_queue(""), 50, 10)),
    row("R19: the last declared queue is gone", [queue("zz"), delete("zz"), consume("")],
        declared("zz"), "Queue.DeleteOk(message_count=0)", channel_close(no_queue("zz"), 60, 20)),
    row("R19: an empty name and key mean the last declared queue and its name",
        [queue("last"), bind("", "amq.direct"), publish("amq.direct", "last"), get("")],
        declared("last"), "Queue.BindOk()",
        "Basic.GetOk(delivery_tag=1, redelivered=False, exchange='amq.direct', routing_key='last', "
        "message_count=0) b'hi'"),
    row("R19: with a key of its own the name is not the key",
        [queue("last"), bind("", "amq.direct", "kk"), publish("amq.direct", "last"), publish("amq.direct", "kk"),
         get("", no_ack=True), get("", no_ack=True)],
        declared("last"), "Queue.BindOk()",
        "Basic.GetOk(delivery_tag=1, redelivered=False, exchange='amq.direct', routing_key='kk', "
        "message_count=0) b'hi'", "Basic.GetEmpty(cluster_id='')"),
    row("R19: with a queue named the empty key stays empty",
        [queue("last"), bind("last", "amq.direct"), publish("amq.direct", "last"), publish("amq.direct", "", b"b"),
         get("", no_ack=True), get("", no_ack=True)],
        declared("last"), "Queue.BindOk()",
        "Basic.GetOk(delivery_tag=1, redelivered=False, exchange='amq.direct', routing_key='', "
        "message_count=0) b'b'", "Basic.GetEmpty(cluster_id='')"),
]  # fmt: skip

NOWAIT: list[Row] = [
    passes("queue.declare", queue("n", nowait=True)),
    passes("queue.bind", bind("t", "xd", "k", nowait=True)),
    passes("exchange.declare", exchange("n", nowait=True)),
    passes("exchange.delete", delete_exchange("xd", nowait=True)),
    passes("queue.delete", delete("t", nowait=True)),
    passes("consume and cancel", consume("t", nowait=True), cancel(nowait=True)),
    passes("confirm.select", commands.Confirm.Select(nowait=True)),
    row("a refused queue.declare is answered", [queue("d", nowait=True)],
        channel_close("PRECONDITION_FAILED - inequivalent arg 'durable' for queue 'd' in vhost '/': "
                      "received 'false' but current is 'true'", 50, 10)),
    row("a passive declare of a missing queue is answered", [queue("nosuchq", passive=True, nowait=True)],
        channel_close(no_queue("nosuchq"), 50, 10)),
    row("a refused queue.bind is answered", [bind("nosuchq", "xd", "k", nowait=True)],
        channel_close(no_queue("nosuchq"), 50, 20)),
    row("a refused consume is answered", [consume("nosuchq", nowait=True)], channel_close(no_queue("nosuchq"), 60, 20)),
    row("R19: a server-named queue declared so is the last declared one",
        [queue("", nowait=True), publish("", "amq.gen-token-1"), get("")],
        "Basic.GetOk(delivery_tag=1, redelivered=False, exchange='', routing_key='amq.gen-token-1', "
        "message_count=0) b'hi'"),
]  # fmt: skip


@pytest.mark.parametrize(("sent", "answers"), [*REFUSED_ACCESS, *NOT_FOUND])
def test_a_request_with_a_name_is_answered(peer: Peer, sent: list[Sent], answers: list[str]) -> None:
    assert peer.send(*sent).receive() == answers


@pytest.mark.parametrize(("sent", "answers"), NOWAIT)
def test_nowait_is_answered_only_by_errors(peer: Peer, sent: list[Sent], answers: list[str]) -> None:
    assert peer.send(*sent).receive() == answers


LOCKED = (
    "RESOURCE_LOCKED - cannot obtain exclusive access to locked queue 'exq' in vhost '/'. It could be originally "
    "declared on another connection or the exclusive property value does not match that of the original declaration."
)
USES: list[Row] = [
    row("declare, exclusive", [queue("exq", exclusive=True)], channel_close(LOCKED, 50, 10)),
    row("declare, shared", [queue("exq")], channel_close(LOCKED, 50, 10)),
    row("declare passively", [queue("exq", passive=True)], channel_close(LOCKED, 50, 10)),
    row("consume", [consume("exq")], channel_close(LOCKED, 60, 20)),
    row("get", [get("exq")], channel_close(LOCKED, 60, 70)),
    row("purge", [purge("exq")], channel_close(LOCKED, 50, 30)),
    row("delete", [delete("exq")], channel_close(LOCKED, 50, 40)),
    row("bind", [bind("exq", "xd", "k")], channel_close(LOCKED, 50, 20)),
    row("unbind", [unbind("exq", "xd", "k")], channel_close(LOCKED, 50, 50)),
    passes("any connection may publish to it", publish("", "exq", mandatory=True)),
]  # fmt: skip


@pytest.mark.parametrize(("sent", "answers"), USES)
def test_r31_an_exclusive_queue_is_locked_for_other_connections(
    gateway: Gateway, peer: Peer, sent: list[Sent], answers: list[str]
) -> None:
    owner = gateway.connect()
    assert owner.send(queue("exq", exclusive=True)).receive() == [declared("exq")]
    assert peer.send(*sent).receive() == answers


@pytest.mark.parametrize("declare", [queue("me", exclusive=True), queue("me")], ids=["exclusive", "shared"])
def test_r31_redeclaring_an_exclusive_queue_requires_the_same_properties(
    peer: Peer, declare: commands.Queue.Declare
) -> None:
    peer.send(queue("me", exclusive=not declare.exclusive)).receive()
    assert peer.send(declare).receive() == [channel_close(LOCKED.replace("exq", "me"), 50, 10)]


def test_r31_every_channel_of_the_connection_may_use_it(peer: Peer) -> None:
    peer.send(queue("exq", exclusive=True), CLOSE_CHANNEL, commands.Channel.Open()).receive()
    peer.send(commands.Channel.Open(), queue("exq", exclusive=True), channel=2)
    assert peer.receive() == ["Channel.OpenOk(channel_id='') ch=2", f"{declared('exq')} ch=2"]


@pytest.mark.parametrize("durable", [False, True])
def test_r31_an_exclusive_queue_is_deleted_with_its_connection(gateway: Gateway, peer: Peer, durable: bool) -> None:
    owner = gateway.connect()
    owner.send(queue("exq", exclusive=True, durable=durable), publish("", "exq", delivery_mode=2)).receive()
    owner.lose()
    assert peer.send(queue("exq", passive=True)).receive() == [channel_close(no_queue("exq"), 50, 10)]


def test_the_name_of_a_deleted_exclusive_queue_may_be_declared_again(gateway: Gateway, peer: Peer) -> None:
    owner = gateway.connect()
    owner.send(queue("exq", exclusive=True)).receive()
    owner.send(CLOSE).receive()
    assert peer.send(queue("exq"), PROBE).receive() == [declared("exq"), ALIVE]


def test_arguments_of_a_queue_are_kept_across_connections(gateway: Gateway, peer: Peer) -> None:
    peer.send(queue_with("args", {"x-message-ttl": 100})).receive()
    other = gateway.connect()
    assert other.send(queue_with("args", {"x-message-ttl": 100})).receive() == [declared("args")]
