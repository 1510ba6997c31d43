"""Rates and samples of all counts over HTTP."""

from collections.abc import Callable
from random import Random
from urllib.parse import quote

import pytest
from pamqp import commands

from gateway.management.statistics import counts, histories, queue_samples
from tests.management.console import Console
from tests.protocols.amqp.dialogue import Peer
from tests.protocols.amqp.frames import publish

SPANS = "&".join(f"{family}_age=20&{family}_incr=5" for family in ("lengths", "msg_rates", "data_rates", "node_stats"))


@pytest.fixture
def peer(console: Console) -> Peer:
    """A client that published ten messages and got three of them between two samples."""
    peer = console.gateway.connect()
    peer.send(commands.Queue.Declare(queue="q"), commands.Confirm.Select())
    peer.receive()
    take_sample(console)
    peer.send(*[publish("", "q") for _ in range(10)], publish("", "nowhere"))
    peer.send(*[commands.Basic.Get(queue="q", no_ack=True) for _ in range(3)])
    peer.receive()
    take_sample(console)
    return peer


def take_sample(console: Console) -> None:
    console.clock.advance(5)
    list(console.statistics.sample())


WHERE = [
    #            path, field in the response, count, rate
    ("/queues/%2F/q", "message_stats.publish", 10, 2.0),
    ("/queues/%2F/q", "message_stats.get_no_ack", 3, 0.6),
    ("/queues/%2F/q", "messages", 7, 1.4),
    ("/exchanges/%2F/amq.default", "message_stats.publish_in", 11, 2.2),
    ("/vhosts/%2F", "messages_ready", 7, 1.4),
    ("/vhosts/%2F", "message_stats.confirm", 11, 2.2),
    ("/overview", "message_stats.drop_unroutable", 1, 0.2),
    ("/overview", "queue_totals.messages", 7, 1.4),
    ("/channels/{channel}", "message_stats.publish", 11, 2.2),
    ("/channels/{channel}", "message_stats.confirm", 11, 2.2),
    ("/channels/{channel}", "message_stats.deliver_get", 3, 0.6),
    ("/channels/{channel}", "message_stats.drop_unroutable", 1, 0.2),
]


@pytest.mark.parametrize(("path", "place", "number", "rate"), WHERE)
def test_a_count_has_a_rate_and_samples(
    console: Console, peer: Peer, path: str, place: str, number: int, rate: float
) -> None:
    path = path.format(channel=quote(f"{peer.name} (1)", safe=""))
    *parents, last = place.split(".")
    plain, sampled = console.get(path), console.get(f"{path}?{SPANS}")
    for parent in parents:
        plain, sampled = plain[parent], sampled[parent]
    assert (plain[last], plain[f"{last}_details"]) == (number, {"rate": rate})
    details = sampled[f"{last}_details"]
    assert sorted(details) == ["avg", "avg_rate", "rate", "samples"]
    assert len(details["samples"]) == 5
    assert details["samples"][0]["sample"] == number
    assert {each["timestamp"] % 5000 for each in details["samples"]} == {0}


SAMPLED = [
    ("/overview", "churn_rates", "queue_created"),
    ("/vhosts/%2F", None, "send_oct"),
    ("/connections", None, "recv_oct"),
    ("/nodes", None, "disk_free"),
    ("/nodes", None, "connection_created"),
]


@pytest.mark.parametrize(("path", "parent", "name"), SAMPLED)
def test_all_subjects_are_sampled(console: Console, peer: Peer, path: str, parent: str | None, name: str) -> None:
    found = console.get(f"{path}?{SPANS}")
    found = found[0] if isinstance(found, list) else found
    assert len((found[parent] if parent else found)[f"{name}_details"]["samples"]) == 5


def test_octets_of_a_virtual_host_include_closed_connections(console: Console, peer: Peer) -> None:
    console.gateway.connect().send(publish("", "nowhere", b"x" * 100))
    take_sample(console)
    before = console.get("/vhosts/%2F")
    both = [connection["recv_oct"] for connection in console.get("/connections")]
    assert (before["recv_oct"], all(both), len(both)) == (sum(both), True, 2)
    peer.lose()
    take_sample(console)
    assert console.get("/vhosts/%2F")["recv_oct"] == before["recv_oct"]


def test_an_invalid_span_is_refused(console: Console) -> None:
    answer = console.ask("GET", "/overview?lengths_age=60&lengths_incr=0")
    reason = "Invalid range parameters: age 60, incr 0"
    assert answer.result == (400, {"error": "invalid_range_parameters", "reason": reason})


def test_samples_of_deleted_subjects_are_deleted(console: Console, peer: Peer) -> None:
    console.delete("/queues/%2F/q")
    take_sample(console)
    console.put("/queues/%2F/q", {})
    take_sample(console)
    assert "message_stats" not in console.get("/queues/%2F/q")
    assert console.get("/queues/%2F/q")["messages_details"] == {"rate": 0.0}


def test_rates_can_be_reset(console: Console, peer: Peer) -> None:
    console.delete("/reset/gateway%40here")
    stats = console.get("/queues/%2F/q")["message_stats"]
    assert (stats["publish"], stats["publish_details"]) == (10, {"rate": 0.0})
    assert console.ask("DELETE", "/reset/elsewhere").status == 404


def test_a_queue_is_idle_after_a_sample_without_changes(console: Console, peer: Peer) -> None:
    assert "idle_since" not in console.get("/queues/%2F/q")
    take_sample(console)
    assert console.get("/queues/%2F/q")["idle_since"].endswith("+00:00")
    peer.send(publish("", "q"))
    peer.receive()
    take_sample(console)
    assert "idle_since" not in console.get("/queues/%2F/q")


@pytest.mark.parametrize("path", ["/overview", "/queues/%2F/q", "/vhosts/%2F"])
def test_idle_queues_take_no_samples_from_active_ones(
    console: Console, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setattr(histories, "_SAMPLE_BUDGET", 200)
    for number in range(500):
        console.gateway.vhost.declare_queue(f"idle-{number}")
    peer = console.gateway.connect()
    peer.send(commands.Queue.Declare(queue="q")).receive()
    for _ in range(10):
        take_sample(console)
        peer.send(*[publish("", "q") for _ in range(10)])
        peer.receive()
    take_sample(console)
    details = console.get(f"{path}?msg_rates_age=40&msg_rates_incr=5")["message_stats"]["publish_details"]
    assert [each["sample"] for each in details["samples"]] == [100, 90, 80, 70, 60, 50, 40, 30, 20]
    assert details["rate"] == 2.0


def test_queues_and_connections_that_have_not_changed_are_not_read(
    console: Console, peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(100):
        console.gateway.vhost.declare_queue(f"idle-{number}")
    for _ in range(3):
        take_sample(console)
    read: list[str] = []
    monkeypatch.setattr(
        queue_samples, "queue_counts", lambda queue: read.append(queue.name) or counts.queue_counts(queue)
    )
    monkeypatch.setattr(Peer, "channels", lambda peer: read.append(peer.name) or [])
    take_sample(console)
    assert read == []
    peer.send(publish("", "q"))
    peer.receive()
    take_sample(console)
    assert sorted(read) == sorted(["q", peer.name])


def test_a_rate_ends_with_the_next_sample_and_a_pause_does_not_lower_a_later_one(console: Console, peer: Peer) -> None:
    assert console.get("/queues/%2F/q")["message_stats"]["publish_details"]["rate"] == 2.0
    for _ in range(4):
        take_sample(console)
        assert console.get("/queues/%2F/q")["message_stats"]["publish_details"]["rate"] == 0.0
    peer.send(*[publish("", "q") for _ in range(10)])
    peer.receive()
    take_sample(console)
    assert console.get("/queues/%2F/q")["message_stats"]["publish_details"]["rate"] == pytest.approx(2.0, rel=0.01)


@pytest.mark.parametrize("seed", range(20))
def test_sums_over_queues_are_those_of_all_of_them(console: Console, seed: int) -> None:
    chance = Random(seed)
    peer = console.gateway.connect()
    names = ["a", "b", "c"]

    def declare() -> None:
        peer.send(commands.Queue.Declare(queue=chance.choice(names)))

    def delete() -> None:
        peer.send(commands.Queue.Delete(queue=chance.choice(names)))

    def send() -> None:
        peer.send(*[publish("", chance.choice(names)) for _ in range(chance.randrange(5))])

    def purge_all() -> None:
        for name in names:
            if name in console.gateway.vhost.queue_by_name:
                peer.send(commands.Queue.Purge(queue=name))

    def forget() -> None:
        console.statistics.forget()

    actions: list[Callable[[], None]] = [declare, delete, send, send, purge_all, forget]
    for _ in range(60):
        chance.choice(actions)()
        peer.receive()
        if chance.random() < 0.5:
            take_sample(console)
            sums = console.statistics.sampled(("vhost", "/"))
            expected = counts.vhost_counts(console.gateway.vhost)
            assert {name: sums[name] for name in expected} == expected


def test_a_route_to_a_queue_that_is_declared_again_has_no_rate(console: Console) -> None:
    peer = console.gateway.connect()
    for _ in range(2):
        peer.send(commands.Queue.Declare(queue="q"), commands.Queue.Bind(queue="q", exchange="amq.fanout"))
        peer.receive()
        for _ in range(2):
            peer.send(*[publish("amq.fanout", "") for _ in range(10)])
            peer.receive()
            take_sample(console)
        assert console.statistics.trend(("route", "/", "amq.fanout", "q"), {}).rate("publish") == 2.0
        peer.send(commands.Queue.Delete(queue="q"))
        peer.receive()
    peer.send(commands.Queue.Declare(queue="q"), commands.Queue.Bind(queue="q", exchange="amq.fanout"))
    peer.receive()
    for _ in range(15):
        take_sample(console)
    assert console.statistics.trend(("route", "/", "amq.fanout", "q"), {}).rate("publish") == 0.0


def test_the_broker_keeps_its_samples_however_many_subjects_change(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(histories, "_SAMPLE_BUDGET", 10)
    peer = console.gateway.connect()
    peer.send(commands.Queue.Declare(queue="q"))
    for _ in range(40):
        peer.send(publish("", "q"))
        peer.receive()
        take_sample(console)
    details = console.get("/overview?msg_rates_age=150&msg_rates_incr=5")["message_stats"]["publish_details"]
    assert [each["sample"] for each in details["samples"]] == list(range(40, 9, -1))


def test_a_reset_during_a_sample_ends_it(console: Console, peer: Peer) -> None:
    for number in range(600):
        console.gateway.vhost.declare_queue(f"many-{number}")
    sampling = console.statistics.sample()
    next(sampling)
    console.statistics.forget()
    list(sampling)
    assert console.statistics.sampled(("vhost", "/")) == {}
    take_sample(console)
    assert console.statistics.sampled(("vhost", "/"))["messages"] == 7


def test_after_a_reset_a_queue_without_changes_is_idle(console: Console, peer: Peer) -> None:
    take_sample(console)
    console.statistics.forget()
    for _ in range(3):
        take_sample(console)
    assert "idle_since" in console.get("/queues/%2F/q")
