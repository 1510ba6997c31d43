"""Connections, channels and consumers over HTTP: views, closing, and counts."""

from urllib.parse import quote

import pytest
from pamqp import commands

from tests.management.console import Console
from tests.protocols.amqp.dialogue import Peer
from tests.protocols.amqp.frames import publish


@pytest.fixture
def peer(console: Console) -> Peer:
    """A client that consumes from a queue ``q`` with a prefetch of three."""
    peer = console.gateway.connect()
    peer.send(commands.Queue.Declare(queue="q"), commands.Basic.Qos(prefetch_count=3))
    peer.send(commands.Basic.Consume(queue="q", consumer_tag="c", arguments={"x-priority": 2}))
    peer.receive()
    return peer


def test_a_connection_is_shown(console: Console, peer: Peer) -> None:
    (shown,) = console.get("/connections")
    assert shown["name"] == peer.name
    assert {name: shown[name] for name in ("user", "vhost", "channels", "state", "protocol", "ssl", "timeout")} == {
        "user": "guest", "vhost": "/", "channels": 1, "state": "running", "protocol": "AMQP 0-9-1", "ssl": False,
        "timeout": 60,
    }  # fmt: skip
    single = console.get(f"/connections/{quote(peer.name, safe='')}")
    assert single == {name: "" if value is None else value for name, value in shown.items()}
    assert console.get("/vhosts/%2F/connections") == [shown]
    assert console.get("/connections/username/guest") == [
        {"name": peer.name, "vhost": "/", "user": "guest", "node": "gateway@here"}
    ]


def test_a_channel_is_shown(console: Console, peer: Peer) -> None:
    peer.send(publish("", "q"), publish("", "q"))
    peer.receive()
    (shown,) = console.get("/channels")
    assert shown["name"] == f"{peer.name} (1)"
    expected = {"number": 1, "prefetch_count": 3, "consumer_count": 1, "messages_unacknowledged": 2, "confirm": False}
    assert {name: shown[name] for name in expected} == expected
    stats = shown["message_stats"]
    assert (stats["publish"], stats["deliver"], stats["deliver_get"], stats["ack"]) == (2, 2, 2, 0)
    single = console.get(f"/channels/{quote(shown['name'], safe='')}")
    (consumer,) = single.pop("consumer_details")
    (published,), (delivered,) = single.pop("publishes"), single.pop("deliveries")
    assert single == shown
    assert (published["exchange"]["name"], delivered["queue"]["name"]) == ("", "q")
    assert console.get(f"/connections/{quote(peer.name, safe='')}/channels") == [shown]
    assert consumer["consumer_tag"] == "c"


def test_a_consumer_is_shown(console: Console, peer: Peer) -> None:
    (shown,) = console.get("/consumers")
    assert shown == {
        "ack_required": True,
        "active": True,
        "activity_status": "up",
        "arguments": {"x-priority": 2},
        "channel_details": {
            "connection_name": peer.name,
            "name": f"{peer.name} (1)",
            "node": "gateway@here",
            "number": 1,
            "peer_host": "127.0.0.1",
            "peer_port": int(peer.name.partition(" ")[0].rpartition(":")[2]),
            "user": "guest",
        },
        "consumer_tag": "c",
        "exclusive": False,
        "prefetch_count": 3,
        "queue": {"name": "q", "vhost": "/"},
    }
    assert console.get("/queues/%2F/q")["consumer_details"] == [shown]


def test_a_connection_is_closed_with_a_reason(console: Console, peer: Peer) -> None:
    path = f"/connections/{quote(peer.name, safe='')}"
    assert console.ask("DELETE", path, headers={"X-Reason": "maintenance"}).status == 204
    assert peer.receive() == ["Connection.Close 320 CONNECTION_FORCED - maintenance (0,0)"]


def test_a_user_sees_and_closes_only_its_own_connections(console: Console, peer: Peer) -> None:
    console.add_user("other", "management")
    path = f"/connections/{quote(peer.name, safe='')}"
    assert console.get("/connections", user="other") == []
    assert console.ask("GET", path, user="other").status == 401
    assert console.ask("DELETE", path, user="other").status == 401
    console.add_user("watcher", "monitoring")
    assert len(console.get("/connections", user="watcher")) == 1
    assert console.ask("DELETE", path, user="watcher").status == 401


def test_messages_are_counted_for_the_queue_the_channel_and_the_broker(console: Console, peer: Peer) -> None:
    peer.send(publish("", "q"), publish("", "q"), publish("", "nowhere"), commands.Basic.Ack(1, False))
    peer.send(commands.Basic.Nack(2, False, True))
    peer.receive()
    stats = console.get("/queues/%2F/q")["message_stats"]
    assert (stats["publish"], stats["deliver"], stats["redeliver"], stats["ack"]) == (2, 3, 1, 1)
    exchange = console.get("/exchanges/%2F/amq.default")["message_stats"]
    assert (exchange["publish_in"], exchange["publish_out"]) == (3, 2)
    overall = console.get("/overview")["message_stats"]
    assert (overall["publish"], overall["drop_unroutable"], overall["ack"]) == (3, 1, 1)


def test_gets_are_counted_separately(console: Console) -> None:
    peer = console.gateway.connect()
    peer.send(commands.Queue.Declare(queue="q"), publish("", "q"), publish("", "q"))
    for no_ack in (True, False, False):
        peer.send(commands.Basic.Get(queue="q", no_ack=no_ack))
    peer.receive()
    for stats in (console.get("/queues/%2F/q")["message_stats"], console.get("/channels")[0]["message_stats"]):
        assert (stats["get"], stats["get_no_ack"], stats["get_empty"], stats["deliver_get"]) == (1, 1, 1, 2)
        assert stats["ack"] == 0


def test_counts_are_kept_after_their_subject_is_deleted(console: Console, peer: Peer) -> None:
    peer.send(publish("", "q"))
    peer.receive()
    console.delete("/queues/%2F/q")
    assert console.get("/overview")["message_stats"]["deliver"] == 1


def test_rates_are_computed_between_two_samples(console: Console, peer: Peer) -> None:
    list(console.statistics.sample())
    peer.send(*[publish("", "q") for _ in range(10)])
    peer.receive()
    console.clock.advance(5)
    list(console.statistics.sample())
    for path in ("/queues/%2F/q", "/overview", "/vhosts/%2F"):
        assert console.get(path)["message_stats"]["publish_details"] == {"rate": 2.0}
    console.clock.advance(5)
    list(console.statistics.sample())
    assert console.get("/queues/%2F/q")["message_stats"]["publish_details"] == {"rate": 0.0}


def test_the_overview_counts_entities(console: Console, peer: Peer) -> None:
    overview = console.get("/overview")
    assert overview["object_totals"] == {
        "channels": 1, "connections": 1, "consumers": 1, "exchanges": 7, "queues": 1,
    }  # fmt: skip
    assert [(each["protocol"], each["port"]) for each in overview["listeners"]] == [("amqp", 5672), ("http", 15672)]
    churn = overview["churn_rates"]
    assert (churn["connection_created"], churn["channel_created"], churn["queue_created"]) == (1, 1, 1)
    assert "listeners" not in overview_of_manager(console)


def overview_of_manager(console: Console) -> dict[str, object]:
    """Return the overview of a user without the tag monitoring."""
    console.add_user("manager", "management")
    overview: dict[str, object] = console.get("/overview", user="manager")
    return overview
