"""403 by permission: configure, write, read and topic permissions of a user (R4)."""

import pytest
from pamqp import commands

from gateway.kernel.journal.records.access import TopicPermissionRecord
from tests.conformance.amqp.tables import (
    ALIVE,
    PROBE,
    Row,
    bind,
    bind_exchange,
    channel_close,
    connection_close,
    consume,
    declared,
    delete,
    delete_exchange,
    exchange,
    get,
    purge,
    queue,
    queue_with,
    row,
    unbind,
    unbind_exchange,
)
from tests.protocols.amqp.dialogue import Gateway, Peer
from tests.protocols.amqp.frames import Sent, publish


def refused(kind: str, name: str, class_id: int, method_id: int) -> str:
    text = f"ACCESS_REFUSED - access to {kind} '{name}' in vhost '/' refused for user 'limited'"
    return channel_close(text, class_id, method_id)


def absent(kind: str, name: str, class_id: int, method_id: int) -> str:
    return channel_close(f"NOT_FOUND - no {kind} '{name}' in vhost '/'", class_id, method_id)


#: For a user with ``^mine`` in all three patterns.
LIMITED: list[Row] = [
    row("declare a new queue", [queue("other")], refused("queue", "other", 50, 10)),
    row("declare an existing queue", [queue("t")], refused("queue", "t", 50, 10)),
    row("a passive declare requires no permission", [queue("t", passive=True)], declared("t")),
    row("a passive declare of a missing queue", [queue("tnosuch", passive=True)], absent("queue", "tnosuch", 50, 10)),
    row("a server-named queue", [queue("")], refused("queue", "amq.gen-token-1", 50, 10)),
    row("a dead-letter exchange that is not writable",
        [queue_with("mine", {"x-dead-letter-exchange": "amq.direct"})], refused("exchange", "amq.direct", 50, 10)),
    row("delete a queue", [delete("t")], refused("queue", "t", 50, 40)),
    row("delete an absent queue", [delete("tnosuch")], refused("queue", "tnosuch", 50, 40)),
    row("purge", [purge("t")], refused("queue", "t", 50, 30)),
    row("bind: write on the queue", [bind("t", "mine", "k")], refused("queue", "t", 50, 20)),
    row("bind: read on the exchange", [bind("mine", "xf", "k")], refused("exchange", "xf", 50, 20)),
    row("bind an absent queue", [bind("tnosuch", "mine", "k")], refused("queue", "tnosuch", 50, 20)),
    row("unbind: write on the queue", [unbind("t", "mine", "k")], refused("queue", "t", 50, 50)),
    row("consume", [consume("t")], refused("queue", "t", 60, 20)),
    row("consume from a missing queue", [consume("tnosuch")], refused("queue", "tnosuch", 60, 20)),
    row("get", [get("t")], refused("queue", "t", 60, 70)),
    row("declare an exchange", [exchange("other")], refused("exchange", "other", 40, 10)),
    row("a passive exchange.declare requires no permission", [exchange("xf", passive=True)], "Exchange.DeclareOk()"),
    row("a passive exchange.declare", [exchange("tnosuch", passive=True)], absent("exchange", "tnosuch", 40, 10)),
    row("R24: an alternate exchange that is not writable",
        [exchange("minex", arguments={"alternate-exchange": "xf"})], refused("exchange", "xf", 40, 10)),
    row("delete an exchange", [delete_exchange("xf")], refused("exchange", "xf", 40, 20)),
    row("bind an exchange that is not writable", [bind_exchange("xf", "mine")], refused("exchange", "xf", 40, 30)),
    row("bind from one that is not readable", [bind_exchange("mine", "xf")], refused("exchange", "xf", 40, 30)),
    row("publish", [publish("xf", "k")], refused("exchange", "xf", 60, 40)),
    row("publish to an absent exchange", [publish("nosuch", "k")], refused("exchange", "nosuch", 60, 40)),
    row("publish to the default exchange", [publish("", "t")], refused("exchange", "amq.default", 60, 40)),
    row("permission before user-id", [publish("", "t", user_id="x")], refused("exchange", "amq.default", 60, 40)),
    row("permission before a reserved exchange name", [exchange("amq.zzz")], refused("exchange", "amq.zzz", 40, 10)),
    row("a reserved queue name before permission", [queue("amq.zzz")],
        channel_close("ACCESS_REFUSED - queue name 'amq.zzz' contains reserved prefix 'amq.*'", 50, 10)),
    row("an unknown exchange type before permission", [exchange("other", "blah")],
        connection_close("COMMAND_INVALID - unknown exchange type 'blah'", 40, 10)),
    row("the user's own queue", [queue("mine"), queue("mine", passive=True)], declared("mine"), declared("mine")),
]  # fmt: skip


@pytest.fixture
def limited(gateway: Gateway) -> Peer:
    gateway.add_user("limited", "secret", "/", ("^mine", "^mine", "^mine"))
    return gateway.connect(user="limited", password="secret")


@pytest.mark.parametrize(("sent", "answers"), LIMITED)
def test_operations_without_permission_are_refused(limited: Peer, sent: list[Sent], answers: list[str]) -> None:
    assert limited.send(*sent).receive() == answers


def topic_refused(class_id: int, method_id: int) -> str:
    text = "ACCESS_REFUSED - access to topic 'bad' in exchange 'amq.topic' in vhost '/' refused for user 'topical'"
    return channel_close(text, class_id, method_id)


def topics_refused(class_id: int, method_id: int) -> str:
    text = "ACCESS_REFUSED - access to every topic in exchange 'amq.topic' in vhost '/' refused for user 'topical'"
    return channel_close(text, class_id, method_id)


TO_TOPICS = {"x-dead-letter-exchange": "amq.topic"}

#: For a user whose keys of ``amq.topic`` begin with ``ok``.
TOPICS: list[Row] = [
    row("publish with another key", [publish("amq.topic", "bad")], topic_refused(60, 40)),
    row("publish with a good key", [publish("amq.topic", "ok"), PROBE], ALIVE),
    row("bind with another key", [bind("t", "amq.topic", "bad")], topic_refused(50, 20)),
    row("bind with a good key", [bind("t", "amq.topic", "ok")], "Queue.BindOk()"),
    row("unbind with another key", [unbind("t", "amq.topic", "bad")], topic_refused(50, 50)),
    row("bind an exchange with another key", [bind_exchange("xf", "amq.topic", "bad")], topic_refused(40, 30)),
    row("only topic exchanges are restricted", [publish("xf", "bad"), PROBE], ALIVE),
    row(
        "publish with another key in CC",
        [publish("amq.topic", "ok", headers={"CC": ["ok.2", "bad"]})],
        topic_refused(60, 40),
    ),
    row(
        "publish with another key in BCC", [publish("amq.topic", "ok", headers={"BCC": ["bad"]})], topic_refused(60, 40)
    ),
    row(
        "publish with good keys in both",
        [publish("amq.topic", "ok", headers={"CC": ["ok.2"], "BCC": ["ok.3"]}), PROBE],
        ALIVE,
    ),
    row(
        "a dead-letter key", [queue_with("q", {**TO_TOPICS, "x-dead-letter-routing-key": "bad"})], topic_refused(50, 10)
    ),
    row("a good dead-letter key", [queue_with("q", {**TO_TOPICS, "x-dead-letter-routing-key": "ok"})], declared("q")),
    row("dead letters under any key", [queue_with("q", TO_TOPICS)], topics_refused(50, 10)),
    row(
        "dead letters to an exchange without topics", [queue_with("q", {"x-dead-letter-exchange": "xf"})], declared("q")
    ),
    row(
        "an alternate exchange", [exchange("x", arguments={"alternate-exchange": "amq.topic"})], topics_refused(40, 10)
    ),
    row("another exchange bound into it", [bind_exchange("amq.topic", "xf", "ok")], topics_refused(40, 30)),
    row("unbinding it", [unbind_exchange("amq.topic", "xf", "ok")], "Exchange.UnbindOk()"),
]


@pytest.mark.parametrize(("sent", "answers"), TOPICS)
def test_topic_permissions_restrict_routing_keys(gateway: Gateway, sent: list[Sent], answers: list[str]) -> None:
    gateway.add_user("topical", "secret", "/")
    gateway.broker.directory.put_topic_permission(TopicPermissionRecord("/", "topical", "amq.topic", "^ok", "^ok"))
    assert gateway.connect(user="topical", password="secret").send(*sent).receive() == answers


@pytest.mark.parametrize("pattern", [".*", "^.*$"])
def test_a_topic_permission_for_everything_restricts_nothing(gateway: Gateway, pattern: str) -> None:
    gateway.add_user("topical", "secret", "/")
    gateway.broker.directory.put_topic_permission(TopicPermissionRecord("/", "topical", "amq.topic", pattern, "^ok"))
    peer = gateway.connect(user="topical", password="secret")
    assert peer.send(queue_with("q", TO_TOPICS), bind_exchange("amq.topic", "xf", "k")).receive() == [
        declared("q"), "Exchange.BindOk()",
    ]  # fmt: skip


def test_a_revoked_permission_is_missing_at_the_next_publish(gateway: Gateway) -> None:
    gateway.add_user("former", "secret", "/")
    peer = gateway.connect(user="former", password="secret")
    assert peer.send(publish("", "t"), PROBE).receive() == [ALIVE]
    gateway.add_user("former", "secret", "/", ("", "", ""))
    [answer] = peer.send(publish("", "t")).receive()
    assert answer.startswith("Channel.Close 403 ACCESS_REFUSED - access to exchange 'amq.default'")


def test_the_next_request_of_a_user_whose_permissions_were_revoked_is_refused(gateway: Gateway) -> None:
    gateway.add_user("former", "secret", "/")
    peer = gateway.connect(user="former", password="secret")
    gateway.broker.directory.remove_permission("/", "former")
    [answer] = peer.send(commands.Basic.Get(0, "t")).receive()
    assert answer.startswith("Channel.Close 403 ACCESS_REFUSED - ")
