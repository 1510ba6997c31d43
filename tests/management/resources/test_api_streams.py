"""Streams over HTTP: views, consumers, stored offsets, super streams."""

from typing import Any

import pytest
from pamqp import commands

from gateway.testing import FakeClock
from tests.management.console import Console
from tests.protocols.amqp.dialogue import Gateway, Peer
from tests.protocols.amqp.frames import publish

STREAM = {"durable": True, "arguments": {"x-queue-type": "stream", "x-max-age": "7D"}}
TRACKING = "/stream/%2F/s/tracking"


@pytest.fixture
def console() -> Console:
    """A console of a broker with a stream ``s`` of three messages."""
    console = Console(Gateway(clock=FakeClock()))
    console.put("/queues/%2F/s", STREAM)
    peer = console.gateway.connect()
    peer.send(*(publish("", "s", b"%d" % number) for number in range(3))).receive()
    pass_time(console)
    return console


def pass_time(console: Console, seconds: float = 0) -> None:
    clock = console.gateway.broker.clock
    assert isinstance(clock, FakeClock)
    for _ in range(3):
        console.gateway.settle()
        clock.advance(seconds)


def reader(console: Console, prefetch: int = 2, **arguments: Any) -> Peer:
    peer = console.gateway.connect()
    named = {f"x-stream-{name}": value for name, value in arguments.items()}
    peer.send(commands.Basic.Qos(0, prefetch), commands.Basic.Consume(0, "s", "c", arguments=named)).receive()
    pass_time(console)
    return peer


# Streams as queues


def test_streams_are_listed_with_the_queues(console: Console) -> None:
    (queue,) = console.get("/queues")
    assert (queue["type"], queue["durable"], queue["auto_delete"], queue["exclusive"]) == ("stream", True, False, False)
    assert queue["arguments"] == STREAM["arguments"]
    assert (queue["messages"], queue["messages_ready"], queue["messages_unacknowledged"]) == (3, 3, 0)
    assert (queue["first_offset"], queue["next_offset"], queue["committed_offset"]) == (0, 3, 2)
    assert (queue["members"], queue["online"], queue["leader"]) == (["gateway@here"], ["gateway@here"], "gateway@here")
    assert (queue["readers"], queue["segments"]) == ({"gateway@here": 0}, 1)
    assert queue["message_bytes"] == queue["message_bytes_persistent"] > 3
    assert queue["message_stats"]["publish"] == 3


def test_unacknowledged_messages_are_still_in_the_stream(console: Console) -> None:
    reader(console, offset="first")
    queue = console.get("/queues/%2F/s")
    assert (queue["messages"], queue["messages_ready"], queue["messages_unacknowledged"]) == (3, 3, 0)
    assert (queue["consumers"], queue["readers"]) == (1, {"gateway@here": 1})
    assert queue["consumer_details"][0]["arguments"] == {"x-stream-offset": "first"}


def test_totals_count_each_message_once(console: Console) -> None:
    reader(console, offset="first")
    totals = console.get("/overview")["queue_totals"]
    assert (totals["messages"], totals["messages_ready"], totals["messages_unacknowledged"]) == (3, 3, 0)


@pytest.mark.parametrize(
    ("method", "path", "fields", "reason"),
    [
        ("POST", "/queues/%2F/s/get", {"count": 1, "ackmode": "ack_requeue_true", "encoding": "auto"}, "basic.get"),
        ("DELETE", "/queues/%2F/s/contents", None, "queue.purge"),
    ],
)
def test_operations_unsupported_by_streams_are_refused(
    console: Console, method: str, path: str, fields: object, reason: str
) -> None:
    words = f"{reason} not supported by stream queues queue 's' in vhost '/'"
    assert console.ask(method, path, fields).result == (400, {"error": "bad_request", "reason": words})


def test_a_stream_is_declared_and_deleted(console: Console) -> None:
    wrong = console.ask("PUT", "/queues/%2F/t", {**STREAM, "auto_delete": True})
    assert wrong.json["reason"] == "invalid property 'auto-delete' for queue 't' in vhost '/'"
    console.delete("/queues/%2F/s")
    assert console.get("/queues") == []


# Consumers


def test_stream_consumers_are_listed_with_their_offsets(console: Console) -> None:
    reader(console, offset="first", consumer="me")
    for path in ("/stream/consumers", "/stream/consumers/%2F"):
        (consumer,) = console.get(path)
        assert (consumer["offset"], consumer["offset_lag"], consumer["credits"], consumer["consumed"]) == (1, 1, 0, 2)
        assert (consumer["subscription_id"], consumer["properties"]) == ("c", {"name": "me"})
        assert consumer["queue"] == {"name": "s", "vhost": "/"}


def test_consumers_of_other_queues_are_not_listed(console: Console) -> None:
    console.put("/queues/%2F/q", {})
    console.gateway.connect().send(commands.Basic.Consume(0, "q")).receive()
    assert console.get("/stream/consumers") == []


@pytest.mark.parametrize("noun", ["connections", "publishers"])
def test_listings_of_the_stream_protocol_are_empty(console: Console, noun: str) -> None:
    assert [console.get(f"/stream/{noun}{place}") for place in ("", "/%2F")] == [[], []]


# Stored offsets


def test_a_stored_offset_is_shown(console: Console) -> None:
    assert console.get(TRACKING) == {"offsets": {}, "lags": {}, "writers": {}}
    reader(console, offset="first", consumer="me").send(commands.Basic.Ack(1)).receive()
    pass_time(console, 1)
    assert console.get(TRACKING) == {"offsets": {"me": 0}, "lags": {"me": 2}, "writers": {}}
    assert console.get(f"{TRACKING}/me") == {
        "consumer": "me", "lag": 2, "offset": 0, "queue": {"name": "s", "vhost": "/"}
    }  # fmt: skip


def test_an_offset_is_set_changed_and_deleted(console: Console) -> None:
    statuses = [console.ask("PUT", f"{TRACKING}/me", {"offset": offset}).status for offset in (2, 0)]
    assert (statuses, console.get(TRACKING)["offsets"]) == ([201, 204], {"me": 0})
    peer = reader(console, prefetch=10, consumer="me")
    assert [received.body for received in peer.receive_frames()] == [b"1", b"2"]
    console.delete(f"{TRACKING}/me")
    assert console.get(TRACKING)["offsets"] == {}


@pytest.mark.parametrize(
    ("method", "path", "fields", "status"),
    [
        ("GET", "/stream/%2F/nope/tracking", None, 404),
        ("GET", f"{TRACKING}/absent", None, 404),
        ("DELETE", f"{TRACKING}/absent", None, 404),
        ("PUT", "/stream/%2F/q/tracking/me", {"offset": 0}, 404),
        ("PUT", f"{TRACKING}/me", {}, 400),
        ("PUT", f"{TRACKING}/me", {"offset": -1}, 400),
        ("PUT", f"{TRACKING}/me", {"offset": 2**63}, 400),
        ("PUT", f"{TRACKING}/me", {"offset": "soon"}, 400),
        ("PUT", f"{TRACKING}/{'m' * 257}", {"offset": 0}, 400),
    ],
)
def test_an_invalid_request_is_refused(console: Console, method: str, path: str, fields: object, status: int) -> None:
    console.put("/queues/%2F/q", {})
    assert console.ask(method, path, fields).status == status


def test_changing_offsets_needs_the_read_permission(console: Console) -> None:
    console.gateway.add_user("writer", "writer", "/", (".*", ".*", ""), "management")
    answers = [console.ask("PUT", f"{TRACKING}/me", {"offset": 1}, user="writer")]
    answers.append(console.ask("DELETE", f"{TRACKING}/me", user="writer"))
    assert [answer.status for answer in answers] == [401, 401]


# Super streams

INVOICES = "/stream/super-streams/%2F/invoices"


def test_a_super_stream_is_an_exchange_with_partitions(console: Console) -> None:
    assert console.ask("PUT", INVOICES, {"partitions": 2, "arguments": {"x-max-age": "1D"}}).status == 201
    exchange = console.get("/exchanges/%2F/invoices")
    assert (exchange["type"], exchange["durable"], exchange["arguments"]) == (
        "x-super-stream", True, {"x-super-stream": True}
    )  # fmt: skip
    for number in range(2):
        queue = console.get(f"/queues/%2F/invoices-{number}")
        assert queue["arguments"] == {"x-max-age": "1D", "x-queue-type": "stream"}
    bindings = console.get("/exchanges/%2F/invoices/bindings/source")
    assert [(each["destination"], each["routing_key"], each["arguments"]) for each in bindings] == [
        ("invoices-0", "0", {"x-stream-partition-order": 0}),
        ("invoices-1", "1", {"x-stream-partition-order": 1}),
    ]


def test_super_streams_are_listed(console: Console) -> None:
    console.put(INVOICES, {})
    console.put("/exchanges/%2F/plain", {"type": "direct"})
    view = {
        "name": "invoices",
        "vhost": "/",
        "exchange_type": "x-super-stream",
        "partitions": ["invoices-0", "invoices-1", "invoices-2"],
        "messages": 0,
    }
    assert [console.get(path) for path in ("/stream/super-streams", "/stream/super-streams/%2F")] == [[view], [view]]
    assert console.get(INVOICES) == view


def test_partitions_may_have_binding_keys(console: Console) -> None:
    console.put(INVOICES, {"binding-keys": "amer, emea,apac"})
    view = console.get(INVOICES)
    assert (view["exchange_type"], view["partitions"]) == (
        "direct",
        ["invoices-amer", "invoices-emea", "invoices-apac"],
    )


def test_a_super_stream_is_deleted_with_its_partitions(console: Console) -> None:
    console.put(INVOICES, {})
    console.delete(INVOICES)
    assert [queue["name"] for queue in console.get("/queues")] == ["s"]
    assert console.ask("GET", "/exchanges/%2F/invoices").status == 404


REFUSED = [
    ({"partitions": 0}, "The partition number must be greater than 0"),
    ({"partitions": 1001}, "The maximum number of partitions is 1000"),
    ({"partitions": 2, "binding-keys": "a"}, "Specify partitions or binding-keys, not both"),
    ({"binding-keys": " , "}, "Binding keys must be given and be distinct"),
    ({"binding-keys": "a,a"}, "Binding keys must be given and be distinct"),
    ({"exchange-type": "nope"}, "unknown exchange type 'nope'"),
    (
        {"arguments": {"x-max-length": 5}},
        "invalid arg 'x-max-length' for queue 'invoices-0' in vhost '/' of queue type rabbit_stream_queue",
    ),
]


@pytest.mark.parametrize(("fields", "reason"), REFUSED)
def test_a_refused_super_stream_leaves_no_entities(console: Console, fields: dict[str, Any], reason: str) -> None:
    answer = console.ask("PUT", INVOICES, fields)
    assert (answer.status, answer.json["reason"]) == (400, reason)
    assert console.ask("GET", "/exchanges/%2F/invoices").status == 404
    assert [queue["name"] for queue in console.get("/queues")] == ["s"]


def test_an_existing_name_is_refused(console: Console) -> None:
    console.put(INVOICES, {})
    assert console.ask("PUT", INVOICES, {}).json["reason"] == "there is already an exchange named invoices"
    console.put("/queues/%2F/orders-1", {})
    answer = console.ask("PUT", "/stream/super-streams/%2F/orders", {})
    assert answer.json["reason"] == "there is already a queue named orders-1"


def test_an_exchange_without_the_argument_is_no_super_stream(console: Console) -> None:
    console.put("/exchanges/%2F/invoices", {"type": "direct"})
    assert [console.ask(method, INVOICES).status for method in ("GET", "DELETE")] == [404, 404]


def test_creating_a_super_stream_needs_the_permissions_for_its_parts(console: Console) -> None:
    console.gateway.add_user("clerk", "clerk", "/", ("^invoices", "^invoices-[01]$", "^invoices$"), "management")
    assert console.ask("PUT", INVOICES, {"partitions": 3}, user="clerk").status == 401
    assert console.ask("PUT", INVOICES, {"partitions": 2}, user="clerk").status == 201
    console.gateway.add_user("other", "other", "/", ("^invoices(-0)?$", "", ""), "management")
    assert console.ask("DELETE", INVOICES, user="other").status == 401
    assert console.ask("DELETE", INVOICES, user="clerk").status == 204


def test_streams_and_super_streams_are_exported_and_imported(console: Console) -> None:
    console.put(INVOICES, {"partitions": 2})
    definitions = console.get("/definitions")
    other = Console()
    assert other.ask("POST", "/definitions", definitions).status == 204
    assert other.get("/queues/%2F/s")["arguments"] == STREAM["arguments"]
    assert other.get(INVOICES)["partitions"] == ["invoices-0", "invoices-1"]
