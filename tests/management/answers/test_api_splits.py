"""Traffic of queues, exchanges and channels, split by the other end."""

from typing import Any
from urllib.parse import quote

import pytest
from pamqp import commands

from tests.management.console import Console
from tests.protocols.amqp.dialogue import Peer
from tests.protocols.amqp.frames import publish


@pytest.fixture
def peer(console: Console) -> Peer:
    """A client that publishes to two exchanges on channel 1 and consumes from two queues on channel 2."""
    peer = console.gateway.connect()
    peer.send(commands.Channel.Open(), channel=2)
    for queue in ("q", "other"):
        peer.send(commands.Queue.Declare(queue=queue))
        peer.send(commands.Queue.Bind(queue=queue, exchange="amq.fanout", routing_key=""))
    peer.send(commands.Basic.Consume(queue="q", consumer_tag="c"), channel=2)
    peer.receive()
    return peer


def channel(console: Console, peer: Peer, number: int) -> Any:
    return console.get(f"/channels/{quote(f'{peer.name} ({number})', safe='')}")


def counts(entries: Any, end: str, *names: str) -> Any:
    """Return the counts of a split by the name of the other end."""
    key = "number" if end == "channel_details" else "name"
    return {entry[end][key]: tuple(entry["stats"][name] for name in names) for entry in entries}


def test_publishes_are_split_by_exchange_and_channel(console: Console, peer: Peer) -> None:
    peer.send(publish("", "q"), publish("", "q"), publish("amq.fanout", ""), publish("", "nowhere"))
    peer.send(publish("", "nowhere", mandatory=True))
    peer.receive()
    names = ("publish", "drop_unroutable", "return_unroutable")
    shown = channel(console, peer, 1)
    assert counts(shown["publishes"], "exchange", *names) == {"": (4, 1, 1), "amq.fanout": (1, 0, 0)}
    assert (shown["deliveries"], channel(console, peer, 2)["publishes"]) == ([], [])
    incoming = console.get("/exchanges/%2F/amq.fanout")["incoming"]
    assert counts(incoming, "channel_details", *names) == {1: (1, 0, 0)}
    assert incoming[0]["channel_details"]["connection_name"] == peer.name


def test_messages_are_split_by_exchange_and_queue(console: Console, peer: Peer) -> None:
    peer.send(publish("", "q"), publish("", "q"), publish("amq.fanout", "x"), publish("amq.fanout", "y"))
    peer.send(commands.Queue.Declare(queue="third"))  # invalidates cached routes
    peer.send(publish("amq.fanout", "x"), publish("amq.headers", "x"))
    peer.receive()
    exchange = console.get("/exchanges/%2F/amq.fanout")
    assert counts(exchange["outgoing"], "queue", "publish") == {"q": (3,), "other": (3,)}
    assert (exchange["message_stats"]["publish_in"], exchange["message_stats"]["publish_out"]) == (3, 6)
    incoming = console.get("/queues/%2F/q")["incoming"]
    assert counts(incoming, "exchange", "publish") == {"": (2,), "amq.fanout": (3,)}
    assert console.get("/exchanges/%2F/amq.headers")["message_stats"]["publish_in"] == 1


def test_a_deleted_queue_is_only_in_the_sums(console: Console, peer: Peer) -> None:
    peer.send(publish("amq.fanout", "x"))
    peer.receive()
    console.delete("/queues/%2F/other")
    exchange = console.get("/exchanges/%2F/amq.fanout")
    assert counts(exchange["outgoing"], "queue", "publish") == {"q": (1,)}
    assert exchange["message_stats"]["publish_out"] == 2


def test_deliveries_are_split_by_queue_and_channel(console: Console, peer: Peer) -> None:
    peer.send(*[publish("amq.fanout", "") for _ in range(4)])
    peer.send(commands.Basic.Get(queue="other"), channel=2)
    peer.send(commands.Basic.Get(queue="other", no_ack=True), channel=1)
    peer.send(commands.Basic.Ack(3, True), channel=2)
    peer.receive()
    names = ("deliver", "get", "get_no_ack", "deliver_get", "ack")
    shown = channel(console, peer, 2)
    assert counts(shown["deliveries"], "queue", *names) == {"q": (4, 0, 0, 4, 3), "other": (0, 1, 0, 1, 0)}
    assert [shown["message_stats"][name] for name in names] == [4, 1, 0, 5, 3]
    deliveries = console.get("/queues/%2F/other")["deliveries"]
    assert counts(deliveries, "channel_details", *names) == {1: (0, 0, 1, 1, 0), 2: (0, 1, 0, 1, 0)}
    peer.send(commands.Basic.Ack(0, True), channel=2)
    peer.receive()
    assert counts(channel(console, peer, 2)["deliveries"], "queue", "ack") == {"q": (4,), "other": (1,)}


def test_the_sums_of_a_channel_include_deleted_queues(console: Console, peer: Peer) -> None:
    peer.send(publish("", "q"))
    peer.send(commands.Basic.Ack(1), channel=2)
    peer.receive()
    console.delete("/queues/%2F/q")
    shown = channel(console, peer, 2)
    assert shown["deliveries"] == []
    assert (shown["message_stats"]["deliver"], shown["message_stats"]["ack"]) == (1, 1)


def test_splits_have_rates(console: Console, peer: Peer) -> None:
    list(console.statistics.sample())
    peer.send(publish("", "q"))
    peer.receive()
    list(console.statistics.sample())
    console.clock.advance(5)
    peer.send(*[publish("", "q") for _ in range(5)])
    peer.receive()
    list(console.statistics.sample())
    queue = console.get("/queues/%2F/q?msg_rates_age=10&msg_rates_incr=5")
    for split, name in (("incoming", "publish"), ("deliveries", "deliver")):
        details = queue[split][0]["stats"][f"{name}_details"]
        assert details["samples"][0]["sample"] == 6
    (published,) = console.get("/exchanges/%2F/amq.default")["incoming"]
    assert published["stats"]["publish_details"] == {"rate": 1.0}


def test_confirms_are_split_only_with_a_single_exchange(console: Console, peer: Peer) -> None:
    peer.send(commands.Confirm.Select(), publish("", "q"))
    peer.receive()
    (split,) = channel(console, peer, 1)["publishes"]
    assert split["stats"]["confirm"] == 1
    peer.send(publish("amq.fanout", "q"))
    peer.receive()
    assert all("confirm" not in each["stats"] for each in channel(console, peer, 1)["publishes"])
    assert channel(console, peer, 1)["message_stats"]["confirm"] == 2
